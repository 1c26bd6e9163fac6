package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"haggle/internal/host"
	"haggle/market"
)

// receiptsStored compares receipts of many leases that are stored at once, each on disk before the next of its lease, with appending
// as many bytes to a bare file and waiting for the disk each time.
func receiptsStored(ctx context.Context) (ours, theirs float64, err error) {
	b, err := openBook(ctx, writers)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, b.remove()) }()
	sealed, _ := chained(b.leases[0].state.ID, market.Head{}, 60_000)
	if theirs, err = appended(ctx, b.dir, sealed); err != nil {
		return 0, 0, err
	}
	var stored atomic.Int64
	errs := make([]error, writers)
	var group sync.WaitGroup
	begun := time.Now()
	for i, l := range b.leases {
		// Made before, so that the disk is measured and not the signatures.
		raw, _ := chained(l.state.ID, market.Head{}, 60_000)
		group.Go(func() {
			for seq := uint32(1); time.Since(begun) < storing && ctx.Err() == nil && errs[i] == nil; seq++ {
				errs[i] = b.Save(ctx, l.state, host.Receipt{Lease: l.state.ID, Seq: seq, Sealed: raw, Agreed: true})
				stored.Add(1)
			}
		})
	}
	group.Wait()
	return float64(stored.Load()) / time.Since(begun).Seconds(), theirs, errors.Join(errors.Join(errs...), ctx.Err())
}

// appended returns how often in a second data can be appended to a file and be on disk.
func appended(ctx context.Context, dir string, data []byte) (perSecond float64, err error) {
	f, err := os.Create(filepath.Join(dir, "bare"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	begun, n := time.Now(), 0
	for time.Since(begun) < storing && ctx.Err() == nil {
		if _, err := f.Write(data); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		n++
	}
	return float64(n) / time.Since(begun).Seconds(), ctx.Err()
}

// receiptsCPU measures the part of a core that the receipts of a thousand leases take, one a minute each.
func receiptsCPU(ctx context.Context) (ours, theirs float64, err error) {
	return paceOf(ctx, time.Minute/thousand, (*book).receipt)
}

// metersCPU measures the part of a core that storing the meters of a thousand leases takes, every five seconds each.
func metersCPU(ctx context.Context) (ours, theirs float64, err error) {
	return paceOf(ctx, 5*time.Second/thousand, (*book).tick)
}

// paceOf does something for one lease of a thousand after the other, evenly in time, and returns the percentage of a core that this
// took.
func paceOf(ctx context.Context, every time.Duration, do func(*book, context.Context, *running) error) (ours, theirs float64, err error) {
	b, err := openBook(ctx, thousand)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, b.remove()) }()
	cpu, begun := cpuTime(), time.Now()
	for n := time.Duration(0); n*every < paced; n++ {
		if wait := time.Until(begun.Add(n * every)); wait > 0 {
			time.Sleep(wait)
		}
		if err := do(b, ctx, b.leases[int(n)%thousand]); err != nil {
			return 0, 0, err
		}
	}
	return 100 * float64(cpuTime()-cpu) / float64(time.Since(begun)), 100, nil
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// receiptsDisk measures how much a rig's database grows in an hour of a lease, receipts of which are a minute apart.
func receiptsDisk(ctx context.Context) (ours, theirs float64, err error) {
	b, err := openBook(ctx, writers)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, b.remove()) }()
	grow := func(receipts int) (float64, error) {
		errs := make([]error, writers)
		var group sync.WaitGroup
		for i, l := range b.leases {
			group.Go(func() {
				for n := 0; n < receipts && errs[i] == nil; n++ {
					l.expect()
					errs[i] = b.receipt(ctx, l)
				}
			})
		}
		group.Wait()
		copied := filepath.Join(b.dir, "copy")
		defer os.Remove(copied)
		// The file itself is larger by room that the next rows will use.
		c, err := b.Backup(ctx, copied)
		return float64(c.Bytes), errors.Join(errors.Join(errs...), err)
	}
	before, err := grow(receiptsAnHour)
	if err != nil {
		return 0, 0, err
	}
	after, err := grow(hoursOnDisk * receiptsAnHour)
	return (after - before) / (writers * hoursOnDisk * 1000), 40, err
}
