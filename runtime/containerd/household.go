//go:build linux

package containerd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	contribaa "github.com/containerd/containerd/v2/contrib/apparmor"
	"github.com/containerd/containerd/v2/pkg/apparmor"
)

// jobsWeight is what all jobs together weigh against the rest of the machine, whose parts weigh 1024 (100 in version 2) each.
// While nobody else computes, jobs have all that their limits allow.
const (
	jobsWeightV1 = "128"
	jobsWeightV2 = "12"
)

// weakenJobs makes the cgroup of all jobs and puts it behind the household's programs. What a kernel lacks is left out: jobs
// are bounded by their own limits in any case.
func (e *Engine) weakenJobs() {
	if !e.cfg.has(CPU) {
		return
	}
	for _, m := range mounts() {
		switch m.kind {
		case "cgroup":
			if _, err := os.Stat(m.path + "/cpu.shares"); err == nil {
				dir := filepath.Join(m.path, e.cfg.CgroupParent)
				e.note(errors.Join(os.MkdirAll(dir, 0o755), writeControl(dir, "cpu.shares", jobsWeightV1)))
			}
			if _, err := os.Stat(m.path + "/blkio.throttle.io_serviced"); err == nil {
				dir := filepath.Join(m.path, e.cfg.CgroupParent)
				e.note(errors.Join(os.MkdirAll(dir, 0o755), writeControl(dir, "blkio.bfq.weight", jobsWeightV2)))
			}
		case "cgroup2":
			if cgroupVersion() == 2 {
				e.note(e.weakenUnified(m.path))
			}
		}
	}
}

func (e *Engine) weakenUnified(root string) error {
	dir := root
	var errs []error
	for name := range strings.SplitSeq(strings.Trim(e.cfg.CgroupParent, "/"), "/") {
		for _, controller := range []string{"+cpu", "+io"} {
			errs = append(errs, writeControl(dir, "cgroup.subtree_control", controller))
		}
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	errs = append(errs, writeControl(dir, "cpu.weight", jobsWeightV2), writeControl(dir, "io.weight", jobsWeightV2))
	return errors.Join(errs...)
}

// writeControl writes a control file of a cgroup, if there is one of this name.
func writeControl(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func (e *Engine) note(err error) {
	if err != nil {
		e.cfg.Log.Info("jobs and the rest of the machine weigh the same in part", "err", err)
	}
}

// appArmorProfile is containerd's default for containers under a name of ours.
const appArmorProfile = "haggle-job"

// loadAppArmor loads the profile of jobs and returns its name, which is empty where the kernel has no AppArmor.
func loadAppArmor() (string, error) {
	if !apparmor.HostSupports() {
		return "", nil
	}
	return appArmorProfile, contribaa.LoadDefaultProfile(appArmorProfile)
}
