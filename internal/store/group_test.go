package store_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"

	"haggle/internal/host"
	"haggle/internal/store"
)

// together starts changes so that all of them wait before the first is written, and returns their errors.
func together(s *store.Rig, changes ...func() error) []error {
	release := s.Hold()
	errs := make([]error, len(changes))
	var group sync.WaitGroup
	for i, change := range changes {
		group.Go(func() { errs[i] = change() })
		for s.Waiting() <= i {
			goruntime.Gosched()
		}
	}
	release()
	group.Wait()
	return errs
}

// receiptOf makes a draft of a record's lease.
func receiptOf(r host.Record, seq uint32, billed int64) host.Receipt {
	return host.Receipt{Lease: r.Lease.ID, Seq: seq, Sealed: sealReceipt(r.Lease.ID, seq, billed, false)}
}

func TestChangesThatShareATransactionFailAlone(t *testing.T) {
	p := path(t)
	s := openRig(t, p)
	var changes []func() error
	for n := range byte(30) {
		r := rigRecord(n)
		must(t, s.Create(t.Context(), r))
		must(t, s.Save(t.Context(), r.Lease, receiptOf(r, 1, 10)))
		r.Lease.Meter.BilledMs = 20
		billed := int64(20)
		if n%3 == 0 { // a fork of what is kept
			changes = append(changes, func() error { return s.Save(t.Context(), r.Lease, receiptOf(r, 2, billed), receiptOf(r, 1, 11)) })
			continue
		}
		changes = append(changes, func() error { return s.Save(t.Context(), r.Lease, receiptOf(r, 2, billed)) })
	}
	errs := together(s, changes...)
	must(t, s.Close())
	s = openRig(t, p)
	for n := range byte(30) {
		r := rigRecord(n)
		list, err := s.Receipts(t.Context(), r.Lease.ID, 0)
		must(t, err)
		kept, err := s.Record(t.Context(), r.Lease.ID)
		must(t, err)
		switch bad := n%3 == 0; {
		case bad && (!errors.Is(errs[n], store.ErrFork) || len(list) != 1 || kept.Lease.Meter.BilledMs != 0):
			t.Errorf("the fork of lease %d: %v, %d receipts, %d ms", n, errs[n], len(list), kept.Lease.Meter.BilledMs)
		case !bad && (errs[n] != nil || len(list) != 2 || kept.Lease.Meter.BilledMs != 20):
			t.Errorf("the change of lease %d: %v, %d receipts, %d ms", n, errs[n], len(list), kept.Lease.Meter.BilledMs)
		}
	}
}

func TestAChangeThatWaitsIsTakenBackWithItsCaller(t *testing.T) {
	s := openRig(t, path(t))
	first, second := rigRecord(1), rigRecord(2)
	ctx, cancel := context.WithCancel(t.Context())
	release := s.Hold()
	gone := make(chan error, 1)
	go func() { gone <- s.Create(ctx, first) }()
	for s.Waiting() == 0 {
		goruntime.Gosched()
	}
	cancel()
	wantError(t, <-gone, context.Canceled)
	release()
	must(t, s.Create(t.Context(), second))
	if list, err := s.Records(t.Context(), true); err != nil || len(list) != 1 || list[0].Lease.ID != second.Lease.ID {
		t.Errorf("%d leases are kept, %v, want the second alone", len(list), err)
	}
	wantError(t, s.Create(ctx, first), context.Canceled)
}

func BenchmarkReceiptsOfManyLeases(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d writers", writers), func(b *testing.B) {
			s, err := store.OpenRig(b.Context(), b.TempDir()+"/rig.db")
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			records := make([]host.Record, writers)
			for n := range records {
				records[n] = rigRecord(byte(n))
				if err := s.Create(b.Context(), records[n]); err != nil {
					b.Fatal(err)
				}
			}
			receipts := make([]host.Receipt, b.N)
			for i := range receipts {
				id, seq := records[i%writers].Lease.ID, uint32(i/writers)+1
				receipts[i] = host.Receipt{Lease: id, Seq: seq, Sealed: sealReceipt(id, seq, 1, true), Agreed: true}
			}
			b.ResetTimer()
			var group sync.WaitGroup
			for w := range writers {
				group.Go(func() {
					for i := w; i < b.N; i += writers {
						if err := s.Save(b.Context(), records[w].Lease, receipts[i]); err != nil {
							b.Error(err)
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "receipts/s")
		})
	}
}
