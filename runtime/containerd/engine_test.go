//go:build linux

package containerd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"haggle/runtime"
	"haggle/runtime/archive"
	"haggle/runtime/containerd"
)

func TestAJobAndItsLogOutliveTheProgramThatStartedThem(t *testing.T) {
	w := newWorld(t)
	w.start(t, "counter", "count", "20")
	w.start(t, "short", "polite")
	w.read(t, "short", 0, "ready")
	first, offset := w.read(t, "counter", 0, "\n5\n")
	w.end()
	// While nobody looks, one job goes on and the other ends.
	pids := jobProcesses(t, w.cfg.CgroupParent+"/short")
	if len(pids) == 0 {
		t.Fatal("the second job has no process")
	}
	if err := syscall.Kill(pids[0], syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, pids[0])

	w.open(t)
	st, err := w.engine.Status(w.context(t), "counter")
	if err != nil || st.State != runtime.Running || st.StartedAt.IsZero() {
		t.Errorf("adopted as %+v: %v", st, err)
	}
	rest, _ := w.read(t, "counter", offset, fmt.Sprintf("\n%d\n", lastNumber(t, first)+20))
	wantCount(t, first+rest)
	st, err = w.engine.Status(w.context(t), "short")
	if err != nil || st.Exit == nil || st.Exit.Code != 143 || st.ExitedAt.IsZero() {
		t.Errorf("the other ended as %+v, %+v: %v", st, st.Exit, err)
	}
	if u, err := w.engine.Usage(w.context(t), "short"); err != nil || u.CPUNanos == 0 {
		t.Errorf("usage of the other %+v: %v", u, err)
	}
}

func TestAJobAndItsLogOutliveContainerd(t *testing.T) {
	w := newWorld(t)
	w.start(t, "counter", "count", "20")
	w.start(t, "short", "polite")
	w.read(t, "short", 0, "ready")
	first, offset := w.read(t, "counter", 0, "\n5\n")
	events, err := w.engine.Watch(w.context(t))
	if err != nil {
		t.Fatal(err)
	}
	old := daemonPID(t, w)
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	pids := jobProcesses(t, w.cfg.CgroupParent+"/short")
	if len(pids) == 0 {
		t.Fatal("the second job has no process")
	}
	if err := syscall.Kill(pids[0], syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for open := true; open; {
		_, open = <-events // the engine says that it was lost
	}
	if err := w.engine.Ready(w.context(t)); err != nil {
		t.Fatal(err)
	}
	if daemonPID(t, w) == old {
		t.Error("containerd was not started again")
	}
	rest, _ := w.read(t, "counter", offset, fmt.Sprintf("\n%d\n", lastNumber(t, first)+20))
	wantCount(t, first+rest)
	if st := w.awaitExit(t, "short"); st.Exit == nil || st.Exit.Code != 143 {
		t.Errorf("the other ended as %+v, %+v", st, st.Exit)
	}
	if err := w.engine.Kill(w.context(t), "counter"); err != nil {
		t.Error(err)
	}
}

func TestThePurgeNeedsNoContainerd(t *testing.T) {
	w := newWorld(t)
	w.start(t, "stubborn", "stubborn")
	w.read(t, "stubborn", 0, "ready")
	w.end()
	if err := syscall.Kill(daemonPID(t, w), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// The fixture purges and checks what is left. It needs an engine, but none that runs.
	e, err := containerd.New(w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.engine = e
	w.end = func() { _ = e.Close() }
}

func TestAShimThatIsKilledEndsItsJob(t *testing.T) {
	w := newWorld(t)
	w.start(t, "victim", "stubborn")
	w.read(t, "victim", 0, "ready")
	job := jobProcesses(t, w.cfg.CgroupParent+"/victim")
	shim := parentOf(t, job[0])
	if err := syscall.Kill(shim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	st := w.awaitExit(t, "victim")
	if st.Exit == nil || st.Exit.Code != 137 {
		t.Errorf("ended as %+v, %+v", st, st.Exit)
	}
	awaitGone(t, job[0])
}

func TestAJobIsShutIn(t *testing.T) {
	w := newWorld(t)
	w.start(t, "status", "status")
	out, _ := w.read(t, "status", 0, "")
	for _, want := range []string{"CapEff:\t00000000000000cb", "CapBnd:\t00000000000000cb", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	w.start(t, "net", "stubborn")
	w.read(t, "net", 0, "ready")
	pid := jobProcesses(t, w.cfg.CgroupParent+"/net")[0]
	for _, ns := range []string{"net", "pid", "ipc", "uts", "mnt", "cgroup"} {
		inside, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, ns))
		if err != nil {
			t.Fatal(err)
		}
		if own, err := os.Readlink("/proc/self/ns/" + ns); err != nil || own == inside {
			t.Errorf("the job shares our %s namespace (%v)", ns, err)
		}
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", pid))
	if err != nil || strings.Count(string(b), ":") != 1 {
		t.Errorf("the job has more than a loopback: %s (%v)", b, err)
	}
}

func TestACommandThatIsNotThereIsTheJobsFault(t *testing.T) {
	w := newWorld(t)
	var b bytes.Buffer
	if _, err := archive.Write(&b, archive.Image{Files: []archive.File{probeFile(t)}}); err != nil {
		t.Fatal(err)
	}
	img, err := w.engine.Import(w.context(t), "haggle.test/bare:1", &b)
	if err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]runtime.Spec{
		"no command":            {},
		"an unknown command":    {Args: []string{"nowhere"}},
		"an unknown path":       {Args: []string{"/nowhere/at/all"}},
		"a file without rights": {Args: []string{"/etc/passwd"}},
	} {
		spec.ID, spec.Image = "bad", img.Digest
		err := w.engine.Create(w.context(t), spec)
		if err == nil {
			err = w.engine.Start(w.context(t), "bad")
		}
		if !errors.Is(err, runtime.ErrInvalidSpec) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.engine.Remove(w.context(t), "bad"); err != nil {
			t.Error(err)
		}
	}
	if list, err := w.engine.List(w.context(t)); err != nil || len(list) > 0 {
		t.Errorf("left %+v: %v", list, err)
	}
}

func TestAGivenContainerdIsUsedAndLeftAlone(t *testing.T) {
	host := newWorld(t)
	dir := t.TempDir()
	guest := &world{cfg: containerd.Config{
		Address: filepath.Join(host.cfg.State, "containerd.sock"), Namespace: "guest", LogDir: dir + "/logs", RuncRoot: dir + "/runc",
		VolumeDir:  dir + "/disks",
		LoggerPath: probeBinary(t), LoggerArgs: []string{"logger"}, CgroupParent: host.cfg.CgroupParent + "-guest",
	}}
	guest.open(t)
	defer func() { guest.end() }()
	guest.start(t, "job", "polite")
	host.start(t, "job", "polite") // the same id in another namespace
	guest.read(t, "job", 0, "ready")
	if err := guest.engine.Purge(guest.context(t)); err != nil {
		t.Error(err)
	}
	if imgs, err := guest.engine.Images(guest.context(t)); err != nil || len(imgs) > 0 {
		t.Errorf("left images %+v: %v", imgs, err)
	}
	if st, err := host.engine.Status(host.context(t), "job"); err != nil || st.State != runtime.Running {
		t.Errorf("the neighbour is %+v: %v", st, err)
	}
}

func TestNothingAnswersBeforeTheEngineRuns(t *testing.T) {
	dir := t.TempDir()
	e, err := containerd.New(containerd.Config{
		Root: dir + "/r", State: dir + "/s", Socket: dir + "/x.sock", LogDir: dir + "/l", LoggerPath: "/bin/true", LoggerArgs: []string{"logger"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.List(t.Context()); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("list: %v", err)
	}
	if _, err := e.Watch(t.Context()); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("watch: %v", err)
	}
	spec := runtime.Spec{ID: "a", Image: "sha256:" + strings.Repeat("00", 32)}
	if err := e.Create(t.Context(), spec); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("create: %v", err)
	}
}

// jobProcesses are the processes in a cgroup, of whichever version.
func jobProcesses(t *testing.T, cgroup string) []int {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup"} {
		b, err := os.ReadFile(root + cgroup + "/cgroup.procs")
		if err != nil {
			continue
		}
		var pids []int
		for s := range strings.FieldsSeq(string(b)) {
			pid, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		return pids
	}
	t.Fatalf("no cgroup %s", cgroup)
	return nil
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	ppid, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	return ppid
}

func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d does not end", pid)
		}
	}
}

