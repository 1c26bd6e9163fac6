//go:build linux && cgo

package nvidia_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/nvml"
	"haggle/nvml/nvidia"
	"haggle/nvml/nvmltest"
)

func TestNVIDIADriverConforms(t *testing.T) {
	nvmltest.Conformance(t, newRig(t, "full", "RTX4090 A100 H100").open(nvidia.Config{}))
}

func TestOldDriverConforms(t *testing.T) {
	nvmltest.Conformance(t, newRig(t, "old", "RTX4090 A100").open(nvidia.Config{}))
}

func TestCardsAreDescribed(t *testing.T) {
	r := newRig(t, "full", "RTX4090 A100 H100")
	r.set("1.util", "90")
	d := r.open(nvidia.Config{})
	no := nvml.None[bool](nvml.NotSupported)
	want := []nvml.Card{{
		UUID: uuid(0), Vendor: "NVIDIA", Model: "RTX_4090", RawName: "NVIDIA GeForce RTX 4090", PCIBusID: "0000:01:00.0",
		MemoryBytes: 24564 << 20, MemoryUsableBytes: nvml.Some[int64]((24564 - 512) << 20), ComputeCapability: nvml.Some(89),
		MaxClockMHz: nvml.Some(3105), PowerLimitMilliWatt: nvml.Some[int64](450_000), PCIeGen: nvml.Some(1),
		PCIeGenMax: nvml.Some(4), PCIeWidth: nvml.Some(16), PCIeWidthMax: nvml.Some(16), ECC: no, MIG: no,
		DisplayAttached: nvml.Some(true),
	}, {
		UUID: uuid(1), Vendor: "NVIDIA", Model: "A100_SXM", RawName: "NVIDIA A100-SXM4-80GB", PCIBusID: "0000:02:00.0",
		MemoryBytes: 81920 << 20, MemoryUsableBytes: nvml.Some[int64]((81920 - 640) << 20), ComputeCapability: nvml.Some(80),
		MaxClockMHz: nvml.Some(1410), PowerLimitMilliWatt: nvml.Some[int64](400_000), PCIeGen: nvml.Some(4),
		PCIeGenMax: nvml.Some(4), PCIeWidth: nvml.Some(16), PCIeWidthMax: nvml.Some(16), ECC: nvml.Some(true),
		MIG: nvml.Some(false), DisplayAttached: nvml.Some(false),
	}, {
		UUID: uuid(2), Vendor: "NVIDIA", Model: "H100_SXM", RawName: "NVIDIA H100 80GB HBM3", PCIBusID: "0000:03:00.0",
		MemoryBytes: 81559 << 20, MemoryUsableBytes: nvml.Some[int64]((81559 - 551) << 20), ComputeCapability: nvml.Some(90),
		MaxClockMHz: nvml.Some(1980), PowerLimitMilliWatt: nvml.Some[int64](700_000), PCIeGen: nvml.Some(1),
		PCIeGenMax: nvml.Some(5), PCIeWidth: nvml.Some(16), PCIeWidthMax: nvml.Some(16), ECC: nvml.Some(true),
		MIG: nvml.Some(false), DisplayAttached: nvml.Some(false),
	}}
	if diff := cmp.Diff(want, cardsOf(t, d)); diff != "" {
		t.Errorf("cards (-want +got):\n%s", diff)
	}
	info, err := d.Info(t.Context())
	if err != nil || info.Version != "550.163.01" || info.CUDA != nvml.Some(12040) || info.Library != r.library {
		t.Errorf("info %+v, %v", info, err)
	}
}

func TestSamplesAreRead(t *testing.T) {
	r := newRig(t, "full", "RTX4090 A100")
	for key, value := range map[string]string{
		"1.util": "42", "1.used": "1073741824", "1.energy": "5000", "1.temp": "61", "1.reasons": "4", "1.unc": "3", "1.cor": "7",
	} {
		r.set(key, value)
	}
	clock := 5 * time.Second
	d := r.open(nvidia.Config{Clock: func() time.Duration { return clock }})
	want := nvml.Sample{
		UUID: uuid(1), UtilPermille: nvml.Some(420), MemUsedBytes: nvml.Some[int64](1 << 30),
		PowerMilliWatt: nvml.Some[int64](400_000), EnergyMilliJoule: nvml.Some[int64](5000), TemperatureC: nvml.Some(61),
		ClockMHz: nvml.Some(1410), ThrottleReasons: nvml.Some(nvml.ThrottlePowerCap), ECCUncorrected: nvml.Some[int64](3),
		ECCCorrected: nvml.Some[int64](7),
	}
	if diff := cmp.Diff(want, sampleOf(t, d, uuid(1))); diff != "" {
		t.Errorf("sample (-want +got):\n%s", diff)
	}
	if s := sampleOf(t, d, uuid(0)); s.ECCUncorrected.State != nvml.NotSupported || s.ThrottleReasons != nvml.Some(nvml.ThrottleIdle) {
		t.Errorf("sample of a card without ECC: %+v", s)
	}
}

func TestReasonsOfASlowClockAreTranslated(t *testing.T) {
	r := newRig(t, "full", "RTX4090")
	d := r.open(nvidia.Config{})
	for bits, want := range map[string]nvml.Throttle{
		"0":    0,
		"1":    nvml.ThrottleIdle,
		"18":   nvml.ThrottleSetting,
		"32":   nvml.ThrottleHeatSoft,
		"72":   nvml.ThrottleHeatHard,
		"136":  nvml.ThrottlePowerBrake,
		"8":    nvml.ThrottlePowerBrake,
		"512":  nvml.ThrottlePowerCap,
		"4097": nvml.ThrottleIdle | nvml.ThrottleOther,
	} {
		r.set("0.reasons", bits)
		if got := sampleOf(t, d, uuid(0)).ThrottleReasons; got != nvml.Some(want) {
			t.Errorf("reasons %s are %s in state %s, want %s", bits, got.Value, got.State, want)
		}
	}
}

