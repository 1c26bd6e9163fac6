package sim

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// step is a stretch of time under one load.
type step struct {
	permille int
	length   time.Duration
}

func drawSteps(t *rapid.T) []step {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			permille: rapid.IntRange(0, 1000).Draw(t, "permille"),
			length:   time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "length")),
		}
	}), 1, 20).Draw(t, "steps")
}

func drawPhysics(t *rapid.T) physics {
	all, err := loadProfiles()
	if err != nil {
		t.Fatal(err)
	}
	p := rapid.SampledFrom(all).Draw(t, "profile").physics(rapid.IntRange(MinAmbientC, MaxAmbientC).Draw(t, "room"))
	if rapid.Bool().Draw(t, "limited") {
		p.cap = rapid.Int64Range(p.idle, p.busy).Draw(t, "limit")
	}
	return p
}

func TestEnergyNeverFallsAndFitsThePower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPhysics(t)
		b := p.start(0)
		for _, s := range drawSteps(t) {
			b.permille = s.permille
			next := p.advance(b, b.at+s.length)
			spent := next.energy - b.energy
			// One mJ more or less comes from the part of a mJ that was carried over.
			if low := float64(p.idle) * s.length.Seconds(); float64(spent) < low-1 {
				t.Fatalf("%d mJ in %s, less than an idle card's %.0f", spent, s.length, low)
			}
			if high := float64(p.demand(s.permille)) * s.length.Seconds(); float64(spent) > high+1 {
				t.Fatalf("%d mJ in %s, more than the load's %.0f", spent, s.length, high)
			}
			b = next
		}
	})
}

func TestTemperatureStaysBetweenRoomAndLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPhysics(t)
		b := p.start(0)
		for _, s := range drawSteps(t) {
			b.permille = s.permille
			b = p.advance(b, b.at+s.length)
			if b.temp < p.ambient || b.temp > p.limit {
				t.Fatalf("%.3f C outside %.0f..%.0f", b.temp, p.ambient, p.limit)
			}
			if w := p.power(b); w < p.idle || w > p.most() {
				t.Fatalf("%d mW outside %d..%d", w, p.idle, p.most())
			}
			if mhz := p.clock(b); mhz < p.idleMHz || mhz > p.boostMHz {
				t.Fatalf("%d MHz outside %d..%d", mhz, p.idleMHz, p.boostMHz)
			}
		}
	})
}

func TestLookingMoreOftenChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPhysics(t)
		once, often := p.start(0), p.start(0)
		for _, s := range drawSteps(t) {
			once.permille, often.permille = s.permille, s.permille
			end := once.at + s.length
			once = p.advance(once, end)
			for range rapid.IntRange(0, 4).Draw(t, "looks") {
				between := time.Duration(rapid.Int64Range(int64(often.at), int64(end)).Draw(t, "look"))
				often = p.advance(often, between)
			}
			often = p.advance(often, end)
		}
		// The moment at which a card meets its limit is rounded to a nanosecond; that is all that may differ.
		if d := once.energy - often.energy; d < -1 || d > 1 || math.Abs(once.temp-often.temp) > 0.01 || once.at != often.at {
			t.Fatalf("once %+v, often %+v", once, often)
		}
	})
}

func TestTimeThatGoesBackIsIgnored(t *testing.T) {
	p := physics{idle: 1000, busy: 2000, ambient: 20, limit: 90, resistance: 1, lag: time.Second}
	b := p.advance(p.start(0), time.Minute)
	if got := p.advance(b, time.Second); got != b {
		t.Errorf("%+v became %+v", b, got)
	}
}

func TestTemperatureLagsByTheFirstOrder(t *testing.T) {
	p := physics{idle: 10_000, busy: 110_000, ambient: 20, limit: 200, resistance: 1, lag: 30 * time.Second}
	b := p.start(0)
	b.permille = 1000
	b = p.advance(b, 30*time.Second)
	// From 30 toward 130 degrees, 63.2 % of the way after one lag.
	if want := 130 - 100/math.E; math.Abs(b.temp-want) > 1e-9 {
		t.Errorf("%.3f C after one lag, want %.3f", b.temp, want)
	}
	if b.energy != 110_000*30 {
		t.Errorf("%d mJ, want %d", b.energy, 110_000*30)
	}
}

func TestAHotRoomSlowsTheCardDown(t *testing.T) {
	p := physics{
		idle: 10_000, busy: 110_000, ambient: 40, limit: 90, resistance: 1, lag: 30 * time.Second,
		idleMHz: 200, baseMHz: 1000, boostMHz: 1100,
	}
	b := p.start(0)
	b.permille = 1000
	b = p.advance(b, time.Hour)
	if b.temp != 90 || p.power(b) != 50_000 || !p.throttle(b).Degrades() {
		t.Errorf("%.1f C, %d mW, %s, want 90 C held by 50 W and a hard slowdown", b.temp, p.power(b), p.throttle(b))
	}
	if mhz := p.clock(b); mhz != 454 {
		t.Errorf("%d MHz, want 1000 in proportion to the power", mhz)
	}
	b.permille = 0
	b = p.advance(b, 2*time.Hour)
	if math.Abs(b.temp-50) > 0.01 || p.throttle(b).Degrades() {
		t.Errorf("%.1f C, %s after the load is gone, want 50 C and nothing wrong", b.temp, p.throttle(b))
	}
}

func TestProfilesAreWhole(t *testing.T) {
	all, err := loadProfiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Source == "" {
			t.Errorf("%s names no source", p.Model)
		}
		if err := p.card("x", 0, 0).Validate(); err != nil {
			t.Error(err)
		}
		if got := p.card("x", 0, 0).Model; got != p.Model {
			t.Errorf("profile %s makes cards of model %s", p.Model, got)
		}
		hottest := p.physics(MaxAmbientC)
		if hottest.settles(hottest.idle) >= hottest.limit || p.IdleMHz > p.BaseMHz || p.BaseMHz > p.BoostMHz {
			t.Errorf("%s: idle card too hot or clocks out of order", p.Model)
		}
		room := p.physics(DefaultAmbientC)
		if room.settles(room.busy) >= room.limit {
			t.Errorf("%s runs into its limit in a room of %d C", p.Model, DefaultAmbientC)
		}
	}
}
