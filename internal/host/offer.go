package host

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"haggle/market"
	"haggle/nvml"
)

// offerRetry is the time to the next try after an offer could not be signed.
const offerRetry = 10 * time.Second

// Offers returns the sealed offers as they stand: one, or none before the cards and the engine have answered. The bytes
// must not be changed.
func (d *Daemon) Offers() [][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.offer == nil {
		return nil
	}
	return [][]byte{d.offer}
}

// Buckets returns the buckets in which the offer belongs; none while it is withdrawn. The slice must not be changed.
func (d *Daemon) Buckets() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.buckets
}

// Refresh has the offer signed anew soon, because something that only the caller knows of has changed, such as the images
// in the engine. It never waits.
func (d *Daemon) Refresh() { d.changed() }

// changed asks for a new offer. Several changes at once are one.
func (d *Daemon) changed() { poke(d.renew) }

// renewOffers signs the offer anew before it expires and after every change.
func (d *Daemon) renewOffers(ctx context.Context) {
	timer := time.NewTimer(market.OfferRenewal)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-d.renew:
		}
		if _, up := d.engine.facts(); up {
			if err := d.engine.ask(ctx); err != nil && ctx.Err() == nil {
				d.log.Debug("engine", slog.Any("err", err))
			}
			poke(d.untidy)
		}
		next := market.OfferRenewal
		if err := d.choose(ctx, func(*Settings) {}); err != nil && ctx.Err() == nil {
			d.log.Error("offer", slog.Any("err", err))
			next = offerRetry
		}
		timer.Reset(next)
	}
}

// choose changes the owner's choices and signs the offer that follows from them. Both are stored before anyone sees them.
func (d *Daemon) choose(ctx context.Context, change func(*Settings)) error {
	if err := d.sign(ctx, change); err != nil {
		return err
	}
	if d.cfg.OffersChanged != nil {
		d.cfg.OffersChanged()
	}
	return nil
}

