package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"haggle/market"
)

// maxLeases bounds the leases that a rig looks after at a time, those included whose job has ended and whose disk is kept.
const maxLeases = 4096

// maxSending bounds the leases of one renter that wait for what it sends before the start, its first money in it: they cost it nothing.
const maxSending = 4

// How long a bid waits for a slot whose card's memory is being overwritten, and how often it looks.
const (
	wipePatience = 5 * time.Second
	wipeLook     = 20 * time.Millisecond
)

// grant answers a bid with a lease that the rig has signed and stored, or with the market's error; then nothing is
// reserved. The same bid again gets the same lease. A bid that comes right after the end of a job waits until its slot is
// clean, as offers promise.
func (d *Daemon) grant(ctx context.Context, peer market.Key, m market.BidMessage) (*lease, error) {
	until := d.cfg.Clock().Mono + wipePatience.Milliseconds()
	for {
		l, err := d.tryGrant(ctx, peer, m)
		var refused *market.Error
		if !errors.As(err, &refused) || refused.Code != market.CodeSlotTaken || !d.wiping() || d.cfg.Clock().Mono > until {
			return l, err
		}
		if !pause(ctx, wipeLook) {
			return nil, ctx.Err()
		}
	}
}

// wiping reports whether a slot is held only until its card is clean.
func (d *Daemon) wiping() bool {
	return slices.ContainsFunc(d.all(), func(l *lease) bool { return l.snapshot().Wiping })
}

func (d *Daemon) tryGrant(ctx context.Context, peer market.Key, m market.BidMessage) (*lease, error) {
	bid, sealedBid, err := market.OpenBid(d.cfg.Network, m.Bid)
	if err != nil {
		return nil, err
	}
	if bid.Renter != peer {
		return nil, market.NewError(market.CodeNotYours)
	}
	d.grants.Lock()
	defer d.grants.Unlock()
	if before, found, err := d.cfg.Store.Granted(ctx, sealedBid.Hash()); err != nil || found {
		return d.again(ctx, before, m.Guarantee, err)
	}
	offer, err := d.admit(m, bid)
	if err != nil {
		return nil, err
	}
	image, err := d.image(m.Job)
	if err != nil {
		return nil, err
	}
	slots, err := market.Pick(d.present(offer), bid)
	if err != nil {
		return nil, err // said first: who comes too late for the last slot shall not be told to try again
	}
	if err := d.admitRenter(bid.Renter); err != nil {
		return nil, err
	}
	nonce, err := d.nonce()
	if err != nil {
		return nil, err
	}
	now := d.cfg.Clock()
	terms := market.Grant(offer, bid, sealedBid.Hash(), slots, now.Wall, nonce)
	if err := d.admitDisk(terms, d.imageToCome(m.Job, bid.Renter)); err != nil {
		return nil, err
	}
	if !bid.Guarantee.IsZero() {
		d.pledging.Lock() // from the check until the lease is counted
		defer d.pledging.Unlock()
		if err := d.guarantee(d.settings(), bid, m.Guarantee); err != nil {
			return nil, err
		}
	}
	sealed := market.SealTerms(d.cfg.Network, d.cfg.Key, terms)
	record := Record{
		Lease: market.NewLease(sealed.ID(), terms, now, early(m.Job)), Sealed: sealed.Encode(),
		Offer: m.Offer, Bid: m.Bid, Job: m.Job, Image: image,
	}
	// What was promised to a renter that has just gone is still stored: the hold frees it.
	if err := d.cfg.Store.Create(context.WithoutCancel(ctx), record); err != nil {
		return nil, fmt.Errorf("reserve slots: %w", err)
	}
	if err := d.keepGuarantee(ctx, record.Lease, m.Guarantee); err != nil {
		return nil, err // the same bid again files it
	}
	l := newLease(d, record)
	d.adopt(l)
	return l, nil
}

func (d *Daemon) nonce() (market.Nonce, error) {
	var n market.Nonce
	if _, err := io.ReadFull(d.cfg.Random, n[:]); err != nil {
		return n, fmt.Errorf("make a nonce: %w", err)
	}
	return n, nil
}

// again answers a bid that was granted before.
func (d *Daemon) again(ctx context.Context, r Record, guarantee []byte, err error) (*lease, error) {
	if err != nil {
		return nil, err
	}
	state := r.Lease
	if l := d.lease(r.Lease.ID); l != nil {
		if state = l.snapshot(); state.Job == market.JobGranted {
			if err := d.keepGuarantee(ctx, state, guarantee); err != nil {
				return nil, err
			}
		}
		if state.Job != market.JobEnded {
			return l, nil
		}
	}
	if state.Reason == market.ReasonHoldExpired {
		return nil, market.NewError(market.CodeHoldExpired)
	}
	return nil, market.NewError(market.CodeLeaseEnded, "reason", string(state.Reason))
}

