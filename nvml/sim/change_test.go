package sim_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"haggle/nvml"
	"haggle/nvml/nvmltest"
	"haggle/nvml/sim"
)

func TestSimulatedDriverScrubs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := sim.New(sim.Config{Cards: everyProfile()})
		if err != nil {
			t.Fatal(err)
		}
		s, cards := nvml.Scrubber(d), cardsOf(t, d)
		for _, c := range cards {
			start := time.Now()
			n, err := s.Scrub(t.Context(), c.UUID)
			if n != must(t, c.MemoryUsableBytes) || err != nil {
				t.Errorf("scrub of %s: %d, %v", c.Model, n, err)
			}
			if took := time.Since(start); took < 10*time.Millisecond || took > time.Second {
				t.Errorf("scrub of %s took %s", c.Model, took)
			}
		}
		_ = d.Close()
	})
}

func cardsOf(t *testing.T, d *sim.Driver) []nvml.Card {
	t.Helper()
	cards, err := d.Cards(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return cards
}

func TestSimulatedDriverKeepsThePromisesOfChange(t *testing.T) {
	d, _ := newDriver(t, sim.Config{Cards: []sim.CardConfig{{Profile: "RTX_4090", Count: 2}}})
	nvmltest.Scrubs(t, d)
	d, _ = newDriver(t, sim.Config{Cards: everyProfile()})
	nvmltest.LimitsPower(t, d)
}

func TestALimitedCardDrawsNoMoreAndIsSlower(t *testing.T) {
	var now time.Duration
	d, cards := newDriver(t, sim.Config{
		Cards: []sim.CardConfig{{Profile: "RTX_4090"}}, Clock: func() time.Duration { return now },
	})
	id := cards[0].UUID
	if err := d.SetLoad(id, 900, 0); err != nil {
		t.Fatal(err)
	}
	free := sample(t, d, id)
	if _, err := d.SetPowerLimit(t.Context(), id, 200_000); err != nil {
		t.Fatal(err)
	}
	start := must(t, sample(t, d, id).EnergyMilliJoule)
	now += 100 * time.Second
	s := sample(t, d, id)
	if w := must(t, s.PowerMilliWatt); w != 200_000 || must(t, free.PowerMilliWatt) <= w {
		t.Errorf("it draws %d mW", w)
	}
	if spent := must(t, s.EnergyMilliJoule) - start; spent != 200_000*100 {
		t.Errorf("it took %d mJ", spent)
	}
	if must(t, s.ClockMHz) >= must(t, free.ClockMHz) || must(t, s.ThrottleReasons)&nvml.ThrottlePowerCap == 0 {
		t.Errorf("it runs at %d MHz, throttled by %s", s.ClockMHz.Value, s.ThrottleReasons.Value)
	}
	if got := cardsOf(t, d)[0].PowerLimitMilliWatt; got != nvml.Some[int64](200_000) {
		t.Errorf("the card says %+v", got)
	}
}

func TestAScrubFailsAsItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := sim.New(sim.Config{Cards: []sim.CardConfig{{Profile: "RTX_4090"}}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		card := cardsOf(t, d)[0]
		id := card.UUID
		running := make(chan error, 1)
		go func() {
			_, err := d.Scrub(t.Context(), id)
			running <- err
		}()
		synctest.Wait()
		if err := d.FailScrubs(id); err != nil {
			t.Fatal(err)
		}
		if err := <-running; !errors.Is(err, sim.ErrScrub) {
			t.Errorf("the scrub that ran: %v, want ErrScrub", err)
		}
		if _, err := d.Scrub(t.Context(), id); !errors.Is(err, sim.ErrScrub) {
			t.Errorf("scrub: %v, want ErrScrub", err)
		}
		if err := d.Reset(id); err != nil {
			t.Fatal(err)
		}
		if err := d.SetLoad(id, 500, 1<<30); err != nil {
			t.Fatal(err)
		}
		if n, err := d.Scrub(t.Context(), id); err != nil || n != must(t, card.MemoryUsableBytes)-1<<30 {
			t.Errorf("scrub under a load: %d, %v", n, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := d.Scrub(ctx, id); !errors.Is(err, nvml.ErrTimeout) {
			t.Errorf("scrub with little time: %v, want ErrTimeout", err)
		}
		if err := d.Inject(id, sim.Fault{Kind: nvml.EventLost}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Scrub(t.Context(), id); !errors.Is(err, nvml.ErrLost) {
			t.Errorf("scrub of a lost card: %v, want ErrLost", err)
		}
		if err := d.FailScrubs("no-such-card"); !errors.Is(err, nvml.ErrNoCard) {
			t.Errorf("an unknown card: %v, want ErrNoCard", err)
		}
	})
}
