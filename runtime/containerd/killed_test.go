//go:build linux

package containerd_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"haggle/runtime"
	"haggle/runtime/containerd"
	"haggle/runtime/jobnet"
)

// victimEnv makes the test program an engine that makes and removes jobs until it is killed.
const victimEnv = "HAGGLE_TEST_VICTIM"

// victim is what such a program is told.
type victim struct {
	Config containerd.Config
	// Where its networks are; empty: it has none.
	Netns, NetName, NetDir string
	Image                  string
	Prefix                 string
	// Do is what it does with each job: nothing for the whole life of it, see beVictim.
	Do string
}

// What victims do.
const (
	doHold    = "hold"    // one job is started and entered, and that is all
	doInherit = "inherit" // jobs are entered, visited, and their disks taken over
)

// beVictim runs the engine. It prints the id of each job before it makes it.
func beVictim(order string) error {
	var v victim
	if err := json.Unmarshal([]byte(order), &v); err != nil {
		return err
	}
	var mode runtime.NetworkMode
	if v.Netns != "" {
		networks, err := jobnet.New(jobnet.Config{Netns: v.Netns, Name: v.NetName, Dir: v.NetDir})
		if err != nil {
			return err
		}
		v.Config.Networks, mode = networks, runtime.NetworkInternet
	}
	e, err := containerd.New(v.Config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	go func() { _ = e.Run(ctx) }() // it ends with this program
	if err := e.Ready(ctx); err != nil {
		return err
	}
	for n := 0; ; n++ {
		spec := victimSpec(fmt.Sprintf("%s-%d", v.Prefix, n), v.Image, mode)
		fmt.Println(spec.ID)
		switch v.Do {
		case doHold:
			return hold(ctx, e, spec)
		case doInherit:
			if err := inherit(ctx, e, spec, os.Stdout); err != nil {
				return err
			}
			continue
		}
		if len(v.Config.WaitProgram) > 0 {
			if _, err := e.Warm(ctx, spec); err != nil {
				return err
			}
		}
		err := errors.Join(e.Create(ctx, spec), e.Start(ctx, spec.ID))
		if n%2 == 1 {
			err = errors.Join(err, e.Kill(ctx, spec.ID))
		}
		if err := errors.Join(err, e.Remove(ctx, spec.ID)); err != nil {
			return err
		}
	}
}

func victimSpec(id, image string, mode runtime.NetworkMode) runtime.Spec {
	return runtime.Spec{
		ID: id, Image: image, Args: []string{"stubborn"}, DiskBytes: 32 << 20, Network: runtime.Network{Mode: mode},
		Secrets: map[string][]byte{"s": []byte("secret")},
	}
}

// full reports whether the long versions of tests are asked for.
func full() bool { return os.Getenv("HAGGLE_FULL") != "" }

func TestAnEngineThatIsKilledAnywhereLeavesNothingThatASweepDoesNotFind(t *testing.T) {
	t.Run("cold", func(t *testing.T) { killAnywhere(t, nil) })
	t.Run("with spares", func(t *testing.T) { killAnywhere(t, []string{insider(t), "wait"}) })
}

// killAnywhere kills engines. With wait, their jobs are spares first.
func killAnywhere(t *testing.T, wait []string) {
	t.Helper()
	networks, network := newNetworksOf(t)
	w := newWorld(t)
	w.end()
	w.cfg.Networks = networks
	w.open(t)
	image := w.image(t)
	before := w.remains(t)
	kills := 5
	if full() {
		kills = 20
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for n := range kills {
		w.end()
		bare := w.cfg
		bare.Networks, bare.Log, bare.WaitProgram = nil, nil, wait
		v := victim{Config: bare, Image: image, Prefix: fmt.Sprintf("k%d", n), Netns: network.Netns, NetName: network.Name, NetDir: network.Dir}
		last := runVictim(t, v, random, 600*time.Millisecond)
		w.open(t)
		began := time.Now()
		// The same job again is made, or is there, whatever became of it.
		if err := w.engine.Create(w.context(t), victimSpec(last, image, runtime.NetworkInternet)); err != nil {
			t.Errorf("kill %d: create %s again: %v", n, last, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("kill %d: creating %s again took %s", n, last, took)
		}
		if _, err := w.engine.Sweep(w.context(t), func(string) bool { return false }); err != nil {
			t.Fatalf("kill %d: sweep: %v", n, err)
		}
		w.wantRemains(t, before)
	}
}

// startVictim starts such a program and returns what it says.
func startVictim(t *testing.T, v victim) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	order, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"="+string(order))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// runVictim starts an engine, kills it after a random time of at most so long, and returns the job that it was at.
func runVictim(t *testing.T, v victim, random *rand.Rand, within time.Duration) string {
	t.Helper()
	cmd, lines := startVictim(t, v)
	first, err := lines.ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		t.Fatalf("the engine said nothing: %v", err)
	}
	// The moment is what is random here, so time it must be.
	timer := time.AfterFunc(time.Duration(random.Int64N(int64(within))), func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	rest, _ := io.ReadAll(lines)
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the engine ended by itself: %v after %q", err, rest)
	}
	ids := strings.Fields(first + string(rest))
	return ids[len(ids)-1]
}

// remains lists all that jobs can leave on the machine.
func (w *world) remains(t *testing.T) []string {
	t.Helper()
	all := traces()
	for _, pattern := range []string{w.cfg.JobsDir + "/*", w.cfg.Root + "/disks/*", w.cfg.LogDir + "/*", w.cfg.State + "/runc/haggle/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	loops, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range loops {
		if b, err := os.ReadFile(l); err == nil && strings.Contains(string(b), w.cfg.Root) {
			all = append(all, "loop device of "+string(b))
		}
	}
	if w.cfg.Networks != nil {
		jobs, err := w.cfg.Networks.Jobs(w.context(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range jobs {
			all = append(all, "network of "+id)
		}
	}
	// The engine's own cgroup and processes are there as long as it is.
	return slices.DeleteFunc(all, func(s string) bool {
		return strings.HasSuffix(s, w.cfg.CgroupParent) || strings.Contains(s, "containerd --config")
	})
}

// wantRemains waits until nothing is left but what was there before: shims take their time to leave.
func (w *world) wantRemains(t *testing.T, before []string) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		left = slices.DeleteFunc(w.remains(t), func(s string) bool { return slices.Contains(before, s) })
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("left %q", left)
}
