//go:build linux

package hostile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"haggle/runtime"
	"haggle/runtime/containerd"
)

// patience ends a test that hangs. It decides nothing else: an emulated machine is many times slower than a real one.
const patience = 4 * time.Minute

// require skips a test where the house cannot be built, and fails it there under CI, where it must.
func require(t *testing.T) {
	t.Helper()
	var missing []string
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "runc", "nft", "ip", "mkfs.ext4"} {
		if _, err := exec.LookPath(name); err != nil {
			if _, err := os.Stat("/usr/sbin/" + name); err != nil {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("needs %s", strings.Join(missing, ", "))
	}
	t.Skipf("needs %s", strings.Join(missing, ", "))
}

// house is one machine with a rig's engine on it, a neighbour's job, and a world around it.
type house struct {
	dir      string // of everything but what must be elsewhere
	canary   string // a folder of the host that no job may see or change
	programs map[string]string
	world    *world
	cards    *cards
	log      *logBook

	engine *engine // with every protection
	image  string  // what attackers run
	guard  *exec.Cmd

	jobs      atomic.Int64
	canarySum string
	before    []string // traces of earlier runs
}

// engine is an engine of the house. All of them use one containerd.
type engine struct {
	*containerd.Engine
	cfg containerd.Config
	end func() error // ends Run and closes it; jobs go on
}

// theHouse is built by the first test that needs it and taken down by TestMain.
type theHouse struct {
	sync.Mutex
	built *house
	err   error
}

func (l *theHouse) get(t *testing.T) *house {
	t.Helper()
	require(t)
	l.Lock()
	defer l.Unlock()
	if l.built == nil && l.err == nil {
		l.built, l.err = build()
	}
	if l.err != nil {
		t.Fatal(l.err)
	}
	return l.built
}

var only theHouse

func TestMain(m *testing.M) {
	code := m.Run()
	if only.built != nil {
		if err := only.built.takeDown(); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL: taking the house down:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

func build() (*house, error) {
	dir, err := os.MkdirTemp("/tmp", "hghost")
	if err != nil {
		return nil, err
	}
	h := &house{dir: dir, canary: dir + "/canary", programs: map[string]string{}, log: &logBook{}, before: traces()}
	if err := os.Chmod(dir, 0o755); err != nil { // jobs' users pass through it
		return h, err
	}
	for _, step := range []func() error{h.putCanaries, h.buildPrograms, h.buildWorld, h.makeCards, h.openFirst, h.importAttacker, h.startGuard} {
		if err := step(); err != nil {
			return h, errors.Join(err, errors.New(h.log.tail()), h.takeDown())
		}
	}
	return h, nil
}

// putCanaries makes files that tell when somebody was there.
func (h *house) putCanaries() error {
	for name, mode := range map[string]os.FileMode{"open": 0o666, "secret": 0o600, "passwd": 0o644, "run.sh": 0o755} {
		path := filepath.Join(h.canary, name)
		if err := errors.Join(os.MkdirAll(h.canary, 0o777), os.WriteFile(path, []byte("of the host\n"), mode), os.Chmod(path, mode)); err != nil {
			return err
		}
	}
	if err := os.Chmod(h.canary, 0o777); err != nil {
		return err
	}
	h.canarySum = h.sum()
	return nil
}

// sum describes the canaries and the host's files that attacks are after.
func (h *house) sum() string {
	var b strings.Builder
	paths := []string{"/etc/passwd", "/etc/shadow", "/etc/ld.so.preload", "/etc/resolv.conf", "/etc/hosts", "/proc/sys/kernel/core_pattern"}
	for _, name := range []string{"runc", "containerd-shim-runc-v2"} {
		if p, err := exec.LookPath(name); err == nil {
			paths = append(paths, p)
		}
	}
	_ = filepath.WalkDir(h.canary, func(path string, _ os.DirEntry, _ error) error {
		paths = append(paths, path)
		return nil
	})
	for _, p := range paths {
		info, err := os.Lstat(p)
		if err != nil {
			fmt.Fprintf(&b, "%s none\n", p)
			continue
		}
		fmt.Fprintf(&b, "%s %s %d %d\n", p, info.Mode(), info.Size(), info.ModTime().UnixNano())
	}
	return b.String()
}

// programsVar names a folder with the programs attacker and probe, for a machine without Go.
const programsVar = "HOSTILE_PROGRAMS"

func (h *house) buildPrograms() error {
	if dir := os.Getenv(programsVar); dir != "" {
		h.programs["attacker"], h.programs["probe"] = filepath.Join(dir, "attacker"), filepath.Join(dir, "probe")
		return nil
	}
	for name, source := range map[string]string{"attacker": "haggle/internal/hostile/attacker", "probe": "haggle/runtime/runtimetest/probe"} {
		path := filepath.Join(h.dir, name)
		cmd := exec.CommandContext(context.Background(), "go", "build", "-ldflags", "-s -w", "-o", path, source)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", name, err, out)
		}
		h.programs[name] = path
	}
	return nil
}

// openFirst starts the house's containerd with the engine that has every protection. Then it lowers our own bound on open
// files, which engines take over for their jobs, below that of containerd, which jobs without a bound have.
func (h *house) openFirst() error {
	e, err := h.open("full")
	h.engine = e
	return errors.Join(err, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 4096, Max: 4096}))
}

// weak is the name of engines that lack something.
const weak = "weak"

