package train_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/lab/train"
)

// output is what one run left behind.
type output struct {
	code     int
	out, err string
}

// trained runs as fast as possible with the checkpoint in a fresh folder unless args name another.
func trained(t *testing.T, args ...string) output {
	t.Helper()
	args = append([]string{"--step-time", "0", "--checkpoint", filepath.Join(t.TempDir(), "ckpt.json")}, args...)
	var out, err bytes.Buffer
	code := train.Run(t.Context(), args, &out, &err, nil)
	return output{code, out.String(), err.String()}
}

func (o output) steps(t *testing.T) (losses, accs []float64) {
	t.Helper()
	for line := range strings.Lines(o.out) {
		var step, steps int
		var loss, acc float64
		if _, err := fmt.Sscanf(line, "step %d/%d loss %f acc %f", &step, &steps, &loss, &acc); err != nil {
			t.Fatalf("line %q is not a step: %v", line, err)
		}
		losses, accs = append(losses, loss), append(accs, acc)
	}
	return losses, accs
}

func TestLossFallsAndUnseenPicturesAreReadRight(t *testing.T) {
	for _, seed := range []string{"1", "2"} {
		got := trained(t, "--steps", "20", "--seed", seed)
		losses, accs := got.steps(t)
		if got.code != 0 || len(losses) != 20 {
			t.Fatalf("seed %s: code %d, %d steps; stderr:\n%s", seed, got.code, len(losses), got.err)
		}
		if losses[0] < 2 || losses[9] > losses[0]*0.8 || losses[19] > losses[9]*0.8 {
			t.Errorf("seed %s: loss went %v, %v, %v", seed, losses[0], losses[9], losses[19])
		}
		if accs[19] < 0.5 {
			t.Errorf("seed %s: %v of the unseen pictures read right", seed, accs[19])
		}
	}
}

func TestTheSameSeedGivesTheSameNumbers(t *testing.T) {
	one, same, other := trained(t, "--steps", "3"), trained(t, "--steps", "3"), trained(t, "--steps", "3", "--seed", "9")
	if one.out != same.out {
		t.Errorf("two runs differ:\n%s\n%s", one.out, same.out)
	}
	if one.out == other.out {
		t.Errorf("another seed gave the same numbers:\n%s", one.out)
	}
}

func TestAResumedRunEndsLikeOneThatWasNotStopped(t *testing.T) {
	whole, parts := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "parts")
	all := trained(t, "--steps", "12", "--checkpoint", whole)
	first := trained(t, "--steps", "7", "--checkpoint", parts)
	second := trained(t, "--steps", "12", "--checkpoint", parts, "--resume")
	if !strings.Contains(second.err, "resuming from step 7\n") {
		t.Errorf("stderr says nothing of resuming:\n%s", second.err)
	}
	if joined := strings.ReplaceAll(first.out, "/7 ", "/12 ") + second.out; joined != all.out {
		t.Errorf("in one piece:\n%sin two:\n%s", all.out, joined)
	}
	want, got := read(t, whole), read(t, parts)
	if want != got {
		t.Error("the two checkpoints differ")
	}
}

func TestResumingWithoutACheckpointStartsFromTheBeginning(t *testing.T) {
	got := trained(t, "--steps", "2", "--resume")
	if got.code != 0 || !strings.Contains(got.err, "starting from step 0") {
		t.Errorf("code %d, stderr:\n%s", got.code, got.err)
	}
}

func TestRefusesACheckpointThatIsNotOne(t *testing.T) {
	for name, text := range map[string]string{
		"text":           "hello",
		"another format": `{"format":"else/1","step":1}`,
		"no model":       `{"format":"haggle-train/1","step":1}`,
		"negative step":  `{"format":"haggle-train/1","step":-1,"model":{}}`,
		"endless":        `{"format":"haggle-train/1","x":"` + strings.Repeat("a", 5<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ckpt.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			got := trained(t, "--resume", "--checkpoint", path)
			if got.code != 1 || !strings.Contains(got.err, path) || got.out != "" {
				t.Errorf("code %d, stdout %q, stderr:\n%s", got.code, got.out, got.err)
			}
			if read(t, path) != text {
				t.Error("the refused file was changed")
			}
		})
	}
}

func TestEndsWithTheCodeThatWasAskedFor(t *testing.T) {
	if got := trained(t, "--steps", "1", "--exit", "7"); got.code != 7 {
		t.Errorf("code %d, want 7", got.code)
	}
}

