package sim_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/nvml"
	"haggle/nvml/nvmltest"
	"haggle/nvml/sim"
)

func newDriver(t *testing.T, cfg sim.Config) (*sim.Driver, []nvml.Card) {
	t.Helper()
	d, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	cards, err := d.Cards(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d, cards
}

func everyProfile() []sim.CardConfig {
	var cards []sim.CardConfig
	for _, p := range sim.Profiles() {
		cards = append(cards, sim.CardConfig{Profile: p, Count: 2})
	}
	return cards
}

func sample(t *testing.T, d *sim.Driver, uuid string) nvml.Sample {
	t.Helper()
	s, err := d.Sample(t.Context(), uuid)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// must returns the value of a reading that has to be there.
func must[T any](t *testing.T, o nvml.Opt[T]) T {
	t.Helper()
	v, ok := o.Get()
	if !ok {
		t.Fatalf("the reading is %s", o.State)
	}
	return v
}

func TestSimulatedDriverConforms(t *testing.T) {
	d, _ := newDriver(t, sim.Config{Cards: everyProfile(), Serial: "rig-1"})
	nvmltest.Conformance(t, d)
}

func TestSimulatedCardsNeverPassForRealOnes(t *testing.T) {
	_, cards := newDriver(t, sim.Config{Cards: everyProfile(), Serial: "GPU-1f3a"})
	for _, c := range cards {
		if !strings.HasPrefix(c.UUID, "SIM-") || c.Vendor != "SIMULATED" || !c.Simulated ||
			!strings.HasPrefix(c.RawName, "Simulated ") || !strings.HasPrefix(c.PCIBusID, "sim:") {
			t.Errorf("card %+v could be taken for a real one", c)
		}
	}
}

func TestUUIDsAreStableForOneSerialAndDifferForAnother(t *testing.T) {
	uuids := func(serial string, cards ...sim.CardConfig) []string {
		_, list := newDriver(t, sim.Config{Cards: cards, Serial: serial})
		var ids []string
		for _, c := range list {
			ids = append(ids, c.UUID)
		}
		return ids
	}
	two := sim.CardConfig{Profile: "rtx_4090", Count: 2}
	first := uuids("rig-1", two)
	if diff := cmp.Diff(first, uuids("rig-1", two)); diff != "" {
		t.Errorf("the same rig has other cards after a restart:\n%s", diff)
	}
	more := uuids("rig-1", sim.CardConfig{Profile: "H100_SXM"}, two)
	if diff := cmp.Diff(first, more[1:]); diff != "" {
		t.Errorf("another card in the rig changes the old ones:\n%s", diff)
	}
	if other := uuids("rig-2", two); other[0] == first[0] || other[0] == other[1] {
		t.Errorf("rigs or slots share the id %s", other[0])
	}
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	for name, cfg := range map[string]sim.Config{
		"an unknown profile": {Cards: []sim.CardConfig{{Profile: "RTX_9999"}}},
		"a negative count":   {Cards: []sim.CardConfig{{Profile: "RTX_4090", Count: -1}}},
		"too many cards":     {Cards: []sim.CardConfig{{Profile: "RTX_4090", Count: 64}, {Profile: "RTX_3090"}}},
		"a long serial":      {Serial: strings.Repeat("x", 129)},
		"an oven":            {AmbientC: 46},
	} {
		if _, err := sim.New(cfg); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if _, cards := newDriver(t, sim.Config{}); len(cards) != 0 {
		t.Errorf("a rig without cards has %d", len(cards))
	}
}

func TestTelemetryFollowsTheLoad(t *testing.T) {
	var now time.Duration
	d, cards := newDriver(t, sim.Config{
		Cards: []sim.CardConfig{{Profile: "RTX_3090"}},
		Clock: func() time.Duration { return now },
	})
	id := cards[0].UUID
	idle := sample(t, d, id)
	if err := d.SetLoad(id, 1000, 8<<30); err != nil {
		t.Fatal(err)
	}
	now = 10 * time.Minute
	busy := sample(t, d, id)
	if got := must(t, busy.UtilPermille); got != 1000 {
		t.Errorf("load %d, want 1000", got)
	}
	if got := must(t, busy.PowerMilliWatt); got != 350_000 {
		t.Errorf("power %d mW, want 350000", got)
	}
	if got := must(t, busy.EnergyMilliJoule); got != 350_000*600 {
		t.Errorf("energy %d mJ, want %d", got, 350_000*600)
	}
	if got := must(t, busy.TemperatureC); got != 76 {
		t.Errorf("%d C, want the 76.9 C that the profile's source measured, rounded down", got)
	}
	if got := must(t, busy.MemUsedBytes) - must(t, idle.MemUsedBytes); got != 8<<30 {
		t.Errorf("the load uses %d bytes, want 8 GiB", got)
	}
	if must(t, idle.ClockMHz) != 210 || must(t, busy.ClockMHz) != 1395 {
		t.Errorf("clocks %d and %d, want 210 and 1395", idle.ClockMHz.Value, busy.ClockMHz.Value)
	}
	if idle.ECCUncorrected.State != nvml.NotSupported {
		t.Errorf("ECC of a GeForce is %s, want not supported", idle.ECCUncorrected.State)
	}
	again, err := d.Cards(t.Context())
	if err != nil || must(t, again[0].PCIeGen) != 4 || must(t, cards[0].PCIeGen) != 1 {
		t.Errorf("the link does not wake up under load: %v, %v", again, err)
	}
}

func TestBadLoadsAreRefused(t *testing.T) {
	d, cards := newDriver(t, sim.Config{Cards: []sim.CardConfig{{Profile: "RTX_3090"}}})
	for _, x := range []struct {
		permille int
		mem      int64
	}{{-1, 0}, {1001, 0}, {0, -1}, {0, 1 << 40}} {
		if err := d.SetLoad(cards[0].UUID, x.permille, x.mem); err == nil {
			t.Errorf("load %+v passes", x)
		}
	}
	if err := d.SetLoad("GPU-1", 1, 1); !errors.Is(err, nvml.ErrNoCard) {
		t.Errorf("load of an unknown card: %v, want ErrNoCard", err)
	}
}

func TestErrorsOfTheDriverAreEvents(t *testing.T) {
	d, cards := newDriver(t, sim.Config{Cards: []sim.CardConfig{{Profile: "A100_SXM"}, {Profile: "RTX_4090"}}})
	a100, geforce := cards[0].UUID, cards[1].UUID
	events, err := d.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Inject(a100, sim.Fault{Kind: nvml.EventXid, Code: 13}); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.UUID != a100 || e.Kind != nvml.EventXid || e.Code != 13 {
		t.Errorf("event %+v, want xid 13", e)
	}
	before := sample(t, d, a100)
	if err := d.Inject(a100, sim.Fault{Kind: nvml.EventECC, Code: 3}); err != nil {
		t.Fatal(err)
	}
	told := <-events
	seen, ok := nvml.NewErrors(before, sample(t, d, a100))
	if told.Code != 3 || !ok || seen.Code != 3 {
		t.Errorf("told of %d errors, saw %d, want 3", told.Code, seen.Code)
	}
	if err := d.Inject(geforce, sim.Fault{Kind: nvml.EventECC, Code: 1}); !errors.Is(err, sim.ErrFault) {
		t.Errorf("memory error on a card without ECC: %v, want ErrFault", err)
	}
	if err := d.Reset(a100); err != nil {
		t.Fatal(err)
	}
	if got := must(t, sample(t, d, a100).ECCUncorrected); got != 0 {
		t.Errorf("%d errors after a reset, want 0", got)
	}
}

func TestALostCardVanishesUntilItComesBack(t *testing.T) {
	var now time.Duration
	d, cards := newDriver(t, sim.Config{
		Cards: []sim.CardConfig{{Profile: "RTX_4090", Count: 2}},
		Clock: func() time.Duration { return now },
	})
	events, err := d.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := cards[0].UUID
	if err := d.Inject(id, sim.Fault{Kind: nvml.EventLost, For: 30 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Kind != nvml.EventLost || e.UUID != id {
		t.Errorf("event %+v, want lost", e)
	}
	if _, err := d.Sample(t.Context(), id); !errors.Is(err, nvml.ErrLost) {
		t.Errorf("sample of a lost card: %v, want ErrLost", err)
	}
	if left, err := d.Cards(t.Context()); err != nil || len(left) != 1 || left[0].UUID != cards[1].UUID {
		t.Errorf("cards %v, %v, want the other one alone", left, err)
	}
	sample(t, d, cards[1].UUID)
	now = 30 * time.Second
	sample(t, d, id)
}

func TestXid79LosesTheCardUntilAReset(t *testing.T) {
	d, cards := newDriver(t, sim.Config{Cards: []sim.CardConfig{{Profile: "H100_SXM"}}})
	id := cards[0].UUID
	fault, err := sim.ParseFault("xid 79")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Inject(id, fault); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Sample(t.Context(), id); !errors.Is(err, nvml.ErrLost) {
		t.Errorf("sample after xid 79: %v, want ErrLost", err)
	}
	if err := d.Reset(id); err != nil {
		t.Fatal(err)
	}
	sample(t, d, id)
}

func TestACardThatHangsBlocksUntilItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cards := newDriver(t, sim.Config{Cards: []sim.CardConfig{{Profile: "RTX_4090", Count: 2}}})
		events, err := d.Events(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Inject(cards[0].UUID, sim.Fault{Kind: nvml.EventHang, For: 45 * time.Second}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for misses := 1; misses <= 2; misses++ {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			_, err := d.Sample(ctx, cards[0].UUID)
			cancel()
			if !errors.Is(err, nvml.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("sample of a hanging card: %v, want ErrTimeout and the context's error", err)
			}
			if e := <-events; e.Kind != nvml.EventHang || e.Code != misses {
				t.Errorf("event %+v, want miss %d", e, misses)
			}
		}
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("two deadlines of 2 s took %s", took)
		}
		sample(t, d, cards[1].UUID)
		if _, err := d.Cards(t.Context()); err != nil {
			t.Errorf("list cards: %v, want it to wait until the card answers", err)
		}
		if took := time.Since(start); took != 45*time.Second {
			t.Errorf("the hang of 45 s took %s", took)
		}
	})
}

func TestResetAndCloseFreeCallsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cards := newDriver(t, sim.Config{Cards: []sim.CardConfig{{Profile: "RTX_4090"}}})
		id := cards[0].UUID
		call := func() <-chan error {
			if err := d.Inject(id, sim.Fault{Kind: nvml.EventHang}); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := d.Sample(t.Context(), id)
				done <- err
			}()
			synctest.Wait()
			return done
		}
		done := call()
		if err := d.Reset(id); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("sample after a reset: %v", err)
		}
		done = call()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, nvml.ErrClosed) {
			t.Errorf("sample after Close: %v, want ErrClosed", err)
		}
	})
}

func TestAReaderThatFallsBehindLosesItsChannel(t *testing.T) {
	d, cards := newDriver(t, sim.Config{Cards: []sim.CardConfig{{Profile: "RTX_4090"}}})
	events, err := d.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const sent = 300
	for range sent {
		if err := d.Inject(cards[0].UUID, sim.Fault{Kind: nvml.EventXid, Code: 31}); err != nil {
			t.Fatal(err)
		}
	}
	got := 0
	for range events {
		got++
	}
	if got == 0 || got >= sent {
		t.Errorf("read %d of %d events before the channel was closed", got, sent)
	}
}
