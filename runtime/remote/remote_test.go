//go:build linux

package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/runtime"
	"haggle/runtime/archive"
	"haggle/runtime/remote"
	"haggle/runtime/runtimetest"
)

func TestTheClientConformsWithAFakeBehindTheSocket(t *testing.T) {
	runtimetest.Conformance(t, runtimetest.Subject{
		Runtime:  pair(t, remote.Config{Runtime: newEngine(t)}),
		Program:  archive.File{Size: 1, Open: func() (io.ReadCloser, error) { return text("x"), nil }},
		Patience: patience,
	})
}

func TestASpecCrossesWhole(t *testing.T) {
	e := newEngine(t)
	e.create = func(context.Context) error { return nil }
	c := pair(t, remote.Config{Runtime: e})
	spec := runtime.Spec{
		ID: "whole", Labels: map[string]string{"lease": "l"}, Image: e.image.Digest,
		Args: []string{"", "a b", "\xff\xfe not UTF-8", "<&>\u2028"}, Env: []string{"A=\x80", "B="}, Workdir: "/srv",
		Devices: []runtime.DeviceID{{Class: "nvidia.com/gpu", UUID: "GPU-1"}}, CPUMillis: 1500, MemoryBytes: 1 << 30, Pids: 77,
		ShmBytes: 1 << 20, LogLimitBytes: 1 << 16, DiskBytes: 1 << 30, From: "before",
		Network: runtime.Network{Mode: runtime.NetworkInternet, UpBits: 1e6, DownBits: 1e7},
		Secrets: map[string][]byte{"token": []byte("s3cr\x00t\xff"), "empty": {}},
	}
	all := reflect.ValueOf(spec)
	for i := range all.NumField() {
		if all.Field(i).IsZero() {
			t.Fatalf("this test does not set %s", all.Type().Field(i).Name)
		}
	}
	if err := c.Create(within(t), spec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]runtime.Spec{spec}, e.created); diff != "" {
		t.Error(diff)
	}
}

func TestTheLargestSpecCrosses(t *testing.T) {
	e := newEngine(t)
	e.create = func(context.Context) error { return nil }
	c := pair(t, remote.Config{Runtime: e})
	spec := e.spec("large")
	for range runtime.MaxCommandSize / (64 << 10) {
		spec.Args = append(spec.Args, strings.Repeat("\xff", 64<<10))
	}
	spec.Secrets = map[string][]byte{}
	for i := range runtime.MaxSecrets {
		spec.Secrets[fmt.Sprint("s", i)] = make([]byte, runtime.MaxSecretBytes)
	}
	spec.Labels = map[string]string{}
	for i := range runtime.MaxLabels {
		spec.Labels[fmt.Sprint("l", i)] = strings.Repeat("<", runtime.MaxLabelBytes)
	}
	if err := c.Create(within(t), spec); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual([]runtime.Spec{spec}, e.created) {
		t.Error("it arrives changed")
	}
}

func TestErrorsAreTheSameOnBothSides(t *testing.T) {
	e := newEngine(t)
	c := pair(t, remote.Config{Runtime: e})
	for _, class := range []error{
		runtime.ErrInvalidSpec, runtime.ErrImageNotFound, runtime.ErrBadArchive, runtime.ErrConflict, runtime.ErrNotFound,
		runtime.ErrUnavailable, runtime.ErrUnsupported, runtime.ErrNoDevice, runtime.ErrDeviceBusy, runtime.ErrPolicy,
		runtime.ErrNoRoom, runtime.ErrImageTooBig, os.ErrInvalid,
	} {
		want := fmt.Errorf("job a: %w: %w", class, errors.New("because"))
		e.Fail("Status", want)
		_, err := c.Status(within(t), "a")
		if !errors.Is(err, class) || err.Error() != want.Error() {
			t.Errorf("sent %v, got %v", want, err)
		}
	}
	both := fmt.Errorf("%w: %w", runtime.ErrPolicy, runtime.ErrNoDevice)
	e.Fail("Status", both)
	if _, err := c.Status(within(t), "a"); !errors.Is(err, runtime.ErrPolicy) || !errors.Is(err, runtime.ErrNoDevice) {
		t.Errorf("an error of two classes arrives as %v", err)
	}
	e.Fail("Status", errors.New(strings.Repeat("\xff", 1<<20)))
	if _, err := c.Status(within(t), "a"); err == nil || len(err.Error()) > 10_000 {
		t.Errorf("a huge error arrives with %d bytes", len(fmt.Sprint(err)))
	}
}

func TestALostHelperIsUnavailableUntilTheNextOneAnswers(t *testing.T) {
	e := newEngine(t)
	socket := socketPath(t)
	end := serve(t, remote.Config{Runtime: e, Socket: socket})
	c := dial(t, socket)
	ctx := within(t)
	if err := errors.Join(c.Create(ctx, e.spec("a", "stubborn")), c.Start(ctx, "a")); err != nil {
		t.Fatal(err)
	}
	events, err := c.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	log, err := c.Log(ctx, "a", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	end()
	for range events { // until it is closed
	}
	if _, err := io.Copy(io.Discard, log); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("the log ends with %v", err)
	}
	if _, err := c.Status(ctx, "a"); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("a call to nobody: %v", err)
	}
	ready := make(chan error, 1)
	go func() { ready <- c.Ready(ctx) }()
	serve(t, remote.Config{Runtime: e, Socket: socket})
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	if st, err := c.Status(ctx, "a"); err != nil || st.State != runtime.Running {
		t.Errorf("afterwards the job is %+v: %v", st, err)
	}
}

