package nvmltest

import (
	"context"
	"errors"
	"testing"
	"time"

	"haggle/nvml"
)

// scrubTime is how long a scrub may take before the test gives up.
const scrubTime = time.Minute

// Scrubs tests the promises of nvml.Scrubber on an open driver whose cards are idle and can be scrubbed. It closes the driver.
func Scrubs(t *testing.T, d nvml.Driver) {
	t.Helper()
	s, ok := d.(nvml.Scrubber)
	if !ok {
		t.Fatalf("%T is no Scrubber", d)
	}
	cards := answering(t, d)
	for _, c := range cards {
		t.Run("the memory of "+c.UUID+" is scrubbed, and again", func(t *testing.T) {
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), scrubTime)
				n, err := s.Scrub(ctx, c.UUID)
				cancel()
				if err != nil || n <= 0 || n > c.MemoryBytes {
					t.Errorf("scrub: %d bytes of %d, %v", n, c.MemoryBytes, err)
				}
			}
			if _, err := d.Sample(t.Context(), c.UUID); err != nil {
				t.Errorf("sample after it: %v", err)
			}
		})
	}
	control(t, d, cards[0], func(ctx context.Context, uuid string) error {
		_, err := s.Scrub(ctx, uuid)
		return err
	})
}

// LimitsPower tests the promises of nvml.PowerLimiter on an open driver that may limit its cards, each of which tells its
// limit. It leaves every card at its own limit and closes the driver.
func LimitsPower(t *testing.T, d nvml.Driver) {
	t.Helper()
	l, ok := d.(nvml.PowerLimiter)
	if !ok {
		t.Fatalf("%T is no PowerLimiter", d)
	}
	cards := answering(t, d)
	for _, c := range cards {
		t.Run("the power of "+c.UUID+" is limited and let go", func(t *testing.T) { testLimits(t, l, c) })
	}
	t.Run("a limit below zero is refused", func(t *testing.T) {
		if _, err := l.SetPowerLimit(t.Context(), cards[0].UUID, -1); err == nil {
			t.Error("it was taken")
		}
	})
	control(t, d, cards[0], func(ctx context.Context, uuid string) error {
		_, err := l.SetPowerLimit(ctx, uuid, 0)
		return err
	})
}

func testLimits(t *testing.T, l nvml.PowerLimiter, c nvml.Card) {
	set := func(milliwatt int64) int64 {
		now, err := l.SetPowerLimit(t.Context(), c.UUID, milliwatt)
		if err != nil {
			t.Fatalf("limit of %d mW: %v", milliwatt, err)
		}
		return now
	}
	own, least, most := set(0), set(1), set(1<<31-1)
	if least <= 0 || least > own || own > most {
		t.Fatalf("least %d, own %d and greatest %d mW", least, own, most)
	}
	if middle := (least + own) / 2; set(middle) != middle {
		t.Errorf("a limit of %d mW does not hold", middle)
	}
	if now := set(0); now != own {
		t.Errorf("its own limit was %d mW and is now %d", own, now)
	}
}

// control tests what is asked of every call that changes a card, and closes the driver.
func control(t *testing.T, d nvml.Driver, c nvml.Card, call func(ctx context.Context, uuid string) error) {
	t.Run("an unknown card is told apart", func(t *testing.T) {
		if err := call(t.Context(), "no-such-card"); !errors.Is(err, nvml.ErrNoCard) {
			t.Errorf("%v, want ErrNoCard", err)
		}
	})
	t.Run("an ended context ends it", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := call(ctx, c.UUID); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want Canceled", err)
		}
		late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
		defer cancel()
		if err := call(late, c.UUID); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, nvml.ErrTimeout) {
			t.Errorf("%v, want ErrTimeout with the context's error", err)
		}
	})
	t.Run("a closed driver says so", func(t *testing.T) {
		if err := d.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		if err := call(t.Context(), c.UUID); !errors.Is(err, nvml.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}

// answering lists the cards of a driver, which must have one.
func answering(t *testing.T, d nvml.Driver) []nvml.Card {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cards, err := d.Cards(ctx)
	if err != nil || len(cards) == 0 {
		t.Fatalf("list cards: %d, %v", len(cards), err)
	}
	return cards
}
