package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"haggle/runtime"
)

// Create implements runtime.Runtime.
func (e *Engine) Create(ctx context.Context, spec runtime.Spec) error {
	if err := spec.Validate(); err != nil {
		return fmt.Errorf("create job: %w", err)
	}
	e.changing.Lock()
	defer e.changing.Unlock()
	_, r, err := e.find(ctx, spec.ID)
	switch {
	case err == nil && r.job.Hash == spec.Hash():
		return e.takeOver(spec.ID, r.job) // where a crash left that undone
	case err == nil:
		return fmt.Errorf("create job %s: %w", spec.ID, runtime.ErrConflict)
	case !errors.Is(err, runtime.ErrNotFound):
		return err
	}
	j, err := e.plan(spec)
	if err == nil && spec.From != "" {
		err = e.giveUpDisk(ctx, spec.From, j)
	}
	if err == nil {
		err = e.make(spec, j)
	}
	if err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	e.mu.Lock()
	e.jobs[spec.ID] = &entry{folder: folder(e.jobDir(spec.ID)), ended: make(chan struct{})}
	e.mu.Unlock()
	if err := e.takeOver(spec.ID, j); err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	return nil
}

// giveUpDisk makes sure that a job's work folder can become that of another one: the job has stopped, and nobody visits it.
func (e *Engine) giveUpDisk(ctx context.Context, id string, to job) error {
	j, r, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	if r.state != runtime.Stopped {
		return fmt.Errorf("take the disk of job %s, which has not stopped: %w", id, runtime.ErrConflict)
	}
	if r.job.Program != to.Program { // the path of a program names its image
		return fmt.Errorf("take the disk of job %s, which had another image: %w", id, runtime.ErrInvalidSpec)
	}
	if _, err := os.Stat(r.job.Dir); err != nil {
		return fmt.Errorf("take the disk of job %s, which has none any more: %w", id, runtime.ErrConflict)
	}
	return e.closeDoor(ctx, j.folder)
}

// takeOver moves the work folder of the job before into this one's, unless that is done. The job's own folder is there before
// that, so that no crash leaves a work folder that is nobody's.
func (e *Engine) takeOver(id string, j job) error {
	if j.From == "" {
		return nil
	}
	if _, err := os.Stat(j.Dir); err == nil {
		return nil
	}
	err := os.Rename(filepath.Join(e.jobDir(j.From), workFolder), j.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a third job may have it by now
		return fmt.Errorf("job %s takes the disk of job %s: %w", id, j.From, err)
	}
	return nil
}

// plan puts together what the supervisor needs.
func (e *Engine) plan(spec runtime.Spec) (job, error) {
	for _, d := range spec.Devices {
		if d.Class != runtime.SimulatedGPU {
			return job{}, fmt.Errorf("device %s=%s: %w", d.Class, d.UUID, runtime.ErrUnsupported)
		}
	}
	img, err := e.startable(spec)
	if err != nil {
		return job{}, err
	}
	args := spec.Args
	if len(args) == 0 {
		args = img.Cmd
	}
	work := filepath.Join(e.jobDir(spec.ID), workFolder)
	env := append(runtime.JobEnv(spec, img.Env), WorkEnv+"="+work)
	if len(spec.Secrets) > 0 {
		env = append(env, SecretsEnv+"="+folder(e.jobDir(spec.ID)).file(secretsLink))
	}
	return job{
		Hash: spec.Hash(), Labels: spec.Labels,
		Program: filepath.Join(e.imageDir(img.Digest), "root", img.Program), Args: slices.Concat(img.Entrypoint, args),
		Env: env, Dir: work, From: spec.From, Log: spec.WithDefaults().LogLimitBytes,
	}, nil
}

// make makes a job's folder; it appears whole or not at all.
func (e *Engine) make(spec runtime.Spec, j job) error {
	dir := folder(e.jobDir(".new-" + spec.ID))
	err := errors.Join(dir.destroy(), os.MkdirAll(string(dir), 0o700))
	if err == nil && j.From == "" {
		err = os.Mkdir(dir.file(workFolder), 0o700)
	}
	if err != nil {
		return err
	}
	err = errors.Join(dir.keepSecrets(spec.Secrets), os.WriteFile(dir.log(), nil, 0o600), writeFile(dir.file(fileJob), j))
	if err != nil {
		return errors.Join(err, dir.destroy())
	}
	return os.Rename(string(dir), e.jobDir(spec.ID))
}