// admit checks a bid against the offer that it carries, which must be this rig's own.
func (d *Daemon) admit(m market.BidMessage, bid market.Bid) (market.Offer, error) {
	offer, sealed, err := market.OpenOffer(d.cfg.Network, m.Offer)
	switch {
	case err != nil:
		return offer, err
	case offer.Rig != d.self:
		return offer, market.NewError(market.CodeOfferUnknown, "offer", sealed.Hash().String()[:8])
	}
	if s := d.settings(); s.Paused || s.Draining {
		return offer, market.NewError(market.CodePaused)
	}
	if d.diskFull() {
		return offer, market.NewError(market.CodeDiskFull, "whose", "the rig")
	}
	if err := d.admitOwner(bid); err != nil {
		return offer, err
	}
	if bid.Pay != "" {
		if err := d.checkMethod(bid.Pay); err != nil {
			return offer, err // its program has gone since
		}
	}
	if err := market.Admit(d.ownOffer(offer, bid.Owner), sealed.Hash(), bid, d.cfg.Clock().Wall); err != nil {
		return offer, err
	}
	if err := market.AdmitJob(offer, bid, m.Job); err != nil {
		return offer, err
	}
	if m.Job.Archive > 0 && !d.cfg.Bring {
		return offer, market.NewError(market.CodeNoBring) // the owner has changed its mind since
	}
	return offer, nil
}

// early reports whether a job needs nothing that its renter gives only with its signature.
func early(job market.Job) bool {
	return job.Archive == 0 && job.Secrets == 0 && job.EnvHash == market.Env{}.Hash(job.Salt)
}

// image finds the image that a job names by its digest, or reports whether its renter may bring it.
func (d *Daemon) image(job market.Job) (market.ImageName, error) {
	images, up := d.engine.facts()
	if !up {
		return market.ImageName{}, market.NewError(market.CodeEngineDown)
	}
	if job.Archive > 0 {
		return d.bring(job)
	}
	digest := job.Image
	var names []string
	for _, i := range images {
		if i.Digest == digest {
			return i, nil
		}
		names = append(names, i.Name)
	}
	if err := d.engine.refused(digest); err != nil {
		return market.ImageName{}, err
	}
	return market.ImageName{}, market.NewError(market.CodeImageUnknown, "image", digest, "images", strings.Join(names, ", "))
}

// admitRenter keeps one key from holding slots that it does not sign for, or whose job never begins.
func (d *Daemon) admitRenter(renter market.Key) error {
	leases := d.all()
	if len(leases) >= maxLeases {
		return market.NewError(market.CodeTooMany)
	}
	sending := 0
	for _, l := range leases {
		s := l.snapshot()
		if s.Terms.Renter != renter {
			continue
		}
		if s.Job == market.JobGranted {
			return market.NewError(market.CodeTooMany)
		}
		if s.Job == market.JobPreparing && (s.Awaits() || !s.Funded()) {
			sending++
		}
	}
	if sending >= maxSending {
		return market.NewError(market.CodeTooMany)
	}
	return nil
}

// admitDisk reports whether the disk that is to be granted is there now, beside the bytes that an image to come will take: the offer
// of a bid may be older than other leases.
func (d *Daemon) admitDisk(t market.Terms, image int64) error {
	granted := t.Resources.DiskMB * bytesPerMB
	if d.cfg.Machine.DiskFree > 0 && (granted < minDiskBytes || granted > d.diskFree()-image) {
		return market.NewError(market.CodeNoRoom)
	}
	return nil
}

// present returns an offer with the slots as they are now: without those whose card is gone or unfit, and with the leases
// that hold them. The cards' order may be another than when it was signed; their hashes tell.
func (d *Daemon) present(o market.Offer) market.Offer {
	until := d.heldUntil(true)
	fit := map[market.Hash]bool{}
	for _, s := range d.rentable(d.settings(), until) {
		fit[s.Card] = true
	}
	slots := o.Slots
	o.Slots = nil
	for _, s := range slots {
		if fit[s.Card] {
			s.LeasedUntil = until[s.Card]
			o.Slots = append(o.Slots, s)
		}
	}
	return o
}
