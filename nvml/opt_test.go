package nvml_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haggle/nvml"
)

func TestAMissingValueIsNeverZero(t *testing.T) {
	var forgotten nvml.Opt[int]
	if _, ok := forgotten.Get(); ok {
		t.Error("the zero Opt gives a value")
	}
	for s := nvml.NotRead; s <= nvml.Stale; s++ {
		if _, ok := nvml.None[int](s).Get(); ok {
			t.Errorf("None(%s) gives a value", s)
		}
	}
	if _, ok := nvml.Some(7).Aged().Get(); ok {
		t.Error("a stale value is given out as current")
	}
	if v, ok := nvml.Some(0).Get(); !ok || v != 0 {
		t.Error("a measured zero is lost")
	}
}

func TestOptHasOneFormInJSON(t *testing.T) {
	for _, x := range []struct {
		opt  nvml.Opt[int]
		want string
	}{
		{nvml.Some(42), `42`},
		{nvml.Some(0), `0`},
		{nvml.None[int](nvml.NotSupported), `{"state":"not_supported"}`},
		{nvml.Some(42).Aged(), `{"state":"stale","value":42}`},
		{nvml.Opt[int]{}, `{"state":"not_read"}`},
	} {
		got, err := json.Marshal(x.opt)
		if err != nil || string(got) != x.want {
			t.Errorf("marshal %+v: %s, %v, want %s", x.opt, got, err, x.want)
		}
		var back nvml.Opt[int]
		if err := json.Unmarshal(got, &back); err != nil || back != x.opt {
			t.Errorf("%s reads as %+v, %v, want %+v", got, back, err, x.opt)
		}
	}
}

func TestOptRefusesOtherJSON(t *testing.T) {
	for _, text := range []string{
		`{"state":"ok"}`, `{"state":"ok","value":1}`, `{"state":"stale"}`, `{"state":"failed","value":1}`,
		`{"state":"perhaps"}`, `{"state":"failed","extra":1}`, `"text"`, `true`, `[1]`,
	} {
		var o nvml.Opt[int]
		if err := json.Unmarshal([]byte(text), &o); err == nil {
			t.Errorf("%s was read as %+v", text, o)
		}
	}
	var o nvml.Opt[int]
	if err := json.Unmarshal([]byte(`null`), &o); err != nil || o.State != nvml.NotRead {
		t.Errorf("null was read as %+v, %v, want not read", o, err)
	}
}

func TestSampleSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := rapid.Custom(func(t *rapid.T) nvml.State { return nvml.State(rapid.IntRange(0, 6).Draw(t, "state")) })
		drawInt := func(name string, hi int64) nvml.Opt[int64] {
			s := state.Draw(t, name+" state")
			if s != nvml.OK && s != nvml.Stale {
				return nvml.None[int64](s)
			}
			return nvml.Opt[int64]{Value: rapid.Int64Range(0, hi).Draw(t, name), State: s}
		}
		in := nvml.Sample{
			UUID:             "GPU-1",
			EnergyMilliJoule: drawInt("energy", 1<<60),
			PowerMilliWatt:   drawInt("power", 10_000_000),
			ECCCorrected:     drawInt("ecc", 1<<60),
			ThrottleReasons:  nvml.Some(nvml.Throttle(rapid.Uint32Range(0, 127).Draw(t, "throttle"))),
		}
		if err := in.Validate(); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out nvml.Sample
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(in, out); diff != "" {
			t.Fatalf("%s changed:\n%s", text, diff)
		}
	})
}

func FuzzOptJSON(f *testing.F) {
	f.Add([]byte(`42`))
	f.Add([]byte(`{"state":"stale","value":42}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var o, back nvml.Opt[int64]
		if json.Unmarshal(data, &o) != nil {
			return
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatalf("%q was read as %+v, which does not write: %v", data, o, err)
		}
		if err := json.Unmarshal(text, &back); err != nil || back != o {
			t.Fatalf("%+v wrote %s and read %+v, %v", o, text, back, err)
		}
	})
}
