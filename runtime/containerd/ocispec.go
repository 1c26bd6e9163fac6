//go:build linux

package containerd

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/oci"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
)

const (
	cpuPeriod = 100_000 // µs
	// fullShares is the weight of a whole processor among jobs.
	fullShares = 1024
	// killFirst makes the kernel choose a job before anything of the house when the machine itself is out of memory.
	killFirst = 900
)

// capabilities are what a job's root may do: install packages and change users, inside its own file system and among its own
// users. FOWNER is for dpkg, which sets modes after it gave files away.
func capabilities() []string {
	return []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_SETUID", "CAP_SETGID"}
}

// jobView is what the engine has made for a job, as runc has to be told.
type jobView struct {
	place
	user    specs.User
	cgroup  string
	secrets string        // folder; empty when there are none
	more    []specs.Mount // beside those that every job has
	host    hostLimits
	without []string
}

func (v jobView) has(protection string) bool { return !slices.Contains(v.without, protection) }

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

func workdir(job runtime.Spec, img v1.ImageConfig) (string, error) {
	cwd := job.Workdir
	if cwd == "" {
		cwd = img.WorkingDir
	}
	if cwd == "" {
		cwd = "/"
	}
	if !filepath.IsAbs(cwd) {
		return "", fmt.Errorf("%w: the image's working directory %.100q is not absolute", runtime.ErrInvalidSpec, cwd)
	}
	return cwd, nil
}

// jobSpec is the whole of what runc is told of a job, but for its devices. job has its defaults filled in.
func jobSpec(job runtime.Spec, img v1.ImageConfig, v jobView) (*specs.Spec, error) {
	args, err := command(job, img)
	if err != nil {
		return nil, err
	}
	cwd, err := workdir(job, img)
	if err != nil {
		return nil, err
	}
	// The namespace only chooses a default of the cgroup, which is set below.
	ctx := namespaces.WithNamespace(context.Background(), "haggle") //nolint:forbidigo // a pure function: nothing is waited for
	s, err := oci.GenerateSpec(ctx, nil, &containers.Container{ID: job.ID},
		oci.WithHostname(job.ID),
		oci.WithProcessArgs(args...),
		oci.WithProcessCwd(cwd),
		oci.WithEnv(runtime.JobEnv(job, img.Env)),
		oci.WithDefaultUnixDevices,
		oci.WithCgroup(v.cgroup),
		oci.WithLinuxNamespace(specs.LinuxNamespace{Type: specs.CgroupNamespace}),
		oci.WithCapabilities(capabilities()),
	)
	if err != nil {
		return nil, fmt.Errorf("describe job %s to runc: %w", job.ID, err)
	}
	s.Root.Path = v.root
	s.Process.User = v.user
	s.Process.NoNewPrivileges = true
	s.Process.OOMScoreAdj = new(killFirst)
	s.Process.Rlimits = processLimits(job, v)
	s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = maskedPaths(), readonlyPaths()
	s.Linux.Seccomp = callFilter()
	s.Process.ApparmorProfile = v.host.appArmor
	s.Mounts = slices.Concat(jobMounts(s.Mounts, job, v), v.more, ownMounts(v))
	limitResources(s.Linux.Resources, job, v)
	if v.firstID != 0 {
		mapping := []specs.LinuxIDMapping{{HostID: v.firstID, Size: idsPerJob}}
		s.Linux.UIDMappings, s.Linux.GIDMappings = mapping, mapping
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
	}
	weaken(s, v)
	return s, nil
}

// maxTerminals is how many a job may open: the machine has 3072 for all containers together.
const maxTerminals = 128

// jobMounts bounds the file systems in memory that every job has. What is in them counts to the job's memory.
func jobMounts(all []specs.Mount, job runtime.Spec, v jobView) []specs.Mount {
	for i, m := range all {
		switch {
		case m.Destination == "/dev/shm":
			options := slices.DeleteFunc(slices.Clone(m.Options), func(o string) bool { return strings.HasPrefix(o, "size=") })
			if v.has(Shm) {
				options = append(options, "size="+strconv.FormatInt((job.ShmBytes+1023)/1024, 10)+"k")
			}
			all[i].Options = options
		case m.Type == "devpts":
			all[i].Options = append(slices.Clone(m.Options), "max="+strconv.Itoa(maxTerminals))
		}
	}
	return all
}