func (d *Daemon) sign(ctx context.Context, change func(*Settings)) error {
	d.signing.Lock()
	defer d.signing.Unlock()
	s := d.settings()
	change(&s)
	now := d.cfg.Clock().Wall
	s.OfferSeq, s.Seen = max(now, s.OfferSeq+1), d.moment()
	offer, ready := d.draw(s, now)
	var sealed []byte
	if ready {
		var err error
		if sealed, err = d.seal(&offer); err != nil {
			return err
		}
	}
	if err := d.cfg.Store.SaveSettings(context.WithoutCancel(ctx), s); err != nil {
		return fmt.Errorf("store settings: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.chosen = s
	if !ready {
		return nil
	}
	d.offer, d.buckets = sealed, nil
	if offer.State != market.OfferWithdrawn {
		d.buckets = market.Buckets(offer)
	}
	return nil
}

// draw makes the offer of the rig as it is now; false while cards or engine have not answered yet.
func (d *Daemon) draw(s Settings, now int64) (market.Offer, bool) {
	until := d.heldUntil(false)
	all := d.rack.everything(until)
	o := market.Offer{
		Rig: d.self, Owner: d.self, Name: d.cfg.Name, ID: d.cfg.OfferID, Seq: s.OfferSeq, Issued: now,
		Expires: now + market.MaxOfferLife.Milliseconds(), State: market.OfferOpen,
		Host: d.cfg.Machine.facts(len(all)), Net: d.net(), Prices: d.prices(s), Rules: d.rules(),
		Pays: d.pays(), History: d.chainEnd(), Claims: d.cfg.Claims,
	}
	if !d.engine.describe(&o.Host) || len(all) == 0 {
		return o, false
	}
	o.Host.Driver, o.Host.CUDA = d.rack.software()
	// A tenth is left for what ended jobs keep: else an offer of a minute ago would promise what is not there any more.
	o.Host.DiskFree = d.diskFree() / 10 * 9
	o.Simulated = all[0].Vendor == market.VendorSimulated
	if o.Slots = d.rentable(s, until); len(o.Slots) == 0 {
		o.State, o.Slots = market.OfferListed, d.shown(s, until) // fit cards that the engine cannot give to a job
	}
	if len(o.Slots) == 0 {
		o.State, o.Slots = market.OfferWithdrawn, all
	}
	if s.Paused || s.Draining || d.diskFull() {
		o.State = market.OfferWithdrawn
	}
	return o, true
}

// net returns the facts of the network as they are now.
func (d *Daemon) net() market.NetFacts {
	facts := d.cfg.Net
	if d.cfg.Reach != nil {
		facts.Reach = d.cfg.Reach()
	}
	return facts
}

// diskFree returns the bytes of disk that new leases can have: those whose job may still write hold all that they were granted,
// the others what was last seen on the disk that is kept. Images that renters brought, or are about to bring, take room beside.
func (d *Daemon) diskFree() int64 {
	free := d.cfg.Machine.DiskFree - keptCopies*d.engine.broughtBytes(nil)
	for _, l := range d.all() {
		seen := l.seen.Load()
		switch s := seen.lease; {
		case s.Job != market.JobEnded:
			free -= s.Terms.Resources.DiskMB * bytesPerMB
			if archiveDue(s, l.wants) {
				free -= broughtCopies * l.wants.Archive
			}
		case !s.Gone:
			free -= seen.disk
		}
	}
	return max(0, free)
}

// seal checks and signs an offer. One that is too large lists fewer images.
func (d *Daemon) seal(o *market.Offer) ([]byte, error) {
	if err := o.Validate(d.cfg.Network); err != nil {
		return nil, fmt.Errorf("make offer: %w", err)
	}
	for {
		raw := market.SealOffer(d.cfg.Network, d.cfg.Key, *o).Encode()
		switch n := len(o.Host.Images); {
		case len(raw) <= market.MaxOffer:
			return raw, nil
		case n == 0:
			return nil, fmt.Errorf("make offer: %d bytes are too many", len(raw))
		default:
			o.Host.Images = o.Host.Images[:n-1]
		}
	}
}

// prices are the owner's latest.
func (d *Daemon) prices(s Settings) market.Prices {
	if s.Prices.Currency != "" {
		return s.Prices
	}
	return d.cfg.Prices
}

// facts divides the machine among its slots.
func (m Machine) facts(slots int) market.HostFacts {
	h := market.HostFacts{
		CPU: m.CPU, Kernel: m.Kernel, DiskFree: m.DiskFree, SlotThreads: m.SlotThreads, SlotMemory: m.SlotMemory,
		SlotUp: m.SlotUp, SlotDown: m.SlotDown,
	}
	if h.SlotThreads == 0 {
		h.SlotThreads = m.Threads / int64(max(1, slots))
	}
	if h.SlotMemory == 0 {
		h.SlotMemory = m.Memory / int64(max(1, slots))
	}
	return h
}

// software names the cards' driver and its CUDA as offers do.
func (r *rack) software() (driver, cuda string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok := r.info.CUDA.Get(); ok {
		cuda = strconv.Itoa(v/1000) + "." + strconv.Itoa(v%1000/10)
	}
	return r.info.Version, cuda
}

// heldUntil returns the cards that leases hold, and the wall time at which each lease must have ended. Cards whose memory began to
// be overwritten just now are among them with wiping. Offers call them free: a bid for them waits.
func (d *Daemon) heldUntil(wiping bool) map[market.Hash]int64 {
	until := map[market.Hash]int64{}
	for _, l := range d.all() {
		s := l.snapshot()
		if !s.Holds() || !wiping && s.Wiping && !d.slow(s) {
			continue
		}
		end := s.Current().Deadline
		if !usesCards(s) {
			end = s.Since + wipeMost.Milliseconds()
		}
		for _, slot := range s.Terms.Slots {
			until[slot.Card] = end
		}
	}
	return until
}

// faulty ends what cannot go on with a card, and offers the card no longer.
func (d *Daemon) faulty(hash market.Hash, v nvml.Verdict) {
	d.changed()
	for _, l := range d.all() {
		s := l.snapshot()
		hit := false
		for _, slot := range s.Terms.Slots {
			hit = hit || slot.Card == hash
		}
		if hit && usesCards(s) && (v.EndsJob || v.MultiCard && len(s.Terms.Slots) > 1) {
			l.fail()
		}
	}
}

// slow reports whether the memory of a lease's cards takes longer to overwrite than a bid waits.
func (d *Daemon) slow(s market.Lease) bool {
	return d.cfg.Clock().Wall-s.Since >= wipePatience.Milliseconds()
}
