//go:build linux && cgo

package nvidia_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/nvml"
	"haggle/nvml/nvidia"
)

// hasty is how long a card has in tests where one hangs: short, but enough for a sound card on a busy machine.
const hasty = time.Second

func TestALostCardIsToldAndHidesNoOther(t *testing.T) {
	r := newRig(t, "full", "A100 H100")
	d := r.open(nvidia.Config{})
	events := eventsOf(t, d)
	r.set("0.lost", "1")
	if _, err := d.Sample(t.Context(), uuid(0)); !errors.Is(err, nvml.ErrLost) {
		t.Errorf("sample of the lost card: %v, want ErrLost", err)
	}
	if e := next(t, events); e.Kind != nvml.EventLost || e.UUID != uuid(0) {
		t.Errorf("event %+v", e)
	}
	sampleOf(t, d, uuid(1))
	if cards := cardsOf(t, d); len(cards) != 1 || cards[0].UUID != uuid(1) {
		t.Errorf("cards %+v", cards)
	}
	if _, err := d.Sample(t.Context(), uuid(0)); !errors.Is(err, nvml.ErrLost) {
		t.Errorf("sample of the lost card again: %v, want ErrLost", err)
	}
	// A child that finds the card gone from the start knows it no more, but the driver does. It is not told twice.
	kill(t, d, syscall.SIGKILL)
	if _, err := d.Sample(t.Context(), uuid(0)); !errors.Is(err, nvml.ErrLost) {
		t.Errorf("sample of the lost card from a new child: %v, want ErrLost", err)
	}
	r.set("0.lost", "")
	kill(t, d, syscall.SIGKILL)
	sampleOf(t, d, uuid(0))
	r.set("0.lost", "1")
	if _, err := d.Sample(t.Context(), uuid(0)); !errors.Is(err, nvml.ErrLost) {
		t.Errorf("sample of the card lost again: %v, want ErrLost", err)
	}
	if e := next(t, events); e.Kind != nvml.EventLost || e.UUID != uuid(0) {
		t.Errorf("event %+v", e)
	}
	if len(events) != 0 {
		t.Errorf("one more event: %s", <-events)
	}
}