// open makes an engine without the named protections. The first one starts the containerd that all use.
func (h *house) open(name string, without ...string) (*engine, error) {
	dir := filepath.Join(h.dir, name)
	cfg := containerd.Config{
		Root: h.dir + "/root", State: h.dir + "/state", LogDir: dir + "/logs",
		LoggerPath: h.programs["probe"], LoggerArgs: []string{"logger"},
		CgroupParent:  "/haggle-test-" + filepath.Base(h.dir) + "-" + name,
		MaxImageBytes: 96 << 20, MaxImageFiles: 2000,
		Log: slog.New(slog.NewTextHandler(h.log, nil)),
	}
	if h.engine != nil {
		cfg.Address = h.engine.cfg.State + "/containerd.sock"
		cfg.Root, cfg.State = "", ""
		cfg.Namespace, cfg.RuncRoot, cfg.VolumeDir = "haggle-"+name, dir+"/runc", dir+"/disks"
		cfg.IDBase = 0x7800_0000 // its jobs are other users than those of the first
	}
	if name != weak { // the many would check themselves in vain
		cfg.CheckProgram = []string{h.programs["attacker"], "check", "--lan", lanHost + ":80", "--rig", rigLAN + ":22", "--rig", rigPublic + ":22"}
	}
	if name == "full" { // what is tried on jobs is tried on those that were spares, too
		cfg.Spares, cfg.WaitProgram = 1, []string{h.programs["attacker"], "wait"}
	}
	e := &engine{cfg: cfg}
	if err := h.wire(e, name, without); err != nil {
		return nil, err
	}
	var err error
	if e.Engine, err = containerd.New(e.cfg); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	e.end = sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-done, e.Close())
	})
	wait, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if err := e.Ready(wait); err != nil {
		return nil, errors.Join(err, e.end())
	}
	return e, nil
}

// close removes all that the engine has, but the containerd of the first one.
func (e *engine) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(e.Purge(ctx), e.end())
}

func (h *house) importAttacker() error {
	var err error
	h.image, err = h.bring(h.engine, "attacker", h.attackerImage())
	return err
}

// bring imports an image into an engine.
func (h *house) bring(e *engine, name string, img image) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := e.Import(ctx, "haggle.test/"+name+":1", bytes.NewReader(img.archive()))
	return got.Digest, err
}

// startGuard starts a process of the host that attackers try to reach.
func (h *house) startGuard() error {
	h.guard = exec.CommandContext(context.Background(), h.programs["probe"], "stubborn")
	h.guard.Env = []string{"GUARD=secret of the host"}
	return h.guard.Start()
}

func (h *house) takeDown() error {
	var errs []error
	if h.engine != nil {
		errs = append(errs, h.engine.close())
	}
	if h.guard != nil && h.guard.Process != nil {
		_ = h.guard.Process.Kill()
		_ = h.guard.Wait()
	}
	errs = append(errs, h.world.takeDown(), h.cards.takeDown())
	for _, pattern := range []string{"/sys/fs/cgroup/*/haggle-test-", "/sys/fs/cgroup/haggle-test-"} {
		if left, _ := filepath.Glob(pattern + filepath.Base(h.dir) + "*"); len(left) > 0 {
			errs = append(errs, fmt.Errorf("left behind: %q", left))
		}
	}
	for _, trace := range traces() {
		if !slices.Contains(h.before, trace) {
			errs = append(errs, fmt.Errorf("left behind: %s", trace))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(h.dir))...)
}

// traces lists what engines of this suite could leave on the machine.
func traces() []string {
	var all []string
	for _, file := range []string{"/proc/self/mountinfo", "/proc/net/dev"} {
		b, _ := os.ReadFile(file)
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, "/tmp/hghost") || strings.Contains(line, "hgh") {
				all = append(all, file+": "+strings.TrimSpace(line))
			}
		}
	}
	namespaces, _ := filepath.Glob("/run/netns/hgh*")
	nodes, _ := filepath.Glob("/dev/haggle-test-hgh*")
	hooks, _ := filepath.Glob("/var/lib/haggle-test-hgh*")
	all = slices.Concat(all, namespaces, nodes, hooks)
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, f := range loops {
		if b, _ := os.ReadFile(f); strings.Contains(string(b), "hghost") {
			all = append(all, f+": "+strings.TrimSpace(string(b)))
		}
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range lines {
		if b, _ := os.ReadFile(f); strings.Contains(string(b), "/tmp/hghost") {
			all = append(all, f+": "+string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
		}
	}
	return all
}

// logBook keeps the last words of the engines for when a test fails.
type logBook struct {
	mu   sync.Mutex
	last []string
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last = append(l.last, string(bytes.TrimSpace(p))); len(l.last) > 60 {
		l.last = l.last[1:]
	}
	return len(p), nil
}

func (l *logBook) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, "\n")
}

var _ io.Writer = (*logBook)(nil)

// spec is a job as attackers order it: small, so that every bound is soon met.
func (h *house) spec(e *engine, args ...string) runtime.Spec {
	return runtime.Spec{
		ID: fmt.Sprintf("hostile-%d-%d", os.Getpid(), h.jobs.Add(1)), Image: h.image, Args: args,
		CPUMillis: 1000, MemoryBytes: 192 << 20, Pids: 200, ShmBytes: 32 << 20, LogLimitBytes: 4 << 20, DiskBytes: 64 << 20,
	}
}
