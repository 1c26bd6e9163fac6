package host

import (
	"context"
	"fmt"

	"haggle/market"
)

// Seen is the newest moment at which this rig's program is known to have run.
type Seen struct {
	Boot   market.Nonce `cbor:"1,keyasint"` // of the machine; zero where it is not known
	BootMs int64        `cbor:"2,keyasint"` // since the boot, sleep in it
	Wall   int64        `cbor:"3,keyasint"`
}

// moment is now.
func (d *Daemon) moment() Seen {
	s := Seen{Wall: d.cfg.Clock().Wall}
	if d.cfg.Boot != nil {
		s.BootMs, s.Boot = d.cfg.Boot()
	}
	return s
}

// since returns the time in ms from a wall time of an earlier life of the program to now. Within one boot of the machine it goes by
// the clock that nobody sets.
func (s Seen) since(wall int64, now Seen) int64 {
	if s.Boot == now.Boot && s.Boot != (market.Nonce{}) {
		return max(0, now.BootMs-(s.BootMs+wall-s.Wall))
	}
	return max(0, now.Wall-wall)
}

// recall reads what the store knows.
func (d *Daemon) recall(ctx context.Context) ([]*lease, error) {
	var err error
	if d.instance, err = d.cfg.Store.Instance(ctx); err != nil {
		return nil, fmt.Errorf("recall leases: %w", err)
	}
	if d.chosen, err = d.cfg.Store.Settings(ctx); err != nil {
		return nil, fmt.Errorf("recall settings: %w", err)
	}
	if err := d.recallChain(ctx); err != nil {
		return nil, fmt.Errorf("recall outcomes: %w", err)
	}
	paid, err := d.allPayments(ctx)
	if err != nil {
		return nil, fmt.Errorf("recall payments: %w", err)
	}
	records, err := d.cfg.Store.Records(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("recall leases: %w", err)
	}
	var old []*lease
	now := d.moment()
	for _, r := range records {
		l, err := d.recallLease(ctx, r, paid[r.Lease.ID], now)
		if err != nil {
			return nil, fmt.Errorf("recall lease %s: %w", r.Lease.ID.Short(), err)
		}
		if l != nil {
			old = append(old, l)
		}
	}
	return old, nil
}

// recallLease takes a lease up again; one that is over is only counted, and nil.
func (d *Daemon) recallLease(ctx context.Context, r Record, payments []market.Paper, now Seen) (*lease, error) {
	verdict, err := d.verdict(ctx, r.Lease)
	if err != nil {
		return nil, err
	}
	if d.over(r.Lease) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.retire(r.Lease, moneyOf(r.Lease, d.movedOf(r.Lease.Terms, payments), verdict))
		return nil, nil
	}
	down := d.chosen.Seen.since(r.Lease.Meter.LastWall, now)
	if r.Lease.Unsure {
		down = 0 // the store was put back: the program ran meanwhile, and what it billed comes back from the renter
	}
	if r.Lease, _, err = market.Step(r.Lease, d.cfg.Clock(), market.Restarted{DownMs: down}); err != nil {
		return nil, err
	}
	l := newLease(d, r)
	l.verdict = verdict
	for _, paper := range payments {
		p, _, err := market.OpenPayment(d.cfg.Network, paper.Sealed, r.Lease.Terms)
		if err != nil {
			return nil, err
		}
		l.count(p)
	}
	notices, err := d.cfg.Store.Papers(ctx, r.Lease.ID, market.KindNotice)
	if err != nil {
		return nil, err
	}
	if len(notices) > 0 {
		l.notice = notices[len(notices)-1].Sealed
	}
	l.publish()
	return l, nil
}