func TestRefusesArgumentsItDoesNotUnderstand(t *testing.T) {
	for _, args := range [][]string{
		{"--steps", "0"},
		{"--steps", "many"},
		{"--exit", "256"},
		{"--step-time", "-1s"},
		{"--mem", "-1"},
		{"--lines-per-step", "0"},
		{"--checkpoint", ""},
		{"--nonsense"},
		{"extra"},
	} {
		if got := trained(t, args...); got.code != 2 || got.out != "" || got.err == "" {
			t.Errorf("%q: code %d, stdout %q, stderr %q", args, got.code, got.out, got.err)
		}
	}
	if got := trained(t, "--help"); got.code != 0 || !strings.Contains(got.err, "-ignore-term") {
		t.Errorf("--help: code %d, stderr %q", got.code, got.err)
	}
}

func TestPrintsAsManyLinesAStepAsAskedFor(t *testing.T) {
	got := trained(t, "--steps", "3", "--lines-per-step", "5")
	if n := strings.Count(got.out, "\n"); n != 15 {
		t.Errorf("%d lines, want 15:\n%s", n, got.out)
	}
}

func TestSaysThatCardsAreSimulatedAndNumbersAreTheCPUs(t *testing.T) {
	t.Setenv("HAGGLE_CARDS", "SIM-1,GPU-2")
	got := trained(t, "--steps", "1", "--mem", "1").err
	for _, want := range []string{
		`card "SIM-1" is simulated; all numbers are computed on the CPU`,
		`card "GPU-2" is left idle; all numbers are computed on the CPU`, "holding 1 MB",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("stderr lacks %q:\n%s", want, got)
		}
	}
}

func TestFailsWhenItCannotSaveOrPrint(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing", "ckpt.json")
	if got := trained(t, "--steps", "1", "--checkpoint", missing); got.code != 1 || !strings.Contains(got.err, missing) {
		t.Errorf("no folder: code %d, stderr:\n%s", got.code, got.err)
	}
	var talk bytes.Buffer
	path := filepath.Join(t.TempDir(), "ckpt.json")
	if code := train.Run(t.Context(), []string{"--checkpoint", path}, closed{}, &talk, nil); code != 1 {
		t.Errorf("closed stdout: code %d, stderr:\n%s", code, talk.String())
	}
}

// started begins a run in a bubble; its result comes on the channel.
func started(ctx context.Context, signals <-chan os.Signal, args ...string) <-chan output {
	done := make(chan output, 1)
	go func() {
		var out, err bytes.Buffer
		code := train.Run(ctx, args, &out, &err, signals)
		done <- output{code, out.String(), err.String()}
	}()
	return done
}

func TestAStepTakesItsTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ckpt.json")
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		got := <-started(t.Context(), nil, "--steps", "15", "--step-time", "3s", "--checkpoint", path)
		if took := time.Since(begun); took != 45*time.Second || got.code != 0 {
			t.Errorf("took %v, want 45s; code %d", took, got.code)
		}
		if !strings.Contains(got.err, "step 10\n") || !strings.Contains(got.err, "step 15\n") {
			t.Errorf("not saved at steps 10 and 15:\n%s", got.err)
		}
	})
}

func TestASignalSavesAndStopsInMidStep(t *testing.T) {
	for name, c := range map[string]struct {
		send os.Signal
		code int
	}{
		"SIGTERM": {syscall.SIGTERM, 143},
		"SIGINT":  {os.Interrupt, 130},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ckpt.json")
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal, 2)
				begun := time.Now()
				done := started(t.Context(), signals, "--step-time", "10s", "--checkpoint", path)
				time.Sleep(25 * time.Second)
				signals <- syscall.SIGURG // means nothing to a job
				signals <- c.send
				got := <-done
				if took := time.Since(begun); took != 25*time.Second || got.code != c.code {
					t.Errorf("took %v, code %d, want 25s and %d", took, got.code, c.code)
				}
				if losses, _ := got.steps(t); len(losses) != 3 || !strings.Contains(got.err, "saved "+path+" at step 3\n") {
					t.Errorf("%d steps; stderr:\n%s", len(losses), got.err)
				}
			})
		})
	}
}

func TestIgnoresSIGTERMWhenTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ckpt.json")
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		signals <- syscall.SIGTERM
		close(signals)
		got := <-started(t.Context(), signals, "--ignore-term", "--steps", "4", "--checkpoint", path)
		if got.code != 0 || !strings.Contains(got.err, "going on because of --ignore-term") {
			t.Errorf("code %d, stderr:\n%s", got.code, got.err)
		}
	})
}

func TestStopsWhenItsContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ckpt.json")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got := <-started(ctx, nil, "--ignore-term", "--checkpoint", path)
		if got.code != 143 || !strings.Contains(got.err, "saved") {
			t.Errorf("code %d, stderr:\n%s", got.code, got.err)
		}
	})
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// closed is a pipe whose reader has gone.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
