package tui_test

import (
	"context"

	"haggle/internal/view"
	"haggle/market"
)

// named returns a lease, or the error of one that is not there.
func (f *fakeMarket) named(ctx context.Context, id string) (view.Lease, error) {
	if err := f.wait(ctx); err != nil {
		return view.Lease{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.leases {
		if l.ID == id {
			return l, nil
		}
	}
	return view.Lease{}, market.NewError(market.CodeLeaseUnknown, "lease", id)
}

func (f *fakeMarket) told(ctx context.Context, id, order string, by func(*view.Lease)) (view.Lease, error) {
	if _, err := f.named(ctx, id); err != nil {
		return view.Lease{}, err
	}
	f.mu.Lock()
	f.orders = append(f.orders, order)
	f.mu.Unlock()
	f.change(id, by)
	return f.named(ctx, id)
}

func (f *fakeMarket) Keep(ctx context.Context, id string) (view.Lease, error) {
	return f.told(ctx, id, "keep", func(l *view.Lease) { l.State, l.Reason = string(market.JobPaused), string(market.ReasonRenter) })
}

func (f *fakeMarket) Resume(ctx context.Context, id string) (view.Lease, error) {
	return f.told(ctx, id, "resume", func(l *view.Lease) { l.State, l.Reason, l.Attempt = string(market.JobPreparing), "", l.Attempt+1 })
}

func (f *fakeMarket) Remove(ctx context.Context, id string) (view.Lease, error) {
	return f.told(ctx, id, "remove", func(l *view.Lease) { l.State, l.Debt = string(market.JobEnded), "final" })
}

func (f *fakeMarket) Extend(ctx context.Context, id string, r view.ExtendRequest) (view.Lease, error) {
	if r.DurationMs > 24*3_600_000 {
		return view.Lease{}, market.NewError(market.CodePriceRose, "now", "0.40", "lease", "0.36")
	}
	return f.told(ctx, id, "extend", func(l *view.Lease) { l.Duration += r.DurationMs })
}

// Copy tells half of a copy and waits for the test's word.
func (f *fakeMarket) Copy(ctx context.Context, id string, r view.CopyRequest, progress func(view.Progress)) (view.CopyReport, error) {
	if _, err := f.named(ctx, id); err != nil {
		return view.CopyReport{}, err
	}
	f.mu.Lock()
	f.copies = append(f.copies, r)
	f.mu.Unlock()
	progress(view.Progress{Files: 4, FilesDone: 2, Bytes: 4000, BytesDone: 2000, Sent: 1000})
	select {
	case <-f.copied:
		return view.CopyReport{Files: 4, Bytes: 4000, Sent: 3000}, nil
	case <-ctx.Done():
		return view.CopyReport{}, ctx.Err()
	}
}
