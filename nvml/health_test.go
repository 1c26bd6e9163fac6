package nvml_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haggle/nvml"
)

func xid(code int) nvml.HealthEvent { return nvml.HealthEvent{Kind: nvml.EventXid, Code: code} }

func TestXidsAreClassified(t *testing.T) {
	for _, code := range []int{13, 31, 43, 45, 68, 69, 7} {
		v := nvml.Classify(xid(code))
		if v.Health != nvml.Fit || v.Class != nvml.ClassApplication {
			t.Errorf("xid %d: %+v, want the application's fault", code, v)
		}
	}
	for _, code := range []int{46, 48, 62, 64, 79, 95, 109, 119, 120, 140, 143} {
		v := nvml.Classify(xid(code))
		if v.Health != nvml.Fence || v.Class != nvml.ClassHardware {
			t.Errorf("xid %d: %+v, want a fence", code, v)
		}
	}
	watch := func(reason string) nvml.Verdict {
		return nvml.Verdict{Health: nvml.Watch, Class: nvml.ClassHardware, Reason: reason}
	}
	remap, contained, link := watch("xid_63"), watch("xid_94"), watch("xid_74")
	remap.Drain, contained.EndsJob, link.MultiCard = true, true, true
	for code, want := range map[int]nvml.Verdict{63: remap, 94: contained, 74: link} {
		if diff := cmp.Diff(want, nvml.Classify(xid(code))); diff != "" {
			t.Errorf("xid %d (-want +got):\n%s", code, diff)
		}
	}
}

func TestTheDriversOpinionCountsWhereTheTableIsSilent(t *testing.T) {
	e := xid(999)
	e.NeedsReset = nvml.Some(true)
	if v := nvml.Classify(e); v.Health != nvml.Fence {
		t.Errorf("an unknown xid that needs a reset: %+v, want a fence", v)
	}
	changed := xid(154)
	if v := nvml.Classify(changed); v.Health != nvml.Watch || !v.Drain {
		t.Errorf("xid 154 without the driver's opinion: %+v, want no new leases", v)
	}
	changed.NeedsReset = nvml.Some(true)
	if v := nvml.Classify(changed); v.Health != nvml.Fence {
		t.Errorf("xid 154 with a reset due: %+v, want a fence", v)
	}
	changed.NeedsReset = nvml.Some(false)
	if v := nvml.Classify(changed); v.Health != nvml.Fit || v.Class != nvml.ClassNone {
		t.Errorf("xid 154 without need: %+v, want fit", v)
	}
}

func TestOtherEventsAreClassified(t *testing.T) {
	for _, x := range []struct {
		event nvml.HealthEvent
		want  nvml.Health
	}{
		{nvml.HealthEvent{Kind: nvml.EventECC, Code: 1}, nvml.Fence},
		{nvml.HealthEvent{Kind: nvml.EventLost}, nvml.Fence},
		{nvml.HealthEvent{Kind: nvml.EventHang, Code: 1}, nvml.Watch},
		{nvml.HealthEvent{Kind: nvml.EventHang, Code: 2}, nvml.Fence},
		{nvml.HealthEvent{Kind: "meteor"}, nvml.Watch},
	} {
		if got := nvml.Classify(x.event); got.Health != x.want {
			t.Errorf("%s: %+v, want %s", x.event, got, x.want)
		}
	}
}

func TestAFenceAlwaysEndsTheJobAndStopsNewOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := nvml.HealthEvent{
			Kind: rapid.SampledFrom([]nvml.EventKind{nvml.EventXid, nvml.EventECC, nvml.EventLost, nvml.EventHang, ""}).Draw(t, "kind"),
			Code: rapid.IntRange(-1, 200).Draw(t, "code"),
		}
		v := nvml.Classify(e)
		if v.Health == nvml.Fence && (!v.EndsJob || !v.Drain || v.Class != nvml.ClassHardware) {
			t.Fatalf("%s: %+v", e, v)
		}
	})
}

func TestNewMemoryErrorsAreAnEventOnlyWhenBothCountsAreKnown(t *testing.T) {
	at := func(n nvml.Opt[int64]) nvml.Sample { return nvml.Sample{UUID: "GPU-1", ECCUncorrected: n} }
	if e, ok := nvml.NewErrors(at(nvml.Some[int64](1)), at(nvml.Some[int64](4))); !ok || e.Code != 3 {
		t.Errorf("1 to 4: %+v, %t, want 3 new errors", e, ok)
	}
	for name, pair := range map[string][2]nvml.Opt[int64]{
		"the same":    {nvml.Some[int64](4), nvml.Some[int64](4)},
		"a reset":     {nvml.Some[int64](4), nvml.Some[int64](0)},
		"unknown was": {nvml.None[int64](nvml.Failed), nvml.Some[int64](4)},
		"unknown is":  {nvml.Some[int64](4), nvml.None[int64](nvml.NotSupported)},
	} {
		if e, ok := nvml.NewErrors(at(pair[0]), at(pair[1])); ok {
			t.Errorf("%s: %+v, want no event", name, e)
		}
	}
}

// window makes 61 samples, one a second, of which the first slow are slowed down by heat.
func window(slow int, corrected int64) []nvml.Sample {
	var w []nvml.Sample
	for i := range 61 {
		s := nvml.Sample{At: time.Duration(i) * time.Second, ThrottleReasons: nvml.Some(nvml.ThrottlePowerCap)}
		if i < slow {
			s.ThrottleReasons = nvml.Some(nvml.ThrottlePowerCap | nvml.ThrottleHeatHard)
		}
		s.ECCCorrected = nvml.Some(int64(i) * corrected / 60)
		w = append(w, s)
	}
	return w
}

func TestAWindowOfSamplesIsJudged(t *testing.T) {
	for name, x := range map[string]struct {
		window []nvml.Sample
		want   string
	}{
		"nothing":                       {nil, ""},
		"a tenth slowed down":           {window(6, 0), ""},
		"more than a tenth slowed down": {window(7, 0), "slowed_by_heat_or_brake"},
		"a short window":                {window(60, 0)[:60], ""},
		"a few corrected errors":        {window(0, 16), ""},
		"a rain of corrected errors":    {window(0, 17), "ecc_corrected"},
	} {
		v := nvml.WatchWindow(x.window)
		if v.Reason != x.want || (v.Health == nvml.Watch) != (x.want != "") {
			t.Errorf("%s: %+v, want reason %q", name, v, x.want)
		}
	}
}

func TestACardIsSuspectWhenDifferentLeasesFailOnIt(t *testing.T) {
	at := func(lease string, minute int) nvml.LeaseFault {
		return nvml.LeaseFault{Lease: lease, At: time.Duration(minute) * time.Minute}
	}
	now := 100 * time.Minute
	if nvml.Suspect([]nvml.LeaseFault{at("a", 90), at("a", 91), at("a", 92), at("b", 93)}, now) {
		t.Error("one lease that fails often makes the card suspect")
	}
	if nvml.Suspect([]nvml.LeaseFault{at("a", 39), at("b", 91), at("c", 92)}, now) {
		t.Error("an old fault counts")
	}
	if !nvml.Suspect([]nvml.LeaseFault{at("a", 40), at("b", 91), at("c", 100)}, now) {
		t.Error("three leases within an hour do not count")
	}
}
