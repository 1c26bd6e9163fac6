//go:build linux

package containerd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	v1stats "github.com/containerd/cgroups/v3/cgroup1/stats"
	v2stats "github.com/containerd/cgroups/v3/cgroup2/stats"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
	"haggle/runtime/volume"
)

func TestRuncIsToldEveryLimit(t *testing.T) {
	job := runtime.Spec{
		ID: "job-1", Args: []string{"train"}, CPUMillis: 1500, MemoryBytes: 1 << 30, Pids: 77, ShmBytes: 1 << 20, Workdir: "/work",
	}.WithDefaults()
	img := v1.ImageConfig{Entrypoint: []string{"/run.sh"}, Cmd: []string{"default"}, Env: []string{"LD_PRELOAD=/evil.so", "A=1"}}
	view := jobView{
		user: specs.User{UID: 5, GID: 6}, cgroup: "/haggle-x/job-1", secrets: "/run/j/secrets",
		place: place{firstID: 131072, root: "/run/j/root", disk: volume.Disk{Data: "/disks/job-1/data"}},
		host:  hostLimits{swap: true, openFiles: 4096, lockedMemory: 1 << 20, hugePages: []string{"2MB"}},
	}
	s, err := jobSpec(job, img, view)
	if err != nil {
		t.Fatal(err)
	}
	caps := capabilities()
	quota, period, pids, memory := int64(150_000), uint64(100_000), int64(77), int64(1<<30)
	mapping := []specs.LinuxIDMapping{{HostID: 131072, Size: 65536}}
	type summary struct {
		Args, Env          []string
		Cwd, Host, Cgroup  string
		User               specs.User
		NoNewPrivileges    bool
		Caps               *specs.LinuxCapabilities
		Quota, Pids        *int64
		Period             *uint64
		Memory, Swap       *int64
		Namespaces         []specs.LinuxNamespace
		Readonly, Seccomp  bool
		Architectures      int
		MasksKcore, Hooked bool
		Limits             []specs.POSIXRlimit
		Huge               []specs.LinuxHugepageLimit
		Own                []specs.Mount
		Root               string
		UIDs, GIDs         []specs.LinuxIDMapping
		KillFirst          int
	}
	want := summary{
		Args: []string{"/run.sh", "train"},
		Env:  []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "A=1", "NVIDIA_VISIBLE_DEVICES=void"},
		Cwd:  "/work", Host: "job-1", Cgroup: "/haggle-x/job-1", User: specs.User{UID: 5, GID: 6}, NoNewPrivileges: true,
		Caps:  &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps},
		Quota: &quota, Period: &period, Pids: &pids, Memory: &memory, Swap: &memory,
		Namespaces: []specs.LinuxNamespace{{Type: "pid"}, {Type: "ipc"}, {Type: "uts"}, {Type: "mount"}, {Type: "network"}, {Type: "cgroup"}, {Type: "user"}},
		Seccomp:    true, Architectures: 1, MasksKcore: true,
		Limits: []specs.POSIXRlimit{
			{Type: "RLIMIT_NOFILE", Hard: 4096, Soft: 4096},
			{Type: "RLIMIT_CORE"},
			{Type: "RLIMIT_MEMLOCK", Hard: 1 << 20, Soft: 1 << 20},
			{Type: "RLIMIT_RTPRIO"},
			{Type: "RLIMIT_NICE"},
		},
		Huge: []specs.LinuxHugepageLimit{{Pagesize: "2MB"}},
		Own: []specs.Mount{
			{Destination: "/work", Type: "bind", Source: "/disks/job-1/data", Options: []string{"bind"}},
			{Destination: "/run/secrets", Type: "bind", Source: "/run/j/secrets", Options: []string{"bind", "ro", "nosuid", "nodev", "noexec"}},
		},
		Root: "/run/j/root", UIDs: mapping, GIDs: mapping, KillFirst: 900,
	}
	r := s.Linux.Resources
	got := summary{
		Args: s.Process.Args, Env: s.Process.Env, Cwd: s.Process.Cwd, Host: s.Hostname, Cgroup: s.Linux.CgroupsPath, User: s.Process.User,
		NoNewPrivileges: s.Process.NoNewPrivileges, Caps: s.Process.Capabilities, Quota: r.CPU.Quota, Period: r.CPU.Period, Pids: r.Pids.Limit,
		Memory: r.Memory.Limit, Swap: r.Memory.Swap, Namespaces: s.Linux.Namespaces, Readonly: s.Root.Readonly,
		Seccomp:       s.Linux.Seccomp != nil && s.Linux.Seccomp.DefaultAction == specs.ActErrno,
		Architectures: len(s.Linux.Seccomp.Architectures),
		MasksKcore:    slices.Contains(s.Linux.MaskedPaths, "/proc/kcore"), Hooked: s.Hooks != nil, Limits: s.Process.Rlimits,
		Huge: r.HugepageLimits, Own: s.Mounts[len(s.Mounts)-2:], Root: s.Root.Path, UIDs: s.Linux.UIDMappings, GIDs: s.Linux.GIDMappings,
		KillFirst: *s.Process.OOMScoreAdj,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"size=1024k"`, `"allow":false`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("%s is missing in %s", part, b)
		}
	}
	for _, name := range []string{"bpf", "keyctl", "mount", "unshare", "init_module"} {
		for _, rule := range s.Linux.Seccomp.Syscalls {
			if rule.Action == specs.ActAllow && len(rule.Args) == 0 && slices.Contains(rule.Names, name) {
				t.Errorf("the filter lets %s through", name)
			}
		}
	}
}

func TestWithoutArgumentsTheImageDecides(t *testing.T) {
	for name, c := range map[string]struct {
		img  v1.ImageConfig
		args []string
		want []string
	}{
		"arguments follow the entrypoint":   {v1.ImageConfig{Entrypoint: []string{"e"}, Cmd: []string{"c"}}, []string{"a"}, []string{"e", "a"}},
		"the command follows the entry":     {v1.ImageConfig{Entrypoint: []string{"e"}, Cmd: []string{"c"}}, nil, []string{"e", "c"}},
		"arguments are all without both":    {v1.ImageConfig{}, []string{"a"}, []string{"a"}},
		"the command alone":                 {v1.ImageConfig{Cmd: []string{"c"}}, nil, []string{"c"}},
		"neither is refused":                {v1.ImageConfig{}, nil, nil},
		"an empty first word is no command": {v1.ImageConfig{}, []string{"", "x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := command(runtime.Spec{Args: c.args}, c.img)
			if !slices.Equal(got, c.want) || (c.want == nil) != errors.Is(err, runtime.ErrInvalidSpec) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestANumericUserNeedsNoLookIntoTheImage(t *testing.T) {
	for in, want := range map[string]specs.User{"": {}, "root": {}, "0": {}, "7:8": {UID: 7, GID: 8}} {
		if got, ok := numericUser(in); !ok || got.UID != want.UID || got.GID != want.GID {
			t.Errorf("%q gives %+v, %v", in, got, ok)
		}
	}
	for _, in := range []string{"www-data", "7", "7:staff", "-1:0", "99999999999:0"} {
		if _, ok := numericUser(in); ok {
			t.Errorf("%q passes for a number", in)
		}
	}
}

func TestTheConfigurationFitsTheGeneration(t *testing.T) {
	cfg := Config{Root: "/r", State: "/s", Socket: "/s/c.sock", Snapshotter: "overlayfs"}
	one, two := daemonConfig(cfg, 1), daemonConfig(cfg, 2)
	if !strings.Contains(one, "version = 2\n") || !strings.Contains(two, "version = 3\n") {
		t.Error("wrong version of the format")
	}
	for _, want := range []string{
		`root = "/r"`, `state = "/s"`, `address = "/s/c.sock"`, `address = "/s/c.sock.ttrpc"`,
		`"io.containerd.grpc.v1.cri"`, `"io.containerd.cri.v1.runtime"`, `"io.containerd.snapshotter.v1.zfs"`,
	} {
		if !strings.Contains(two, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(one, "overlayfs") {
		t.Error("the snapshotter that is used is off")
	}
	for in, want := range map[string]int{
		"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3": 1,
		"containerd github.com/containerd/containerd/v2 v2.4.2 0123abcd":              2,
	} {
		if got, err := majorVersion(in); got != want || err != nil {
			t.Errorf("%q gives %d: %v", in, got, err)
		}
	}
	if _, err := majorVersion("what"); err == nil {
		t.Error("no version is a version")
	}
}

func TestANumberAloneDoesNotNameAProcess(t *testing.T) {
	p, ok := lookProcess(os.Getpid())
	if !ok || !p.alive() {
		t.Fatalf("we are dead: %+v", p)
	}
	p.Start += "1"
	if p.alive() {
		t.Error("a recycled number passes for the old process")
	}
	if (process{}).alive() {
		t.Error("no process is alive")
	}
}

func TestTheKernelsCountsAreRead(t *testing.T) {
	v1 := "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
	v2 := "low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n"
	if countOf(v1, "oom_kill") != 3 || countOf(v2, "oom_kill") != 1 || countOf("", "oom_kill") != 0 {
		t.Error("wrong counts")
	}
	got := parseMounts(bufio.NewScanner(strings.NewReader(
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n36 1 0:1 / /a\\040b rw - overlay none rw\nbroken\n")))
	want := []mountInfo{{"/sys/fs/cgroup/memory", "cgroup"}, {"/a b", "overlay"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

func TestUsageIsReadFromBothCgroupVersions(t *testing.T) {
	for name, data := range map[string]any{
		"v1": &v1stats.Metrics{
			CPU:    &v1stats.CPUStat{Usage: &v1stats.CPUUsage{Total: 5000}},
			Memory: &v1stats.MemoryStat{Usage: &v1stats.MemoryEntry{Usage: 100}, TotalInactiveFile: 40},
			Pids:   &v1stats.PidsStat{Current: 2},
		},
		"v2": &v2stats.Metrics{
			CPU:    &v2stats.CPUStat{UsageUsec: 5},
			Memory: &v2stats.MemoryStat{Usage: 100, InactiveFile: 40},
			Pids:   &v2stats.PidsStat{Current: 2},
		},
	} {
		if got, err := usageOf(data); err != nil || got != (runtime.Usage{CPUNanos: 5000, MemoryBytes: 60, Pids: 2}) {
			t.Errorf("%s gives %+v: %v", name, got, err)
		}
	}
	if _, err := usageOf(7); err == nil {
		t.Error("an unknown format is accepted")
	}
}

func TestAConfigurationThatCannotWorkIsRefused(t *testing.T) {
	dir := t.TempDir()
	good := Config{Root: dir + "/r", State: "/run/x", LogDir: dir + "/l", LoggerPath: "/bin/true", LoggerArgs: []string{"logger"}}
	for name, spoil := range map[string]func(*Config){
		"a relative root":     func(c *Config) { c.Root = "r" },
		"no state":            func(c *Config) { c.State = ""; c.Socket = "/s" },
		"the root as state":   func(c *Config) { c.State = "/" },
		"no logger":           func(c *Config) { c.LoggerPath = "" },
		"two logger words":    func(c *Config) { c.LoggerArgs = []string{"a", "b"} },
		"a long socket":       func(c *Config) { c.Socket = "/" + strings.Repeat("x", 120) },
		"an unclean cgroup":   func(c *Config) { c.CgroupParent = "/../x" },
		"a cgroup of all":     func(c *Config) { c.CgroupParent = "/" },
		"a relative log path": func(c *Config) { c.LogDir = "logs" },
		"relative disks":      func(c *Config) { c.VolumeDir = "disks" },
		"no place for disks":  func(c *Config) { c.Address = "/run/x.sock" },
		"relative jobs":       func(c *Config) { c.JobsDir = "jobs" },
		"ids of the house":    func(c *Config) { c.IDBase = 1000 },
		"ids beyond the last": func(c *Config) { c.IDBase = idLimit },
		"an odd protection":   func(c *Config) { c.Without = []string{"everything"} },
	} {
		cfg := good
		spoil(&cfg)
		if e, err := New(cfg); err == nil {
			t.Errorf("%s is accepted", name)
			_ = e.Close()
		}
	}
}

func TestAWatcherThatFallsBehindIsCutOff(t *testing.T) {
	var h hub
	slow := h.watch(t.Context())
	for range watchBuffer + 1 {
		h.tell(runtime.Event{ID: "a"})
	}
	n := 0
	for range slow {
		n++
	}
	if n != watchBuffer {
		t.Errorf("got %d events before the end", n)
	}
}

func TestOneChangeOfAJobAtATime(t *testing.T) {
	var l jobLocks
	unlock, err := l.lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.lock(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	unlock()
	if len(l.held) > 0 {
		t.Errorf("locks are left: %v", l.held)
	}
}