// ownMounts are the job's own folders.
func ownMounts(v jobView) []specs.Mount {
	// A user namespace locks the options of a mount; with none given, the job's folder has those of its disk.
	all := []specs.Mount{{Destination: runtime.WorkDir, Type: "bind", Source: v.disk.Data, Options: []string{"bind"}}}
	if v.secrets != "" {
		all = append(all, readOnly(v.secrets, runtime.SecretsDir))
	}
	return all
}

// readOnly shows a job a file or folder that is in the folder of jobs.
func readOnly(source, destination string) specs.Mount {
	options := []string{"bind", "ro", "nosuid", "nodev", "noexec"}
	return specs.Mount{Destination: destination, Type: "bind", Source: source, Options: options}
}

func processLimits(job runtime.Spec, v jobView) []specs.POSIXRlimit {
	limit := func(name string, n uint64) specs.POSIXRlimit { return specs.POSIXRlimit{Type: name, Hard: n, Soft: n} }
	return []specs.POSIXRlimit{
		limit("RLIMIT_NOFILE", v.host.openFiles),
		limit("RLIMIT_CORE", 0),
		// What a job pins in memory counts to its memory limit. The bound is below that, so that a program that pins too much is
		// told so and not killed. CUDA pins through its driver; this is for network cards and for programs that lock what they hold.
		limit("RLIMIT_MEMLOCK", min(uint64(job.MemoryBytes)/4*3, v.host.lockedMemory)),
		limit("RLIMIT_RTPRIO", 0),
		limit("RLIMIT_NICE", 0),
	}
}

// limitResources sets what the job's cgroup may use.
func limitResources(r *specs.LinuxResources, job runtime.Spec, v jobView) {
	memory, quota, period := job.MemoryBytes, job.CPUMillis*cpuPeriod/1000, uint64(cpuPeriod)
	r.Memory = &specs.LinuxMemory{Limit: &memory}
	if v.host.swap {
		r.Memory.Swap = &memory // memory and swap together: none
	}
	shares := uint64(min(max(job.CPUMillis*fullShares/1000, 2), 1<<18))
	r.CPU = &specs.LinuxCPU{Quota: &quota, Period: &period, Shares: &shares}
	r.Pids = &specs.LinuxPids{Limit: &job.Pids}
	for _, size := range v.host.hugePages {
		r.HugepageLimits = append(r.HugepageLimits, specs.LinuxHugepageLimit{Pagesize: size}) // none: they are the owner's
	}
}

// ownHookEnv gives hooks, which run as root outside the job, an environment of ours: with none stated, older versions of runc
// give them the job's, LD_PRELOAD and all.
func ownHookEnv(s *specs.Spec, on bool) {
	if s.Hooks == nil {
		return
	}
	h := s.Hooks
	old := h.Prestart //nolint:staticcheck // it is old, and still run
	for _, list := range [][]specs.Hook{old, h.CreateRuntime, h.CreateContainer, h.StartContainer, h.Poststart, h.Poststop} {
		for i := range list {
			list[i].Env = nil
			if on {
				list[i].Env = []string{"PATH=" + systemPath}
			}
		}
	}
}

// weaken leaves protections out, for the tests that prove what they are good for.
func weaken(s *specs.Spec, v jobView) {
	for name, leaveOut := range map[string]func(){
		Seccomp:         func() { s.Linux.Seccomp = nil },
		NoNewPrivileges: func() { s.Process.NoNewPrivileges = false },
		MaskedPaths:     func() { s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = nil, nil },
		Pids:            func() { s.Linux.Resources.Pids = nil },
		Memory:          func() { s.Linux.Resources.Memory = nil },
		CPU:             func() { s.Linux.Resources.CPU = nil },
		DeviceCgroup: func() {
			s.Linux.Resources.Devices = append(s.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Access: "rwm"})
		},
		Capabilities: func() {
			more := append(capabilities(), "CAP_MKNOD", "CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_SYS_PTRACE",
				"CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_SETFCAP", "CAP_SYS_CHROOT", "CAP_KILL")
			s.Process.Capabilities = &specs.LinuxCapabilities{Bounding: more, Effective: more, Permitted: more}
		},
		OpenFiles: func() {
			s.Process.Rlimits = slices.DeleteFunc(s.Process.Rlimits, func(l specs.POSIXRlimit) bool { return l.Type == "RLIMIT_NOFILE" })
		},
	} {
		if !v.has(name) {
			leaveOut()
		}
	}
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

// logLimit is where a job's log is cut.
func (c Config) logLimit(spec runtime.Spec) int64 {
	if !c.has(LogLimit) {
		return math.MaxInt64
	}
	return spec.LogLimitBytes
}
