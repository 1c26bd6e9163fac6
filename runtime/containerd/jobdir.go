//go:build linux

package containerd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// Every job has a folder in memory. Its files are what the job must not find on a disk, and what it sees of the rig's
// network; while the job is made, its root file system is put together there.
const (
	rootName    = "root"
	layersName  = "layers"
	secretsName = "secrets"
)

// The file system of all these folders: small, because secrets are bounded, but large enough for many jobs.
const jobsFSOptions = "mode=0711,size=512m,nr_inodes=128k"

// defaultJobsDir is in /run, which every user may pass through, and a job's root has to: runc gives up its rights before it
// enters the job's file system. Folders of users, where an engine may keep all else, are often closed.
func defaultJobsDir(address, namespace string) string {
	sum := sha256.Sum256([]byte(address + "\x00" + namespace))
	return filepath.Join(jobsParent, hex.EncodeToString(sum[:6]))
}

const jobsParent = "/run/haggle-jobs"

func (e *Engine) jobDir(id string) string { return filepath.Join(e.cfg.JobsDir, id) }

// rootPath is where a job's root file system is while the job is made.
func (e *Engine) rootPath(id string) string { return filepath.Join(e.jobDir(id), rootName) }

// openJobsDir makes the folder of all jobs' folders, and mounts memory there unless that was done before.
func (e *Engine) openJobsDir() error {
	dir := e.cfg.JobsDir
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	if err := passable(dir); err != nil {
		return err
	}
	for _, m := range mounts() {
		if m.path == dir && m.kind == "tmpfs" {
			return nil
		}
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	err := unix.Mount("haggle-jobs", dir, "tmpfs", flags, jobsFSOptions+",noswap")
	if errors.Is(err, unix.EINVAL) { // before Linux 6.4 secrets may get into the swap space
		err = unix.Mount("haggle-jobs", dir, "tmpfs", flags, jobsFSOptions)
	}
	if err != nil {
		return fmt.Errorf("mount memory at %s: %w", dir, err)
	}
	return nil
}

// passable returns an error unless a job's root can pass through a folder and all above it.
func passable(dir string) error {
	for up := dir; up != "/"; up = filepath.Dir(up) {
		info, err := os.Stat(up)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("%w: other users cannot pass through %s, which a job's root has to", runtime.ErrUnsupported, up)
		}
	}
	return nil
}

// makeJobDir makes a job's folder and writes its secrets, which belong to the user that the job runs as. An older folder
// of this job is removed.
func (e *Engine) makeJobDir(id string) error {
	if err := e.removeJobDir(id); err != nil {
		return err
	}
	for _, dir := range []string{e.jobDir(id), e.rootPath(id), filepath.Join(e.jobDir(id), layersName)} {
		if err := os.Mkdir(dir, 0o711); err != nil {
			return err
		}
	}
	return nil
}

// makeSecrets makes the folder of a job's secrets, for the user that the job runs as, and writes them. Ids are those of the host.
func (e *Engine) makeSecrets(id string, secrets map[string][]byte, uid, gid int) (string, error) {
	dir := filepath.Join(e.jobDir(id), secretsName)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	if err := writeSecrets(dir, secrets, uid, gid); err != nil {
		return "", err
	}
	return dir, errors.Join(os.Chmod(dir, 0o500), os.Chown(dir, uid, gid))
}

// writeSecrets writes secrets into their folder.
func writeSecrets(dir string, secrets map[string][]byte, uid, gid int) error {
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, secrets[name], 0o400); err != nil {
			return err
		}
		if err := os.Chown(path, uid, gid); err != nil {
			return err
		}
	}
	return nil
}

// removeJobDir unmounts what is mounted in a job's folder and removes it. None is no error.
func (e *Engine) removeJobDir(id string) error {
	dir := e.jobDir(id)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range []string{rootName, layersName} {
		if err := unmount(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, m := range mounts() {
		if strings.HasPrefix(m.path, dir+"/") {
			return fmt.Errorf("remove %s: %s is mounted: %w", dir, m.path, unix.EBUSY)
		}
	}
	return os.RemoveAll(dir)
}

// closeJobsDir removes all jobs' folders, the mount below them and the folder of all.
func (e *Engine) closeJobsDir() error {
	ids, err := e.jobDirs()
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		errs = append(errs, e.removeJobDir(id))
	}
	errs = append(errs, unmount(e.cfg.JobsDir))
	for _, dir := range []string{e.cfg.JobsDir, jobsParent} {
		// A folder that holds something else stays.
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// jobDirs names the jobs that have a folder.
func (e *Engine) jobDirs() ([]string, error) {
	entries, err := os.ReadDir(e.cfg.JobsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ids []string
	for _, d := range entries {
		if runtime.ValidateID(d.Name()) == nil {
			ids = append(ids, d.Name())
		}
	}
	return ids, nil
}
