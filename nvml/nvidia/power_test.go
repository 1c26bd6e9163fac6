//go:build linux && cgo

package nvidia_test

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"haggle/nvml"
	"haggle/nvml/nvidia"
	"haggle/nvml/nvmltest"
)

func TestNVIDIADriverLimitsPower(t *testing.T) {
	for _, variant := range []string{"full", "old"} {
		t.Run(variant, func(t *testing.T) {
			nvmltest.LimitsPower(t, newRig(t, variant, "RTX4090 A100").open(nvidia.Config{}))
		})
	}
}

func TestAPowerLimitIsKeptWithinWhatTheCardAllows(t *testing.T) {
	d := newRig(t, "full", "A100 H100").open(nvidia.Config{})
	for _, x := range []struct{ want, now int64 }{
		{250_000, 250_000}, {1, 100_000}, {1_000_000_000, 400_000}, {300_000, 300_000}, {0, 400_000},
	} {
		if now, err := d.SetPowerLimit(t.Context(), uuid(0), x.want); err != nil || now != x.now {
			t.Errorf("limit of %d mW: %d, %v, want %d", x.want, now, err, x.now)
		}
		if got := cardsOf(t, d)[0].PowerLimitMilliWatt; got != nvml.Some(x.now) {
			t.Errorf("the card says %+v, want %d", got, x.now)
		}
	}
	if got := cardsOf(t, d)[1].PowerLimitMilliWatt; got != nvml.Some[int64](700_000) {
		t.Errorf("the other card says %+v", got)
	}
}

func TestAPowerLimitOutlivesTheChild(t *testing.T) {
	d := newRig(t, "full", "A100 H100").open(nvidia.Config{})
	if _, err := d.SetPowerLimit(t.Context(), uuid(0), 250_000); err != nil {
		t.Fatal(err)
	}
	kill(t, d, syscall.SIGKILL)
	until(t, func() bool { return cardsOf(t, d)[0].PowerLimitMilliWatt == nvml.Some[int64](250_000) })
	if _, err := d.SetPowerLimit(t.Context(), uuid(0), 0); err != nil {
		t.Fatal(err)
	}
	kill(t, d, syscall.SIGKILL)
	if got := cardsOf(t, d)[0].PowerLimitMilliWatt; got != nvml.Some[int64](400_000) {
		t.Errorf("a limit that was taken away came back: %+v", got)
	}
}

func TestARefusedPowerLimitSaysWhy(t *testing.T) {
	r := newRig(t, "full", "A100")
	d := r.open(nvidia.Config{})
	for call, x := range map[string]struct {
		code string
		want error
	}{
		"setlimit": {"4", fs.ErrPermission}, "bounds": {"3", nvml.ErrUnsupported}, "ownlimit": {"3", nvml.ErrUnsupported},
		"limit": {"15", nvml.ErrLost},
	} {
		r.set("0.fail."+call, x.code)
		if _, err := d.SetPowerLimit(t.Context(), uuid(0), 0); !errors.Is(err, x.want) {
			t.Errorf("%s fails with %s: %v, want %v", call, x.code, err, x.want)
		}
		r.set("0.fail."+call, "")
	}
	if _, err := d.SetPowerLimit(t.Context(), uuid(7), 250_000); !errors.Is(err, nvml.ErrNoCard) {
		t.Errorf("a card that is not there: %v, want ErrNoCard", err)
	}
	thin := newRig(t, "thin", "A100").open(nvidia.Config{})
	if _, err := thin.SetPowerLimit(t.Context(), uuid(0), 250_000); !errors.Is(err, nvml.ErrUnsupported) || thin.Starts() != 1 {
		t.Errorf("a library without the function: %v, %d children", err, thin.Starts())
	}
}
