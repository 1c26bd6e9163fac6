//go:build linux

package containerd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/oci"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"haggle/runtime"
)

const (
	cpuPeriod = 100_000 // µs
	// maxOpenFiles is what data loaders ask for at most.
	maxOpenFiles = 1 << 16
)

// capabilities are what a job's root may do: install packages and change users, inside its own file system.
func capabilities() []string {
	return []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_SETUID", "CAP_SETGID"}
}

// hostLimits are properties of the machine that decide which limits runc can set.
type hostLimits struct {
	// swap: the kernel counts swap, or needs no word on it (cgroup v2).
	swap bool
	// openFiles is the most that a process may be allowed to open.
	openFiles uint64
}

func readHostLimits() hostLimits {
	h := hostLimits{swap: cgroupVersion() == 2, openFiles: 1024}
	for _, m := range cgroupMounts() {
		if _, err := os.Stat(m + "/memory.memsw.limit_in_bytes"); err == nil {
			h.swap = true
		}
	}
	// Root without CAP_SYS_RESOURCE, as in some virtual machines, cannot raise its own limit for a job.
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err == nil {
		h.openFiles = min(own.Max, maxOpenFiles)
	}
	return h
}

// command puts the command line together as `docker run` does.
func command(job runtime.Spec, img v1.ImageConfig) ([]string, error) {
	args := slices.Concat(img.Entrypoint, job.Args)
	if len(job.Args) == 0 {
		args = slices.Concat(img.Entrypoint, img.Cmd)
	}
	if len(args) == 0 || args[0] == "" {
		return nil, fmt.Errorf("%w: neither the job nor its image names a command", runtime.ErrInvalidSpec)
	}
	return args, nil
}

// jobSpec is the whole of what runc is told of a job. job has its defaults filled in.
func jobSpec(job runtime.Spec, img v1.ImageConfig, user specs.User, cgroup string, host hostLimits) (*specs.Spec, error) {
	args, err := command(job, img)
	if err != nil {
		return nil, err
	}
	cwd := job.Workdir
	if cwd == "" {
		cwd = img.WorkingDir
	}
	if cwd == "" {
		cwd = "/"
	}
	if !filepath.IsAbs(cwd) {
		return nil, fmt.Errorf("%w: the image's working directory %.100q is not absolute", runtime.ErrInvalidSpec, cwd)
	}
	swap := func(context.Context, oci.Client, *containers.Container, *oci.Spec) error { return nil }
	if host.swap {
		swap = oci.WithMemorySwap(job.MemoryBytes) // memory and swap together: none
	}
	// The namespace only chooses a default of the cgroup, which is set below.
	ctx := namespaces.WithNamespace(context.Background(), "haggle") //nolint:forbidigo // a pure function: nothing is waited for
	spec, err := oci.GenerateSpec(ctx, nil, &containers.Container{ID: job.ID},
		oci.WithHostname(job.ID),
		oci.WithProcessArgs(args...),
		oci.WithProcessCwd(cwd),
		oci.WithEnv(runtime.JobEnv(job, img.Env)),
		oci.WithDefaultUnixDevices,
		oci.WithCgroup(cgroup),
		oci.WithLinuxNamespace(specs.LinuxNamespace{Type: specs.CgroupNamespace}),
		oci.WithNoNewPrivileges,
		oci.WithCapabilities(capabilities()),
		oci.WithMemoryLimit(uint64(job.MemoryBytes)), swap,
		oci.WithPidsLimit(job.Pids),
		oci.WithCPUCFS(job.CPUMillis*cpuPeriod/1000, cpuPeriod),
		oci.WithDevShmSize((job.ShmBytes+1023)/1024),
		oci.WithRlimit(&specs.POSIXRlimit{Type: "RLIMIT_NOFILE", Hard: host.openFiles, Soft: host.openFiles}),
		// Last, because the filter depends on the capabilities.
		seccomp.WithDefaultProfile(),
		nativeCallsOnly,
	)
	if err != nil {
		return nil, fmt.Errorf("describe job %s to runc: %w", job.ID, err)
	}
	spec.Process.User = user
	return spec, nil
}

// nativeCallsOnly shuts the system calls of other architectures, which kernels offer to 32-bit programs. Some of them do
// what the filter forbids in the native ones: it cannot look into the arguments of a 32-bit socketcall. And runc needs a
// third of the time for a filter of one architecture, for which every job waits.
func nativeCallsOnly(_ context.Context, _ oci.Client, _ *containers.Container, s *oci.Spec) error {
	switch goruntime.GOARCH {
	case "amd64":
		s.Linux.Seccomp.Architectures = []specs.Arch{specs.ArchX86_64}
	case "arm64":
		s.Linux.Seccomp.Architectures = []specs.Arch{specs.ArchAARCH64}
	}
	return nil
}

// numericUser reads an image's user when it needs no look into the image's files.
func numericUser(s string) (specs.User, bool) {
	if s == "" || s == "root" || s == "0" {
		return specs.User{}, true
	}
	uid, gid, both := strings.Cut(s, ":")
	u, err := strconv.ParseUint(uid, 10, 31)
	if err != nil || !both {
		return specs.User{}, false
	}
	g, err := strconv.ParseUint(gid, 10, 31)
	if err != nil {
		return specs.User{}, false
	}
	return specs.User{UID: uint32(u), GID: uint32(g)}, true
}