func TestACardThatNobodyReadsIsWatched(t *testing.T) {
	r := newRig(t, "full", "A100 H100")
	d := r.open(nvidia.Config{Poll: 20 * time.Millisecond})
	events := eventsOf(t, d)
	sampleOf(t, d, uuid(1)) // errors before the first reading are not new
	r.set("0.lost", "1")
	r.set("1.unc", "3")
	got := []nvml.HealthEvent{next(t, events), next(t, events)}
	if got[0].Kind == nvml.EventECC {
		got[0], got[1] = got[1], got[0]
	}
	want := []nvml.HealthEvent{
		{UUID: uuid(0), Kind: nvml.EventLost, At: got[0].At}, {UUID: uuid(1), Kind: nvml.EventECC, Code: 3, At: got[1].At},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestXidsAreTold(t *testing.T) {
	for variant, told := range map[string]nvml.Opt[bool]{"full": nvml.Some(true), "old": nvml.None[bool](nvml.NoSymbol)} {
		t.Run(variant, func(t *testing.T) {
			r := newRig(t, variant, "RTX4090 A100")
			d := r.open(nvidia.Config{})
			events := eventsOf(t, d)
			r.set("1.recovery", "1")
			r.set("1.xid", "79")
			r.set("1.xid.seq", "1")
			e := next(t, events)
			if want := (nvml.HealthEvent{UUID: uuid(1), Kind: nvml.EventXid, Code: 79, At: e.At, NeedsReset: told}); e != want {
				t.Errorf("event %+v, want %+v", e, want)
			}
		})
	}
}

func TestAHangingCardIsCutAndHidesNoOther(t *testing.T) {
	r := newRig(t, "full", "A100 H100")
	d := r.open(nvidia.Config{Timeout: hasty})
	first := d.ChildPID()
	events := eventsOf(t, d)
	r.set("0.hang", "600000")
	start := time.Now()
	if _, err := d.Sample(t.Context(), uuid(0)); !errors.Is(err, nvml.ErrTimeout) {
		t.Errorf("sample of the hanging card: %v, want ErrTimeout", err)
	}
	if took := time.Since(start); took < hasty || took > 30*hasty {
		t.Errorf("it took %s", took)
	}
	// While the card hangs in the first child, the other answers from it.
	sampleOf(t, d, uuid(1))
	for i := 1; i <= 2; i++ {
		if e := next(t, events); e.Kind != nvml.EventHang || e.UUID != uuid(0) || e.Code != i {
			t.Fatalf("event %+v, want hang %d", e, i)
		}
	}
	// The second miss ends the child. The other card answers from the next, and the hanging one is left alone for a while.
	sampleOf(t, d, uuid(1))
	until(t, func() bool { return d.ChildPID() != first })
	if _, err := d.Sample(t.Context(), uuid(0)); !errors.Is(err, nvml.ErrTimeout) {
		t.Errorf("sample of the hanging card from a new child: %v, want ErrTimeout", err)
	}
	r.set("0.hang", "")
	until(t, func() bool { _, err := d.Sample(t.Context(), uuid(0)); return err == nil })
	if cards := cardsOf(t, d); len(cards) != 2 {
		t.Errorf("cards %+v", cards)
	}
}

func TestACardThatHangsFromTheStartHidesNoOther(t *testing.T) {
	r := newRig(t, "full", "A100 H100")
	r.set("0.hang", "600000")
	d := r.open(nvidia.Config{Timeout: hasty})
	if cards := cardsOf(t, d); len(cards) != 1 || cards[0].UUID != uuid(1) {
		t.Errorf("cards %+v", cards)
	}
	r.set("0.hang", "")
	until(t, func() bool { return len(cardsOf(t, d)) == 2 })
	sampleOf(t, d, uuid(0))
}

func TestACallersDeadlineIsKept(t *testing.T) {
	r := newRig(t, "full", "A100")
	d := r.open(nvidia.Config{Timeout: time.Minute})
	r.set("0.hang", "600000")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := d.Sample(ctx, uuid(0))
	if !errors.Is(err, nvml.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("sample: %v, want ErrTimeout with the context's error", err)
	}
	r.set("0.hang", "")
	sampleOf(t, d, uuid(0))
}

func TestALibraryThatDoesNotStartIsGivenUp(t *testing.T) {
	r := newRig(t, "full", "A100")
	r.set("init.hang", "600000")
	cfg := withDefaults(t, nvidia.Config{Library: r.library, StartTimeout: 50 * time.Millisecond})
	if _, err := nvidia.Open(t.Context(), cfg); !errors.Is(err, nvml.ErrTimeout) {
		t.Errorf("open: %v, want ErrTimeout", err)
	}
	cfg.StartTimeout = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := nvidia.Open(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("open: %v, want the context's error", err)
	}
}

func TestADeadChildIsReplaced(t *testing.T) {
	r := newRig(t, "full", "A100 H100")
	d := r.open(nvidia.Config{})
	events := eventsOf(t, d)
	for range 3 {
		kill(t, d, syscall.SIGKILL)
		sampleOf(t, d, uuid(0))
		if cards := cardsOf(t, d); len(cards) != 2 {
			t.Fatalf("cards %+v", cards)
		}
	}
	// Whoever watched before still does.
	r.set("1.xid", "31")
	r.set("1.xid.seq", "1")
	if e := next(t, events); e.Kind != nvml.EventXid || e.Code != 31 || e.UUID != uuid(1) {
		t.Errorf("event %+v", e)
	}
}

func TestAStuckChildIsReplacedAndNoCardBlamed(t *testing.T) {
	d := newRig(t, "full", "A100").open(nvidia.Config{Timeout: hasty})
	events := eventsOf(t, d)
	pid := d.ChildPID()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Sample(t.Context(), uuid(0)); err != nil && !errors.Is(err, nvml.ErrTimeout) {
		t.Errorf("sample: %v", err)
	}
	until(t, func() bool { _, err := d.Sample(t.Context(), uuid(0)); return err == nil })
	if d.ChildPID() == pid {
		t.Error("the child is still the first")
	}
	if len(events) != 0 {
		t.Errorf("an event: %s", <-events)
	}
}

func TestCountersNeverFall(t *testing.T) {
	r := newRig(t, "full", "A100")
	r.set("0.energy", "5000")
	r.set("0.unc", "4")
	d := r.open(nvidia.Config{})
	events := eventsOf(t, d)
	for _, x := range []struct {
		told string
		want int64
	}{{"5000", 5000}, {"6000", 6000}, {"100", 6100}, {"250", 6250}} {
		r.set("0.energy", x.told)
		if got := sampleOf(t, d, uuid(0)).EnergyMilliJoule; got != nvml.Some(x.want) {
			t.Errorf("told %s, energy is %+v, want %d", x.told, got, x.want)
		}
	}
	kill(t, d, syscall.SIGKILL)
	r.set("0.energy", "20")
	r.set("0.unc", "5")
	if got := sampleOf(t, d, uuid(0)).EnergyMilliJoule; got != nvml.Some[int64](6270) {
		t.Errorf("from a new child, energy is %+v, want 6270", got)
	}
	if e := next(t, events); e.Kind != nvml.EventECC || e.Code != 1 {
		t.Errorf("event %+v, want one memory error", e)
	}
}

func TestGarbageFromTheChildIsBounded(t *testing.T) {
	huge := binary.BigEndian.AppendUint32(nil, 1<<31)
	for name, x := range map[string]struct{ says, then string }{
		"a huge frame":      {string(huge), "wait"},
		"an endless stream": {strings.Repeat("x", 4096), "flood"},
		"no JSON":           {framed("{"), "wait"},
		"an unknown field":  {framed(`{"id":1,"password":"x"}`), "wait"},
		"two values":        {framed(`{"id":1}{"id":1}`), "wait"},
		"an unknown card":   {framed(`{"id":0,"event":{"uuid":"GPU-1","kind":"xid","code":79,"at_ns":0}}`), "wait"},
		"a simulated card": {framed(`{"id":1,"card":{"uuid":"SIM-1","vendor":"SIMULATED","model":"X","raw_name":"X",` +
			`"pci_bus_id":"x","simulated":true,"memory_bytes":1}}`), "wait"},
		"an empty answer":    {framed(`{"id":1}`), "wait"},
		"nothing and an end": {"", "end"},
		"half a frame":       {framed(`{"id":1}`)[:6], "end"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := withDefaults(t, nvidia.Config{Command: command(brokenArg, strconv.Quote(x.says), x.then)})
			d, err := nvidia.Open(t.Context(), cfg)
			if err == nil {
				_ = d.Close()
				t.Fatal("the driver was opened")
			}
			if errors.Is(err, nvml.ErrNoDriver) || errors.Is(err, nvml.ErrTimeout) || strings.Contains(err.Error(), "start the child") {
				t.Errorf("open: %v", err)
			}
		})
	}
}

func TestACallThatEndsTheChildIsNotMadeAgain(t *testing.T) {
	r := newRig(t, "full", "A100")
	d := r.open(nvidia.Config{Command: command(symbolArg, "nvmlDeviceGetPowerUsage")})
	if diff := cmp.Diff([]string{"nvmlDeviceGetPowerUsage"}, d.Denied()); diff != "" {
		t.Errorf("denied functions (-want +got):\n%s", diff)
	}
	if s := sampleOf(t, d, uuid(0)); s.PowerMilliWatt.State != nvml.NoSymbol || s.ClockMHz.State != nvml.OK {
		t.Errorf("sample %+v", s)
	}
}

func TestADriverThatGoesAwayIsToldAtOnce(t *testing.T) {
	r := newRig(t, "full", "A100")
	d := r.open(nvidia.Config{})
	r.set("init", "9")
	kill(t, d, syscall.SIGKILL)
	until(t, func() bool { _, err := d.Sample(t.Context(), uuid(0)); return errors.Is(err, nvml.ErrNoDriver) })
	r.set("init", "")
	until(t, func() bool { _, err := d.Sample(t.Context(), uuid(0)); return err == nil })
}

// kill sends a signal to the child and waits until it is no longer the one that answers.
func kill(t *testing.T, d *nvidia.Driver, sig syscall.Signal) {
	t.Helper()
	pid := d.ChildPID()
	if pid == 0 {
		until(t, func() bool { pid = d.ChildPID(); return pid != 0 })
	}
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return d.ChildPID() != pid })
}

// until waits for a condition that nothing announces.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it does not come to pass")
		}
	}
}

func framed(body string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body
}
