package train

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"strings"
	"syscall"
	"time"
)

const (
	saveEvery = 10 // steps

	exitFailed = 1
	exitUsage  = 2
	exitTerm   = 128 + int(syscall.SIGTERM)
)

// Run trains until all steps are done or it is stopped, and returns the exit code of the process: the code asked for with
// --exit once all steps are done; 143 after SIGTERM, 130 after SIGINT, 143 when ctx ends; 1 when it could not print or save;
// 2 for arguments that it does not understand. args are the arguments after the program's word; --help lists them on stderr.
//
// Each step is one line on stdout, such as "step 1/20 loss 2.3977 acc 0.11", where loss is the mean over the 512 fresh pictures
// of the step and acc the share of 200 others that the model reads right after it; all else goes to stderr. A run that is stopped saves its checkpoint first.
//
// The caller registers signals; Run only receives from the channel, which may be nil. With --ignore-term it answers SIGTERM
// with a line and goes on, so a caller must not end ctx for a signal that it also sends. HAGGLE_CARDS names the cards of the
// lease, separated by commas. Run starts no goroutine.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	}
	r := &run{options: o, out: stdout, err: stderr, signals: signals}
	r.sayCards(os.Getenv("HAGGLE_CARDS"))
	held := hold(o.memMB)
	defer goruntime.KeepAlive(held)
	if o.memMB > 0 {
		r.say("holding %d MB of memory", o.memMB)
	}
	if err := r.begin(); err != nil {
		r.say("%v", err)
		return exitFailed
	}
	code, err := r.train(ctx)
	if err != nil {
		r.say("%v", err)
		return exitFailed
	}
	return code
}

// run is one training under way.
type run struct {
	options
	out, err io.Writer
	signals  <-chan os.Signal

	state  checkpoint
	saved  int // the step of the newest checkpoint on disk
	unseen []picture
}

// say prints a line of talk. It cannot fail: a job whose stderr is closed still trains.
func (r *run) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.err, format+"\n", args...)
}

// sayCards tells which card the lease gave and that the numbers do not come from it.
func (r *run) sayCards(cards string) {
	if cards == "" {
		r.say("no card was given; all numbers are computed on the CPU")
		return
	}
	for card := range strings.SplitSeq(cards, ",") {
		if strings.HasPrefix(card, "SIM-") {
			r.say("card %q is simulated; all numbers are computed on the CPU", card)
		} else {
			r.say("card %q is left idle; all numbers are computed on the CPU", card)
		}
	}
}

// hold returns mb megabytes of memory that the kernel had to provide.
func hold(mb int) []byte {
	b := make([]byte, mb*1_000_000)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	return b
}

// begin draws the pictures and takes up the checkpoint or makes a new model.
func (r *run) begin() error {
	r.state = checkpoint{Format: checkpointFormat, Seed: r.seed}
	if r.resume {
		c, err := load(r.checkpoint)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.say("no checkpoint at %s, starting from step 0", r.checkpoint)
		case err != nil:
			return err
		default:
			r.say("resuming from step %d", c.Step)
			r.state, r.saved = *c, c.Step
		}
	}
	// The test, the first weights and each step have a stream of their own, so that a resumed run draws the same numbers.
	r.unseen = draw(r.stream(0), 200)
	if r.state.Model == nil {
		r.state.Model = newModel(r.stream(1))
	}
	return nil
}

func (r *run) stream(n uint64) *rand.Rand { return rand.New(rand.NewPCG(r.state.Seed, n)) }

// train takes the steps that are left.
func (r *run) train(ctx context.Context) (int, error) {
	for r.state.Step < r.steps {
		begun := time.Now()
		loss := r.state.Model.learn(draw(r.stream(uint64(r.state.Step)+2), 512))
		r.state.Step++
		if err := r.print(loss); err != nil {
			return exitFailed, err
		}
		if r.state.Step%saveEvery == 0 {
			if err := r.save(); err != nil {
				return exitFailed, err
			}
		}
		if code, stopped := r.wait(ctx, r.stepTime-time.Since(begun)); stopped {
			return code, r.save()
		}
	}
	return r.exit, r.save()
}

// print writes the step's lines: the step itself, then as many more as were asked for.
func (r *run) print(loss float64) error {
	acc := r.state.Model.accuracy(r.unseen)
	if _, err := fmt.Fprintf(r.out, "step %d/%d loss %.4f acc %.2f\n", r.state.Step, r.steps, loss, acc); err != nil {
		return fmt.Errorf("print step %d: %w", r.state.Step, err)
	}
	for line := 2; line <= r.linesPerStep; line++ {
		if _, err := fmt.Fprintf(r.out, "step %d/%d line %d/%d\n", r.state.Step, r.steps, line, r.linesPerStep); err != nil {
			return fmt.Errorf("print step %d: %w", r.state.Step, err)
		}
	}
	return nil
}

// save writes the checkpoint unless the file holds this step already.
func (r *run) save() error {
	if r.saved == r.state.Step {
		return nil
	}
	if err := r.state.save(r.checkpoint); err != nil {
		return err
	}
	r.saved = r.state.Step
	r.say("saved %s at step %d", r.checkpoint, r.state.Step)
	return nil
}

// wait lets the rest of a step's time pass. It returns early, with the exit code, when the run is to stop.
func (r *run) wait(ctx context.Context, rest time.Duration) (code int, stopped bool) {
	timer := time.NewTimer(max(rest, 0))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			r.say("stopping: %v", context.Cause(ctx))
			return exitTerm, true
		case sig, ok := <-r.signals:
			if code, stopped = r.obey(sig, ok); stopped {
				return code, true
			}
		case <-timer.C:
			return 0, false
		}
	}
}

// obey decides what a signal means for the run; ok is false once the channel was closed.
func (r *run) obey(sig os.Signal, ok bool) (code int, stopped bool) {
	switch {
	case !ok:
		r.signals = nil // a nil channel is never ready again
		return 0, false
	case sig == syscall.SIGTERM && r.ignoreTerm:
		r.say("told to stop (SIGTERM), going on because of --ignore-term")
		return 0, false
	case sig == syscall.SIGTERM:
		r.say("told to stop (SIGTERM) at step %d", r.state.Step)
		return exitTerm, true
	case sig == os.Interrupt:
		r.say("interrupted at step %d", r.state.Step)
		return 128 + int(syscall.SIGINT), true
	default:
		return 0, false
	}
}
