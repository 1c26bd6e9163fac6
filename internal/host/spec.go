package host

import (
	"context"
	"errors"
	"fmt"
	"math"
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
		ID:      jobName(r.Lease),
		Image:   r.Job.Image,
		Args:    r.Job.Args,
		Env:     jobEnv(r),
		Workdir: r.Job.Workdir,
		Labels: map[string]string{
			"lease": r.Lease.ID.String(), "renter": t.Renter.String(), "expiry": strconv.FormatInt(t.Deadline, 10),
		},
		CPUMillis:   t.Resources.Threads * 1000,
		MemoryBytes: t.Resources.Memory,
	}
	if r.Lease.Attempt > 0 {
		spec.From = diskName(r.Lease)
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

// Variables that the rig sets. A job that starts again learns the number of its attempt: the first is 1, or what the renter says.
const (
	envLease   = "HAGGLE_LEASE="
	envResume  = "HAGGLE_RESUME="
	envAttempt = "HAGGLE_ATTEMPT="
)

// jobEnv is the renter's environment with what the rig adds to it.
func jobEnv(r Record) []string {
	again := r.Lease.Attempt > 0
	first := 1
	env := slices.DeleteFunc(slices.Clone([]string(r.Env)), func(v string) bool {
		if n, ok := strings.CutPrefix(v, envAttempt); ok {
			if n, err := strconv.Atoi(n); err == nil && n > 0 {
				first = n
			}
		}
		return strings.HasPrefix(v, envLease) || again && (strings.HasPrefix(v, envResume) || strings.HasPrefix(v, envAttempt))
	})
	env = append(env, envLease+r.Lease.ID.String())
	if again {
		env = append(env, envResume+"1", envAttempt+strconv.Itoa(min(first, math.MaxInt32)+int(r.Lease.Attempt)))
	}
	return env
}

// deviceClass names the kind of a card as CDI does.
func deviceClass(c nvml.Card) string {
	if c.Simulated {
		return runtime.SimulatedGPU
	}
	return strings.ToLower(c.Vendor) + ".com/gpu"
}

// baseLength is the length of a lease's name in the engine, without its attempt.
const baseLength = 32

// jobBase is a lease's name in the engine, and that of its first attempt.
func jobBase(id market.LeaseID) string { return id.String()[:baseLength] }

// jobName is the name of a lease's newest attempt in the engine.
func jobName(l market.Lease) string { return attemptName(l.ID, l.Attempt) }

// diskName is the name of the attempt that has the lease's disk: the newest that was made.
func diskName(l market.Lease) string { return attemptName(l.ID, l.Disk) }

func attemptName(id market.LeaseID, attempt uint32) string {
	if attempt == 0 {
		return jobBase(id)
	}
	return jobBase(id) + "-" + strconv.FormatUint(uint64(attempt), 10)
}

// attemptOf is the number of the attempt that a job's name means.
func attemptOf(job string) uint32 {
	_, attempt, _ := strings.Cut(job, "-")
	n, _ := strconv.ParseUint(attempt, 10, 32) // the first has none
	return uint32(n)
}

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
		{errMismatch, market.CodeArchiveMismatch},
		{runtime.ErrBadArchive, market.CodeArchiveMismatch},
		{runtime.ErrInvalidSpec, market.CodeBadJob},
		{runtime.ErrUnsupported, market.CodeJobUnsupported},
	} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return ""
}