func TestACallEndsAtTheHelperWhenItsCallerGivesUp(t *testing.T) {
	e := newEngine(t)
	entered, left := make(chan struct{}), make(chan error, 1)
	e.create = func(ctx context.Context) error {
		close(entered)
		<-ctx.Done()
		left <- ctx.Err()
		return ctx.Err()
	}
	c := pair(t, remote.Config{Runtime: e})
	ctx, cancel := context.WithCancel(within(t))
	go func() { <-entered; cancel() }()
	if err := c.Create(ctx, e.spec("a", "exit", "0")); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller is told %v", err)
	}
	select {
	case err := <-left:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the engine is told %v", err)
		}
	case <-time.After(patience):
		t.Error("the engine goes on")
	}
}

func TestAnOrderToStopIsCarriedOutThoughItsCallerDies(t *testing.T) {
	e := newEngine(t)
	socket := socketPath(t)
	serve(t, remote.Config{Runtime: e, Socket: socket})
	c := remote.Dial(t.Context(), socket)
	ctx := within(t)
	if err := errors.Join(c.Create(ctx, e.spec("a", "stubborn")), c.Start(ctx, "a")); err != nil {
		t.Fatal(err)
	}
	go func() { <-e.stopped; _ = c.Close() }() // as a death does
	if err := c.Stop(ctx, "a", 300*time.Millisecond); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("stop: %v", err)
	}
	await(t, "the end of the job", func() bool {
		st, err := e.Status(ctx, "a")
		return err == nil && st.State == runtime.Stopped && st.Exit.Signal == "KILL"
	})
}

func TestAFaultInTheMiddleOfALogIsTold(t *testing.T) {
	e := newEngine(t)
	fault := fmt.Errorf("the disk of the log: %w", runtime.ErrNotFound)
	e.log = func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("as far as it came"), faulty{fault})), nil
	}
	c := pair(t, remote.Config{Runtime: e})
	log, err := c.Log(within(t), "a", 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	got, err := io.ReadAll(log)
	if string(got) != "as far as it came" || !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("%q: %v", got, err)
	}
}

type faulty struct{ err error }

func (f faulty) Read([]byte) (int, error) { return 0, f.err }

func TestClosingALogUnblocksItsReaderAndFreesTheHelper(t *testing.T) {
	e := newEngine(t)
	freed := make(chan struct{})
	e.log = func(ctx context.Context) (io.ReadCloser, error) {
		r, w := io.Pipe()
		context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()); close(freed) })
		return r, nil
	}
	c := pair(t, remote.Config{Runtime: e})
	log, err := c.Log(within(t), "a", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() { _, _ = log.Read(make([]byte, 1)); close(read) }()
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	for what, done := range map[string]<-chan struct{}{"the reader": read, "the engine's log": freed} {
		select {
		case <-done:
		case <-time.After(patience):
			t.Errorf("%s goes on", what)
		}
	}
}

func TestASweepAsksHereWhatToKeep(t *testing.T) {
	e := newEngine(t)
	c := pair(t, remote.Config{Runtime: e})
	ctx := within(t)
	for _, id := range []string{"a", "b", "c"} {
		if err := c.Create(ctx, e.spec(id, "exit", "0")); err != nil {
			t.Fatal(err)
		}
	}
	var asked []string
	report, err := c.Sweep(ctx, func(id string) bool { asked = append(asked, id); return id == "b" })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(runtime.SweepReport{Jobs: []string{"a", "c"}}, report); diff != "" {
		t.Error(diff)
	}
	e.Fail("Sweep", runtime.ErrConflict)
	if _, err := c.Sweep(ctx, func(string) bool { return true }); !errors.Is(err, runtime.ErrConflict) {
		t.Errorf("a sweep that fails: %v", err)
	}
}

// powers is a driver of one card.
type powers struct{ limit int64 }

func (p *powers) SetPowerLimit(_ context.Context, uuid string, milliwatt int64) (int64, error) {
	if uuid != "GPU-1" {
		return 0, fmt.Errorf("card %s: %w", uuid, runtime.ErrNoDevice)
	}
	p.limit = max(milliwatt, 100_000)
	return p.limit, nil
}

func TestThePowerOfACardIsSetByTheHelper(t *testing.T) {
	e, p := newEngine(t), &powers{}
	c := pair(t, remote.Config{Runtime: e, Power: p})
	if now, err := c.SetPowerLimit(within(t), "GPU-1", 250_000); err != nil || now != 250_000 || p.limit != now {
		t.Errorf("%d: %v", now, err)
	}
	if _, err := c.SetPowerLimit(within(t), "GPU-2", 0); !errors.Is(err, runtime.ErrNoDevice) {
		t.Errorf("an unknown card: %v", err)
	}
	for _, uuid := range []string{"", "../card0", "GPU-1\n", strings.Repeat("G", 200)} {
		if _, err := c.SetPowerLimit(within(t), uuid, 0); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("card %.20q: %v", uuid, err)
		}
	}
	without := pair(t, remote.Config{Runtime: e})
	if _, err := without.SetPowerLimit(within(t), "GPU-1", 0); !errors.Is(err, runtime.ErrUnsupported) {
		t.Errorf("without a driver: %v", err)
	}
}
