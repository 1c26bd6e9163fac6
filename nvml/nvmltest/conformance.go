// Package nvmltest holds the rules that every nvml.Driver must keep.
package nvmltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/nvml"
)

// patience is how long a single answer of a driver may take before the test gives up.
const patience = 10 * time.Second

// Conformance tests the promises of nvml.Driver on an open driver with at least one card that answers. It closes the
// driver. It puts no load on the cards and needs no fault.
func Conformance(t *testing.T, d nvml.Driver) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cards, err := d.Cards(ctx)
	if err != nil {
		t.Fatalf("list cards: %v", err)
	}
	if len(cards) == 0 {
		t.Fatal("the driver has no cards; conformance needs one")
	}
	t.Run("the driver says who it is", func(t *testing.T) { testInfo(t, d) })
	t.Run("cards are valid, distinct and always in the same order", func(t *testing.T) { testCards(t, d, cards) })
	for _, c := range cards {
		t.Run("samples of "+c.UUID+" are valid and never go back", func(t *testing.T) { testSamples(t, d, c) })
	}
	t.Run("an unknown card is told apart", func(t *testing.T) {
		if _, err := d.Sample(t.Context(), "no-such-card"); !errors.Is(err, nvml.ErrNoCard) {
			t.Errorf("sample of an unknown card: %v, want ErrNoCard", err)
		}
	})
	t.Run("an ended context ends every call", func(t *testing.T) { testContexts(t, d, cards[0]) })
	t.Run("calls may run at the same time", func(t *testing.T) { testConcurrency(t, d, cards) })
	t.Run("a channel of events ends with its context alone", func(t *testing.T) { testEvents(t, d) })
	t.Run("a closed driver says so", func(t *testing.T) { testClose(t, d, cards[0]) })
}

func testInfo(t *testing.T, d nvml.Driver) {
	info, err := d.Info(t.Context())
	if err != nil {
		t.Fatalf("info: %v", err)
	}
	if info.Version == "" || info.Library == "" {
		t.Errorf("info %+v lacks its version or library", info)
	}
	if v, ok := info.CUDA.Get(); ok && (v < 1000 || v > 99990) {
		t.Errorf("CUDA %d is no version", v)
	}
}

func testCards(t *testing.T, d nvml.Driver, first []nvml.Card) {
	seen := make(map[string]bool)
	var order []string
	for _, c := range first {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		if seen[c.UUID] {
			t.Errorf("card %s is listed twice", c.UUID)
		}
		seen[c.UUID] = true
		order = append(order, c.UUID)
		if c.Model != nvml.NormaliseModel(c.RawName) {
			t.Errorf("card %s: model %s of name %q is not normalised", c.UUID, c.Model, c.RawName)
		}
	}
	mine, err := d.Cards(t.Context())
	if err != nil {
		t.Fatalf("list cards again: %v", err)
	}
	clear(mine) // the slice is ours: what we do to it must not reach the driver
	again, err := d.Cards(t.Context())
	if err != nil {
		t.Fatalf("list cards a third time: %v", err)
	}
	var second []string
	for _, c := range again {
		second = append(second, c.UUID)
	}
	if diff := cmp.Diff(order, second); diff != "" {
		t.Errorf("order of cards changed (-first +second):\n%s", diff)
	}
}

func testSamples(t *testing.T, d nvml.Driver, c nvml.Card) {
	var prev nvml.Sample
	for i := range 5 {
		s, err := d.Sample(t.Context(), c.UUID)
		if err != nil {
			t.Fatalf("sample: %v", err)
		}
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		if s.UUID != c.UUID {
			t.Errorf("asked for %s, got %s", c.UUID, s.UUID)
		}
		if used, ok := s.MemUsedBytes.Get(); ok && used > c.MemoryBytes {
			t.Errorf("%d bytes in use of %d", used, c.MemoryBytes)
		}
		if i > 0 {
			if s.At < prev.At {
				t.Errorf("time went back from %s to %s", prev.At, s.At)
			}
			was, ok1 := prev.EnergyMilliJoule.Get()
			is, ok2 := s.EnergyMilliJoule.Get()
			if ok1 && ok2 && is < was {
				t.Errorf("energy fell from %d to %d mJ", was, is)
			}
		}
		prev = s
	}
}

func testContexts(t *testing.T, d nvml.Driver, c nvml.Card) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, x := range []struct {
		ctx  context.Context
		want error
	}{{ended, context.Canceled}, {late, context.DeadlineExceeded}} {
		_, infoErr := d.Info(x.ctx)
		_, cardsErr := d.Cards(x.ctx)
		_, sampleErr := d.Sample(x.ctx, c.UUID)
		_, eventsErr := d.Events(x.ctx)
		for name, err := range map[string]error{
			"Info": infoErr, "Cards": cardsErr, "Sample": sampleErr, "Events": eventsErr,
		} {
			if !errors.Is(err, x.want) {
				t.Errorf("%s: %v, want %v", name, err, x.want)
			}
		}
	}
}

func testConcurrency(t *testing.T, d nvml.Driver, cards []nvml.Card) {
	var wg sync.WaitGroup
	errs := make(chan error, 64)
	for i := range 8 {
		wg.Go(func() {
			if _, err := d.Sample(t.Context(), cards[i%len(cards)].UUID); err != nil {
				errs <- fmt.Errorf("sample: %w", err)
			}
			if _, err := d.Cards(t.Context()); err != nil {
				errs <- fmt.Errorf("list cards: %w", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			events, err := d.Events(ctx)
			cancel()
			if err != nil {
				errs <- fmt.Errorf("watch cards: %w", err)
				return
			}
			if err := drained(events); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}

func testEvents(t *testing.T, d nvml.Driver) {
	ctx, cancel := context.WithCancel(t.Context())
	ends, err := d.Events(ctx)
	if err != nil {
		t.Fatalf("watch cards: %v", err)
	}
	other, cancelOther := context.WithCancel(t.Context())
	defer cancelOther()
	stays, err := d.Events(other)
	if err != nil {
		t.Fatalf("watch cards a second time: %v", err)
	}
	cancel()
	if err := drained(ends); err != nil {
		t.Error(err)
	}
	select {
	case e, open := <-stays:
		if !open {
			t.Error("the other reader's channel was closed too")
		} else {
			t.Logf("an event came meanwhile: %s", e)
		}
	default:
	}
}

func testClose(t *testing.T, d nvml.Driver, c nvml.Card) {
	events, err := d.Events(t.Context())
	if err != nil {
		t.Fatalf("watch cards: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	if err := drained(events); err != nil {
		t.Error(err)
	}
	_, infoErr := d.Info(t.Context())
	_, cardsErr := d.Cards(t.Context())
	_, sampleErr := d.Sample(t.Context(), c.UUID)
	_, eventsErr := d.Events(t.Context())
	for name, err := range map[string]error{
		"Info": infoErr, "Cards": cardsErr, "Sample": sampleErr, "Events": eventsErr,
	} {
		if !errors.Is(err, nvml.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
}

// drained waits until the channel is closed.
func drained(events <-chan nvml.HealthEvent) error {
	timeout := time.After(patience)
	for {
		select {
		case _, open := <-events:
			if !open {
				return nil
			}
		case <-timeout:
			return errors.New("the channel of events was not closed")
		}
	}
}
