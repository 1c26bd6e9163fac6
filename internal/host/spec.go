package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"haggle/market"
	"haggle/nvml"
	"haggle/runtime"
)

// spec describes the job to the engine. The same lease always gives the same spec.
func (d *Daemon) spec(r Record) (runtime.Spec, error) {
	t := r.Lease.Terms
	spec := runtime.Spec{
		ID:    jobID(r.Lease.ID),
		Image: r.Job.Image,
		Args:  r.Job.Args,
		Env:   jobEnv(r),
		Labels: map[string]string{
			"lease": r.Lease.ID.String(), "renter": t.Renter.String(), "expiry": strconv.FormatInt(t.Deadline, 10),
		},
		CPUMillis:   t.Resources.Threads * 1000,
		MemoryBytes: t.Resources.Memory,
	}
	if t.Resources.DiskMB > 0 {
		spec.DiskBytes = max(minDiskBytes, t.Resources.DiskMB*bytesPerMB)
	}
	if t.Egress {
		spec.Network = runtime.Network{Mode: runtime.NetworkInternet, UpBits: t.Resources.UpBits, DownBits: t.Resources.DownBits}
	}
	for _, s := range t.Slots {
		c, ok := d.rack.card(s.Card)
		if !ok {
			return spec, fmt.Errorf("card of slot %d is not in this rig: %w", s.Index, nvml.ErrNoCard)
		}
		spec.Devices = append(spec.Devices, runtime.DeviceID{Class: deviceClass(c), UUID: c.UUID})
	}
	return spec, spec.Validate()
}

// jobEnv is the renter's environment with what the rig adds to it.
func jobEnv(r Record) []string {
	const own = "HAGGLE_LEASE="
	env := slices.DeleteFunc(slices.Clone([]string(r.Env)), func(v string) bool { return strings.HasPrefix(v, own) })
	return append(env, own+r.Lease.ID.String())
}

// deviceClass names the kind of a card as CDI does.
func deviceClass(c nvml.Card) string {
	if c.Simulated {
		return runtime.SimulatedGPU
	}
	return strings.ToLower(c.Vendor) + ".com/gpu"
}

// jobID is a lease's name in the engine.
func jobID(id market.LeaseID) string { return id.String()[:32] }

// passes reports whether a failure says nothing about the job: the engine is away, or the call was ended.
func passes(ctx context.Context, err error) bool {
	return errors.Is(err, runtime.ErrUnavailable) || ctx.Err() != nil
}

// failure is the code for people of what keeps a job from running; empty where the reason says all that is known.
func failure(err error) market.Code {
	for _, known := range []struct {
		err  error
		code market.Code
	}{
		{runtime.ErrNoRoom, market.CodeNoRoom},
		{runtime.ErrDeviceBusy, market.CodeCardBusy},
		{runtime.ErrPolicy, market.CodeCardPolicy},
		{runtime.ErrNoDevice, market.CodeCardMissing},
		{nvml.ErrNoCard, market.CodeCardMissing},
		{runtime.ErrImageNotFound, market.CodeImageGone},
		{runtime.ErrImageTooBig, market.CodeImageTooBig},
		{runtime.ErrInvalidSpec, market.CodeBadJob},
		{runtime.ErrUnsupported, market.CodeJobUnsupported},
	} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return ""
}
