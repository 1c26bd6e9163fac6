package sim_test

import (
	"errors"
	"testing"
	"time"

	"haggle/nvml"
	"haggle/nvml/sim"
)

func TestFaultsAreRead(t *testing.T) {
	for text, want := range map[string]sim.Fault{
		"xid 79":         {Kind: nvml.EventXid, Code: 79},
		"  xid   13 ":    {Kind: nvml.EventXid, Code: 13},
		"ecc":            {Kind: nvml.EventECC, Code: 1},
		"ecc 3":          {Kind: nvml.EventECC, Code: 3},
		"lost":           {Kind: nvml.EventLost},
		"lost for 30s":   {Kind: nvml.EventLost, For: 30 * time.Second},
		"hang for 1m30s": {Kind: nvml.EventHang, For: 90 * time.Second},
	} {
		if got, err := sim.ParseFault(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestOtherFaultsAreRefused(t *testing.T) {
	for _, text := range []string{
		"", " ", "xid", "xid 0", "xid -1", "xid 1000", "xid x", "xid 79 for 3s", "ecc 0", "ecc for 3s", "ecc 1000001",
		"lost 3", "lost for", "lost for 0s", "lost for -1s", "lost for 25h", "lost for soon", "lost 30s",
		"hang for 3s now", "meteor", "XID 79", "xid 99999999999999999999",
		"lost for 1s                                                      ",
	} {
		if got, err := sim.ParseFault(text); !errors.Is(err, sim.ErrFault) {
			t.Errorf("%q: %+v, %v, want ErrFault", text, got, err)
		}
	}
}

func FuzzParseFault(f *testing.F) {
	f.Add("xid 79")
	f.Add("ecc")
	f.Add("lost for 30s")
	f.Add("hang for 1h2m3.5s")
	f.Fuzz(func(t *testing.T, text string) {
		fault, err := sim.ParseFault(text)
		if err != nil {
			return
		}
		if err := fault.Validate(); err != nil {
			t.Fatalf("%q gives %+v: %v", text, fault, err)
		}
		if again, err := sim.ParseFault(fault.String()); err != nil || again != fault {
			t.Fatalf("%q gives %q, which reads as %+v, %v", text, fault, again, err)
		}
	})
}
