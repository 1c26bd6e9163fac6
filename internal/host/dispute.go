package host

import (
	"context"
	"errors"

	"haggle/internal/view"
	"haggle/market"
)

// Dispute signs the owner's word that a lease's bill is wrong, files it, and tells the renter. By default what the rig counted is
// right.
func (d *Daemon) Dispute(ctx context.Context, id string, r view.DisputeRequest) (view.Disputes, error) {
	return d.lodge(ctx, id, func(s market.Lease) ([]byte, error) {
		said, err := r.Signs(market.RoleRig, s.ID, s.Head, s.Total(), s.Current().Budget, d.cfg.Clock().Wall)
		if err != nil {
			return nil, err
		}
		return market.SealDispute(d.cfg.Network, d.cfg.Key, said).Encode(), nil
	})
}

// Decision takes the decision of the guarantor of a lease, which counts from then on, and tells the renter.
func (d *Daemon) Decision(ctx context.Context, id string, sealed []byte) (view.Disputes, error) {
	return d.lodge(ctx, id, func(s market.Lease) ([]byte, error) {
		guarantor, err := d.guarantor(ctx, s)
		if err != nil {
			return nil, err
		}
		said, _, err := market.OpenDispute(d.cfg.Network, sealed, s.Terms, guarantor)
		if err == nil && said.By != market.RoleGuarantor {
			err = market.NewError(market.CodeBadRequest, "why", "it is the complaint of the "+string(said.By)+", and no decision")
		}
		return sealed, err
	})
}

// lodge files what is to be said of a lease's bill, and says it.
func (d *Daemon) lodge(ctx context.Context, id string, sign func(market.Lease) ([]byte, error)) (view.Disputes, error) {
	if err := d.await(ctx); err != nil {
		return view.Disputes{}, err
	}
	r, err := d.find(ctx, id)
	if err != nil {
		return view.Disputes{}, err
	}
	file := func(ctx context.Context, s market.Lease) ([]byte, *market.Micro, error) {
		if s.Job == market.JobGranted {
			return nil, nil, market.NewError(market.CodeBadRequest, "why", "a lease that is not signed costs nothing")
		}
		raw, err := sign(s)
		if err != nil {
			return nil, nil, err
		}
		verdict, err := d.dispute(ctx, s, raw)
		return raw, verdict, err
	}
	err = errClosed
	if l := d.lease(r.Lease.ID); l != nil {
		err = l.call(func(ctx context.Context) error {
			raw, verdict, err := file(ctx, l.state)
			if err != nil {
				return err
			}
			if verdict != nil {
				l.verdict = verdict
				l.publish()
			}
			l.say(market.DisputeMessage{Dispute: raw}, nil)
			return nil
		})
	}
	if errors.Is(err, errClosed) {
		err = d.change(ctx, r.Lease.ID, func(ctx context.Context, s market.Lease) error {
			_, _, err := file(ctx, s)
			return err
		})
	}
	if err != nil {
		return view.Disputes{}, err
	}
	return d.disputes(ctx, r.Lease)
}

// Disputes tells what was said of a lease's bill.
func (d *Daemon) Disputes(ctx context.Context, id string) (view.Disputes, error) {
	if err := d.await(ctx); err != nil {
		return view.Disputes{}, err
	}
	r, err := d.find(ctx, id)
	if err != nil {
		return view.Disputes{}, err
	}
	return d.disputes(ctx, r.Lease)
}

func (d *Daemon) disputes(ctx context.Context, s market.Lease) (view.Disputes, error) {
	guarantor, err := d.guarantor(ctx, s)
	if err != nil {
		return view.Disputes{}, err
	}
	papers, err := d.cfg.Store.Papers(ctx, s.ID, market.KindDispute)
	if err != nil {
		return view.Disputes{}, err
	}
	var said []market.Dispute
	for _, p := range papers {
		c, _, err := market.OpenDispute(d.cfg.Network, p.Sealed, s.Terms, guarantor)
		if err != nil {
			return view.Disputes{}, err
		}
		said = append(said, c)
	}
	told := false
	if l := d.lease(s.ID); l != nil {
		err := l.call(func(context.Context) error {
			told = l.renter != nil
			return nil
		})
		if err != nil && !errors.Is(err, errClosed) {
			return view.Disputes{}, err
		}
	}
	return view.DisputesOf(s.ID, said, s.Current().Budget, s.Terms.Prices.Currency, told), nil
}

// sayDisputes sends what was said of a lease's bill: whoever has it already passes it over.
func (d *Daemon) sayDisputes(ctx context.Context, s Stream, id market.LeaseID) error {
	papers, err := d.cfg.Store.Papers(ctx, id, market.KindDispute)
	if err != nil {
		return err
	}
	for _, p := range papers {
		if err := s.Send(ctx, market.DisputeMessage{Dispute: p.Sealed}); err != nil {
			return err
		}
	}
	return nil
}

// heard is the error of a complaint that a peer sent: one too many is passed over, and is no reason to stop talking.
func heard(err error) error {
	if market.CodeOf(err) == market.CodeTooMany {
		return nil
	}
	return err
}
