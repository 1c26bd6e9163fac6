//go:build linux

package containerd_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"haggle/runtime"
	"haggle/runtime/containerd"
)

// enter opens a path that is closed with the test, or when that takes too long.
func (w *world) enter(t *testing.T, id string) runtime.Conn {
	t.Helper()
	c, err := w.engine.Enter(w.context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = c.Close() })
	t.Cleanup(func() {
		late.Stop()
		_ = c.Close()
	})
	return c
}

// ask sends one question over a path of its own.
func (w *world) ask(t *testing.T, id, question string) string {
	t.Helper()
	answer, err := ask(w.context(t), w.engine, id, question)
	if err != nil {
		t.Errorf("ask job %s %q: %v", id, question, err)
	}
	return answer
}

func ask(ctx context.Context, e *containerd.Engine, id, question string) (string, error) {
	c, err := e.Enter(ctx, id)
	if err != nil {
		return "", err
	}
	late := time.AfterFunc(patience, func() { _ = c.Close() })
	defer late.Stop()
	_, err = io.WriteString(c, question)
	answer, rerr := io.ReadAll(c)
	return strings.TrimSpace(string(answer)), errors.Join(err, rerr, c.Close())
}

// doors lists the doors in the jobs of this world.
func (w *world) doors(t *testing.T) []int {
	t.Helper()
	var pids []int
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		line, _ := os.ReadFile(f)
		cgroups, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cgroup"))
		if !bytes.Contains(line, []byte("\x00@haggle-door-")) || !strings.Contains(string(cgroups), w.cfg.CgroupParent+"/") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// alive reports whether a process is there, if only for its parent to look at: its last thread may still hold what it had open.
func alive(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

func TestTheDoorStaysWhenTheEngineIsKilled(t *testing.T) {
	w := newWorld(t)
	image := w.image(t)
	w.end()
	bare := w.cfg
	bare.Log = nil
	cmd, lines := startVictim(t, victim{Config: bare, Image: image, Prefix: "k", Do: doHold})
	id, err := lines.ReadString('\n')
	entered, rerr := lines.ReadString('\n')
	if err = errors.Join(err, rerr, cmd.Process.Kill()); err != nil || entered != "entered\n" {
		t.Fatalf("the engine says %q: %v", entered, err)
	}
	_ = cmd.Wait() // it was killed
	w.open(t)
	id = strings.TrimSpace(id)
	if got := w.ask(t, id, "count\n"); got != "2" {
		t.Errorf("after the engine was killed, the path is number %s of its door", got)
	}
	if n := len(w.doors(t)); n != 1 {
		t.Errorf("there are %d doors", n)
	}
	if err := w.engine.Kill(w.context(t), id); err != nil {
		t.Fatal(err)
	}
	for n := range 2 { // the visit to its disk, too
		if got := w.ask(t, id, "count\n"); got != fmt.Sprint(n+1) {
			t.Errorf("visit %d is number %s of its door", n+1, got)
		}
		w.end()
		w.open(t)
	}
}

// hold is what a victim does that stays with one job.
func hold(ctx context.Context, e *containerd.Engine, spec runtime.Spec) error {
	if err := errors.Join(e.Create(ctx, spec), e.Start(ctx, spec.ID)); err != nil {
		return err
	}
	if _, err := ask(ctx, e, spec.ID, "count\n"); err != nil {
		return err
	}
	fmt.Println("entered")
	<-ctx.Done()
	return ctx.Err()
}

func TestADoorThatWasKilledIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.start(t, "open", "polite")
	for range 3 {
		path := w.enter(t, "open")
		if got := w.ask(t, "open", "count\n"); got != "2" {
			t.Errorf("the second path is number %s of its door", got)
		}
		doors := w.doors(t)
		if len(doors) != 1 {
			t.Fatalf("there are doors %d", doors)
		}
		if err := syscall.Kill(doors[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if n, err := path.Read(make([]byte, 1)); err == nil {
			t.Errorf("a path without a door gives %d bytes", n)
		}
		// Its paths are closed before its socket is: who enters in between meets it dying.
		for ctx := w.context(t); alive(doors[0]) && ctx.Err() == nil; {
			goruntime.Gosched()
		}
	}
	if st, err := w.engine.Status(w.context(t), "open"); err != nil || st.State != runtime.Running {
		t.Errorf("the end of its doors makes the job %+v: %v", st, err)
	}
	if err := w.engine.Stop(w.context(t), "open", patience); err != nil {
		t.Fatal(err)
	}
	if st := w.awaitExit(t, "open"); st.Exit == nil || *st.Exit != (runtime.Exit{Code: 143, Signal: "TERM"}) {
		t.Errorf("it ended as %+v", st.Exit)
	}
}

func TestManyPathsCarryMuchAtOnce(t *testing.T) {
	w := newWorld(t)
	w.start(t, "open", "polite")
	var all sync.WaitGroup
	for n := range 32 {
		c := w.enter(t, "open")
		all.Go(func() {
			size := int64(1 << 20)
			if n == 0 {
				size = 64 << 20
			}
			began := time.Now()
			if err := echo(c, uint64(n), size); err != nil {
				t.Errorf("path %d: %v", n, err)
			}
			if n == 0 {
				t.Logf("%d MiB there and back beside 31 others: %s", size>>20, time.Since(began))
			}
		})
	}
	all.Wait()
	if n := len(w.doors(t)); n != 1 {
		t.Errorf("there are %d doors", n)
	}
}

// echo sends bytes and wants them back.
func echo(c runtime.Conn, seed uint64, size int64) error {
	sent, got := sha256.New(), sha256.New()
	failed := make(chan error, 1)
	go func() {
		random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
		_, err := io.Copy(c, io.TeeReader(io.LimitReader(random, size), sent))
		failed <- errors.Join(err, c.CloseWrite())
	}()
	n, err := io.Copy(got, c)
	err = errors.Join(err, <-failed, c.Close())
	if err == nil && (n != size || !bytes.Equal(sent.Sum(nil), got.Sum(nil))) {
		err = fmt.Errorf("of %d bytes %d come back, or others", size, n)
	}
	return err
}

func TestAJobThatIsInItsDoorsPlaceHoldsUpNobodyElse(t *testing.T) {
	w := newWorld(t)
	w.start(t, "hostile", "polite")
	w.start(t, "other", "polite")
	if got := w.ask(t, "hostile", "count\n"); got != "1" {
		t.Fatalf("path %s", got)
	}
	// Its own processes kill the door and listen where it did, for one who never comes in.
	if err := syscall.Kill(w.doors(t)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	squat, err := w.engine.Squat(w.context(t), "hostile")
	if err != nil {
		t.Fatal(err)
	}
	defer squat.Close()
	began := time.Now()
	for n := 0; ; n++ {
		if n == 64 {
			t.Fatalf("%d paths to nobody were opened", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		c, err := w.engine.Enter(ctx, "hostile")
		cancel()
		if err != nil {
			if !errors.Is(err, runtime.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("entering where nobody comes to the door: %v", err)
			}
			break
		}
		defer c.Close()
		if got := w.ask(t, "other", "count\n"); got != fmt.Sprint(n+1) {
			t.Errorf("path %d into the other job is number %s", n+1, got)
		}
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("it took %s to give up", took)
	}
	if err := w.engine.Kill(w.context(t), "hostile"); err != nil {
		t.Error(err)
	}
}

func TestAJobWithANetworkIsEnteredAndSoIsWhatItKept(t *testing.T) {
	networks := newNetworks(t)
	w := newWorld(t)
	w.end()
	w.cfg.Networks = networks
	w.open(t)
	spec := runtime.Spec{ID: "open", Image: w.image(t), Args: []string{"polite"}, Network: runtime.Network{Mode: runtime.NetworkInternet}}
	ctx := w.context(t)
	if err := errors.Join(w.engine.Create(ctx, spec), w.engine.Start(ctx, "open")); err != nil {
		t.Fatal(err)
	}
	if got := w.ask(t, "open", "read /proc/net/dev\n"); !strings.Contains(got, "eth0:") {
		t.Errorf("the door of the job has the interfaces %q", got)
	}
	if err := w.engine.Kill(ctx, "open"); err != nil {
		t.Fatal(err)
	}
	if got := w.ask(t, "open", "read /proc/net/dev\n"); strings.Contains(got, "eth0:") || !strings.Contains(got, "lo:") {
		t.Errorf("the visit has the interfaces %q", got)
	}
}

func TestTheDoorHasTheRightsOfItsJob(t *testing.T) {
	w := newWarmWorld(t, 0)
	image := w.image(t)
	spec := func(id string) runtime.Spec {
		return runtime.Spec{
			ID: id, Image: image, Args: []string{"polite"}, Env: []string{"MINE=1"}, DiskBytes: 32 << 20, MemoryBytes: 128 << 20, Pids: 100,
		}
	}
	ctx := w.context(t)
	w.warm(t, spec("warm"))
	if err := w.engine.Create(ctx, spec("cold")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"cold", "warm"} {
		for _, step := range []func() error{
			func() error { return nil },
			func() error { return w.engine.Start(ctx, id) },
			func() error { return w.engine.Kill(ctx, id) },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
			st, err := w.engine.Status(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			status := w.ask(t, id, "read /proc/self/status\n")
			for _, want := range []string{"Uid:\t0\t0", "NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t00000000000000cb", "CapBnd:\t00000000000000cb"} {
				if !strings.Contains(status, want) {
					t.Errorf("the door of %s %s lacks %q: %s", st.State, id, want, status)
				}
			}
			if env := w.ask(t, id, "read /proc/self/environ\n"); !strings.Contains(env, "MINE=1") || strings.Contains(env, "GOMAXPROCS") {
				t.Errorf("the door of %s %s has the environment %q", st.State, id, env)
			}
			if users := strings.Fields(w.ask(t, id, "read /proc/self/uid_map\n")); len(users) != 3 || users[0] != "0" || users[2] != "65536" {
				t.Errorf("the door of %s %s has users %q", st.State, id, users)
			}
			doors := w.doors(t)
			cgroup, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", doors[len(doors)-1]))
			if err != nil || !strings.Contains(string(cgroup), w.cfg.CgroupParent+"/") {
				t.Errorf("the door of %s %s is in cgroup %s: %v", st.State, id, cgroup, err)
			}
		}
		if err := w.engine.Remove(ctx, id); err != nil {
			t.Fatal(err)
		}
		if n := len(w.doors(t)); id == "warm" && n > 0 {
			t.Errorf("%d doors are left", n)
		}
	}
}

func TestAJobThatWasMadeWithoutADoorIsNotEntered(t *testing.T) {
	w := newWorld(t)
	w.end()
	program := w.cfg.DoorProgram
	w.cfg.DoorProgram = nil
	w.open(t)
	w.start(t, "shut", "polite")
	if _, err := w.engine.Enter(w.context(t), "shut"); !errors.Is(err, runtime.ErrUnsupported) {
		t.Errorf("an engine without doors: %v", err)
	}
	w.end()
	w.cfg.DoorProgram = program
	w.open(t)
	if _, err := w.engine.Enter(w.context(t), "shut"); !errors.Is(err, runtime.ErrUnsupported) {
		t.Errorf("a job without a door: %v", err)
	}
	if err := w.engine.Kill(w.context(t), "shut"); err != nil {
		t.Fatal(err)
	}
	if got := w.ask(t, "shut", "count\n"); got != "1" {
		t.Errorf("what it kept: path %s", got)
	}
}
