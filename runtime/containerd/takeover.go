//go:build linux

package containerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/typeurl/v2"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// hearTimeout is how long the process in a spare may take for an answer. It has little to do.
const hearTimeout = 5 * time.Second

// takeOver makes a spare a job's, if there is one that fits. false: there was none, or it was of no use, and nothing is left of it.
func (e *Engine) takeOver(ctx context.Context, spec runtime.Spec, img v1.ImageConfig, sh shape) (bool, error) {
	sp := e.spares.take(sh.key)
	if sp == nil {
		return false, nil
	}
	defer e.spares.drop(sp)
	err := e.withLock(ctx, sp.name, func() error {
		err := e.give(ctx, sp, spec, img)
		if err == nil {
			return nil
		}
		// The labels may be written in spite of the error.
		e.names.doubt()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		return errors.Join(err, e.discard(ctx, sp.name))
	})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, runtime.ErrInvalidSpec), ctx.Err() != nil:
		return true, fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	e.cfg.Log.Warn("a spare container was of no use", "job", spec.ID, "err", err)
	return false, nil
}

// give gives a spare all that its job has and it has not yet. The labels come last: with them it is the job's.
func (e *Engine) give(ctx context.Context, sp *spare, spec runtime.Spec, img v1.ImageConfig) error {
	args, err := command(spec, img)
	if err != nil {
		return err
	}
	if err := errors.Join(e.nameHost(sp, spec), e.nameLog(sp.name, spec.ID)); err != nil {
		return err
	}
	network := make(chan error, 1)
	go func() { network <- e.widen(ctx, sp.name, spec.Network) }()
	err = e.giveSecrets(sp.name, spec.Secrets)
	if err == nil {
		err = e.tellWaiting(ctx, sp, args, runtime.JobEnv(spec, img.Env))
	}
	if err := errors.Join(err, <-network); err != nil {
		return err
	}
	labels, err := jobLabels(spec, 0)
	if err != nil {
		return err
	}
	delete(labels, labelIDs) // which it has
	labels[labelJob] = spec.ID
	known, err := describeTaken(sp, args, runtime.JobEnv(spec, img.Env))
	if err != nil {
		return err
	}
	if err := e.update(ctx, sp.name, labels, known); err != nil {
		return err
	}
	e.names.set(spec.ID, sp.name)
	return nil
}

// describeTaken is the description of a spare as if its job's process had been the first in it. Those who come into the job
// later go by it.
func describeTaken(sp *spare, args, env []string) (typeurl.Any, error) {
	s, p := *sp.spec, *sp.spec.Process
	p.Args, p.Env = args, env
	s.Process = &p
	return typeurl.MarshalAny(&s)
}

// nameHost gives the job's machine its name.
func (e *Engine) nameHost(sp *spare, spec runtime.Spec) error {
	if err := within(sp.uts, unix.CLONE_NEWUTS, func() error { return unix.Sethostname([]byte(spec.ID)) }); err != nil {
		return fmt.Errorf("name the host: %w", err)
	}
	if spec.Network.Mode == runtime.NetworkNone {
		return nil
	}
	return e.writeNetworkFiles(e.jobDir(sp.name), spec.ID)
}

// nameLog gives the log the job's name too, by which people look for it. One of that name is of an older job.
func (e *Engine) nameLog(name, id string) error {
	return errors.Join(removeAll(e.logPath(id)), os.Link(e.logPath(name), e.logPath(id)))
}

// widen gives a job its part of the line, in place of a spare's.
func (e *Engine) widen(ctx context.Context, name string, network runtime.Network) error {
	if network.Mode == runtime.NetworkNone {
		return nil
	}
	pid, err := e.firstProcess(ctx, name)
	if err != nil {
		return err
	}
	return e.attach(ctx, name, pid, network)
}

func (e *Engine) giveSecrets(name string, secrets map[string][]byte) error {
	if len(secrets) == 0 {
		return nil
	}
	dir := filepath.Join(e.jobDir(name), secretsName)
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("owner of %s: %w", dir, runtime.ErrUnsupported)
	}
	return writeSecrets(dir, secrets, int(st.Uid), int(st.Gid))
}

// waitOrder is what the process in a spare is told. Bytes, because arguments need not be text.
type waitOrder struct{ Args, Env [][]byte }

// tellWaiting tells the process in a spare what it will become. Like runc, it looks the program up at once.
func (e *Engine) tellWaiting(ctx context.Context, sp *spare, args, env []string) error {
	var order waitOrder
	for _, list := range []struct {
		from []string
		to   *[][]byte
	}{{args, &order.Args}, {env, &order.Env}} {
		for _, s := range list.from {
			if strings.IndexByte(s, 0) >= 0 {
				return fmt.Errorf("%w: a word of the image's command holds a zero byte", runtime.ErrInvalidSpec)
			}
			*list.to = append(*list.to, []byte(s))
		}
	}
	b, err := json.Marshal(order)
	if err != nil {
		return err
	}
	told, err := e.openTold(sp.name)
	if err != nil {
		return err
	}
	defer told.Close()
	if err := told.SetWriteDeadline(deadlineOf(ctx)); err != nil {
		return err
	}
	if _, err := told.Write(b); err != nil {
		return fmt.Errorf("tell the job its command: %w", err)
	}
	return hear(ctx, sp.words)
}

// openTold opens the way to the process in a container that was a spare. fs.ErrNotExist or ENXIO: nobody waits there any more.
func (e *Engine) openTold(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(e.waitDir(name), toldName), os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
}

func deadlineOf(ctx context.Context) time.Time {
	at := time.Now().Add(hearTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(at) {
		return d
	}
	return at
}

// hear reads one answer of the process in a spare: a zero byte, or why it cannot do what it was told.
func hear(ctx context.Context, words *os.File) error {
	if err := words.SetReadDeadline(deadlineOf(ctx)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = words.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var b [512]byte
	n, err := words.Read(b[:])
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("the process that waits says nothing: %w", err)
	case n > 0 && b[0] == 0:
		return nil
	}
	return fmt.Errorf("%w: %s", runtime.ErrInvalidSpec, b[:n])
}

// release lets the process in a job's container become the job's own, and returns when it has.
func (e *Engine) release(ctx context.Context, name string) error {
	words, err := os.OpenFile(filepath.Join(e.waitDir(name), saysName), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("start job %s: %w", name, err)
	}
	defer words.Close()
	if err := e.letGo(name); err != nil {
		return fmt.Errorf("start job %s: %w: %w", name, runtime.ErrConflict, err)
	}
	e.tell(name, runtime.Event{Kind: runtime.EventStarted, At: time.Now()})
	// It closes its end by becoming the job. Until then a signal would meet ours and not the job's.
	if err := hear(ctx, words); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("start job %s: %w", name, err)
	}
	return os.RemoveAll(e.waitDir(name))
}

func (e *Engine) letGo(name string) error {
	told, err := e.openTold(name)
	if err != nil {
		return err
	}
	_, err = told.Write([]byte{0})
	return errors.Join(err, told.Close())
}

// releaseAgain finishes a start that an engine was killed over: the order is on record.
func (e *Engine) releaseAgain(ctx context.Context, name string) error {
	if !isSpare(name) {
		return nil
	}
	return e.withLock(ctx, name, func() error {
		if _, err := os.Lstat(e.waitDir(name)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err := e.letGo(name); err != nil && !errors.Is(err, unix.ENXIO) && !errors.Is(err, fs.ErrNotExist) {
			e.cfg.Log.Warn("a job that was ordered to start does not", "container", name, "err", err)
		}
		return os.RemoveAll(e.waitDir(name))
	})
}