func daemonPID(t *testing.T, w *world) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.cfg.State, "containerd.pid"))
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	return p.PID
}

// wantCount checks that text is 1, 2, 3… without a gap.
func wantCount(t *testing.T, text string) {
	t.Helper()
	for i, s := range strings.Fields(text) {
		if s != strconv.Itoa(i+1) {
			t.Fatalf("number %d is %s", i+1, s)
		}
	}
}

func lastNumber(t *testing.T, text string) int {
	t.Helper()
	f := strings.Fields(text)
	n, err := strconv.Atoi(f[len(f)-1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNothingIsLeftOfRemovedJobs(t *testing.T) {
	networks := newNetworks(t)
	w := newWorld(t)
	w.end()
	w.cfg.Networks = networks
	w.open(t)
	image := w.image(t)
	before := w.remains(t)
	cycles := 12
	if full() {
		cycles = 100
	}
	for i := range cycles {
		spec := victimSpec(fmt.Sprintf("cycle-%d", i), image, runtime.NetworkInternet)
		ctx := w.context(t)
		if err := errors.Join(w.engine.Create(ctx, spec), w.engine.Start(ctx, spec.ID)); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // the others are killed by their removal
			if err := w.engine.Kill(ctx, spec.ID); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.engine.Remove(ctx, spec.ID); err != nil {
			t.Fatal(err)
		}
		w.wantNoFiles(t, spec.ID)
	}
	w.wantRemains(t, before)
}

func TestAnImageThatCannotRunHereIsRefused(t *testing.T) {
	w := newWorld(t)
	pack := func(img archive.Image) *bytes.Buffer {
		var b bytes.Buffer
		img.Files = []archive.File{probeFile(t)}
		if _, err := archive.Write(&b, img); err != nil {
			t.Fatal(err)
		}
		return &b
	}
	_, err := w.engine.Import(w.context(t), "haggle.test/foreign:1", pack(archive.Image{Architecture: "s390x"}))
	if !errors.Is(err, runtime.ErrBadArchive) {
		t.Errorf("an image for another machine: %v", err)
	}
	whole := pack(archive.Image{})
	whole.Truncate(whole.Len() / 2)
	if _, err := w.engine.Import(w.context(t), "haggle.test/half:1", whole); !errors.Is(err, runtime.ErrBadArchive) {
		t.Errorf("half an archive: %v", err)
	}
	if imgs, err := w.engine.Images(w.context(t)); err != nil || len(imgs) > 0 {
		t.Errorf("left %+v: %v", imgs, err)
	}
	img, err := w.engine.Import(w.context(t), "haggle.test/odd:1", pack(archive.Image{Workdir: "../up", Entrypoint: []string{"/probe"}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.engine.Create(w.context(t), runtime.Spec{ID: "odd", Image: img.Digest}); !errors.Is(err, runtime.ErrInvalidSpec) {
		t.Errorf("a relative working directory: %v", err)
	}
}