func TestOneBadReadingHidesNothingElse(t *testing.T) {
	r := newRig(t, "full", "A100")
	for key, value := range map[string]string{
		"0.temp": "4000000000", "0.util": "150", "0.used": "99999999999999", "0.fail.power": "4", "0.fail.clock": "3",
		"0.fail.ecc": "999", "0.fail.limit": "13", "0.fail.memory2": "25", "0.mig": "7",
	} {
		r.set(key, value)
	}
	d := r.open(nvidia.Config{})
	s := sampleOf(t, d, uuid(0))
	for name, x := range map[string]struct{ got, want nvml.State }{
		"temperature": {s.TemperatureC.State, nvml.Failed},
		"utilisation": {s.UtilPermille.State, nvml.Failed},
		"memory":      {s.MemUsedBytes.State, nvml.Failed},
		"power":       {s.PowerMilliWatt.State, nvml.NoPermission},
		"clock":       {s.ClockMHz.State, nvml.NotSupported},
		"ecc":         {s.ECCUncorrected.State, nvml.Failed},
		"energy":      {s.EnergyMilliJoule.State, nvml.OK},
	} {
		if x.got != x.want {
			t.Errorf("%s is %s, want %s", name, x.got, x.want)
		}
	}
	cards := cardsOf(t, d)
	if len(cards) != 1 || cards[0].PowerLimitMilliWatt.State != nvml.NoSymbol || cards[0].MIG.State != nvml.Failed ||
		cards[0].MemoryUsableBytes.State != nvml.NoSymbol || cards[0].MemoryBytes != 81920<<20 {
		t.Errorf("cards %+v", cards)
	}
}

func TestCardsThatCannotBeBelievedAreLeftOut(t *testing.T) {
	r := newRig(t, "full", "RTX4090 RTX4090 RTX4090 RTX4090 RTX4090 A100")
	r.set("0.uuid", "SIM-1234")
	r.set("1.uuid", "GPU-\x1b[2J")
	r.set("2.uuid", uuid(5))
	for _, call := range []string{"memory", "memory2"} {
		r.set("3.fail."+call, "999")
	}
	r.set("4.fail.uuid", "999")
	d := r.open(nvidia.Config{})
	var got []string
	for _, c := range cardsOf(t, d) {
		got = append(got, c.UUID)
	}
	// Which of the two with the same UUID stays is a matter of which was faster.
	if diff := cmp.Diff([]string{uuid(5)}, got); diff != "" {
		t.Errorf("cards (-want +got):\n%s", diff)
	}
	if d.Starts() != 1 {
		t.Errorf("%d children were needed", d.Starts())
	}
}

func TestAMachineWithoutADriverGetsOneSentence(t *testing.T) {
	notELF := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if err := os.WriteFile(notELF, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	refusing := func(code string) string {
		r := newRig(t, "full", "A100")
		r.set("init", code)
		return r.library
	}
	for name, x := range map[string]struct{ library, want string }{
		"no library":     {"libnvidia-ml.so.404", "libnvidia-ml.so.404 is not installed; it comes with the NVIDIA driver"},
		"no ELF":         {notELF, "cannot be loaded"},
		"no module":      {refusing("9"), "its kernel module is not loaded"},
		"half upgraded":  {refusing("18"), "restart the machine"},
		"no permission":  {refusing("4"), "does not let this user in"},
		"another reason": {refusing("999"), "NVML error 999"},
		"not NVIDIA's":   {newRig(t, "empty", "").library, "lacks nvmlInit_v2"},
		"a bare library": {newRig(t, "bare", "").library, "does not tell the number of cards (no_symbol)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := nvidia.Open(t.Context(), withDefaults(t, nvidia.Config{Library: x.library}))
			if !errors.Is(err, nvml.ErrNoDriver) || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("open: %v", err)
			}
		})
	}
}

func TestARigWithoutCardsHasNone(t *testing.T) {
	if cards := cardsOf(t, newRig(t, "full", "").open(nvidia.Config{})); cards == nil || len(cards) != 0 {
		t.Errorf("cards %v", cards)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	for _, cfg := range []nvidia.Config{{}, {Command: []string{""}}, {Command: command(childArg), Timeout: -1}} {
		if d, err := nvidia.Open(t.Context(), cfg); err == nil {
			t.Errorf("%+v was opened", cfg)
			_ = d.Close()
		}
	}
	if _, err := nvidia.Open(t.Context(), nvidia.Config{Command: []string{"/nonexistent/child"}}); err == nil {
		t.Error("a program that does not exist was opened")
	}
}

func TestCloseEndsTheChild(t *testing.T) {
	r := newRig(t, "full", "A100")
	d := r.open(nvidia.Config{})
	pid := d.ChildPID()
	r.set("0.hang", "600000")
	failed := make(chan error, 1)
	go func() {
		_, err := d.Sample(t.Context(), uuid(0))
		failed <- err
	}()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, nvml.ErrClosed) {
		t.Errorf("a call that waits gets %v, want ErrClosed", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("child %d is still there: %v", pid, err)
	}
}
