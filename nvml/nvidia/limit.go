//go:build linux && cgo

package nvidia

import (
	"errors"
	"fmt"

	nv "github.com/NVIDIA/go-nvml/pkg/nvml"

	"haggle/nvml"
)

// denial is an error that crosses to the parent as a code of its own.
type denial struct{ code, text string }

func (r *denial) Error() string { return r.text }

// unsupported is the error of what the card or its driver cannot do.
func unsupported(format string, args ...any) error {
	return &denial{codeUnsupported, fmt.Sprintf(format, args...)}
}

// codeOf is how an error of the child crosses to the parent.
func codeOf(err error) string {
	if r := (*denial)(nil); errors.As(err, &r) {
		return r.code
	}
	return codeFailed
}

// powerRange is what a card may be limited to, in mW.
type powerRange struct{ least, most uint32 }

// limitPower bounds a card's power, or gives it its own limit for 0, and returns the limit that now holds.
func limitPower(p *probe, dev nv.Device, want int64) (int64, error) {
	if want < 0 || want > maxLimit {
		return 0, fmt.Errorf("%d mW is no limit", want)
	}
	if want == 0 {
		own := ask(p, "GetPowerManagementDefaultLimit", dev.GetPowerManagementDefaultLimit)
		if err := settable(own.State); err != nil {
			return 0, err
		}
		want = int64(own.Value)
	}
	bounds := ask(p, "GetPowerManagementLimitConstraints", func() (powerRange, nv.Return) {
		least, most, ret := dev.GetPowerManagementLimitConstraints()
		return powerRange{least, most}, ret
	})
	if err := settable(bounds.State); err != nil {
		return 0, err
	}
	want = min(max(want, int64(bounds.Value.least)), int64(bounds.Value.most))
	set := ask(p, "SetPowerManagementLimit", func() (struct{}, nv.Return) { return done(dev.SetPowerManagementLimit(uint32(want))) })
	if err := settable(set.State); err != nil {
		return 0, err
	}
	// What the driver enforces is what counts; it may be held lower by something else.
	for _, told := range []nvml.Opt[uint32]{
		ask(p, "GetEnforcedPowerLimit", dev.GetEnforcedPowerLimit), ask(p, "GetPowerManagementLimit", dev.GetPowerManagementLimit),
	} {
		if now, ok := told.Get(); ok && now > 0 {
			return int64(now), nil
		}
	}
	return 0, errors.New("it does not tell its power limit")
}

// settable is the error of a call in that state.
func settable(s nvml.State) error {
	switch s {
	case nvml.OK:
		return nil
	case nvml.NotSupported, nvml.NoSymbol:
		return unsupported("its power cannot be limited (%s)", s)
	case nvml.NoPermission:
		return &denial{codePermission, "only root may limit the power of a card"}
	default:
		return fmt.Errorf("its power cannot be limited (%s)", s)
	}
}
