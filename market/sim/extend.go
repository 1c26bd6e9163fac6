package sim

import "haggle/market"

// extend is the renter's order for more time and money. It is signed and stored before it is sent.
func (r *renter) extend() {
	d, t := &r.disk, r.w.deal.terms
	if !r.alive || d.job != market.JobRunning && d.job != market.JobPaused || d.asking != nil {
		return
	}
	next := t.Extend(r.w.deal.id, d.extension, 60_000*r.w.rng.Int64N(8), market.Micro(1+r.w.rng.Int64N(60_000)), r.clock.wall())
	raw := market.SealExtension(netName, r.w.deal.renterKey, next).Encode()
	r.w.note("renter", "asks for an extension")
	r.write(func(d *renterDisk) { d.asking = raw })
	r.wishes()
}

// extended takes an extension that both signed.
func (r *renter) extended(raw []byte) error {
	d, id := &r.disk, r.w.deal.id
	e, s, err := market.OpenExtension(netName, raw, r.w.deal.terms)
	if err != nil || !s.SignedBy(market.RoleRig) || d.extension != nil && e.Seq <= d.extension.Seq {
		return err
	}
	if err := market.CheckExtension(id, r.w.deal.terms, d.extension, e); err != nil {
		return err
	}
	r.write(func(d *renterDisk) { d.extension, d.extensions, d.asking = &e, append(d.extensions, raw), nil })
	return nil
}

// terms returns the terms with the newest extension that the renter has.
func (d *renterDisk) terms(t market.Terms) market.Terms { return t.Extended(d.extension) }

// extended takes a renter's extension, and answers with both signatures. The same one again gets the same bytes; one that has both
// already was signed in a life that the rig's store has forgotten.
func (r *rig) extended(raw []byte) error {
	e, s, err := market.OpenExtension(netName, raw, r.w.deal.terms)
	if err != nil {
		return err
	}
	if n := int(e.Seq); n > 0 && n <= len(r.disk.extensions) {
		r.send(market.ExtendMessage{Extension: r.disk.extensions[n-1]})
		return nil
	}
	if err := market.CheckExtension(r.w.deal.id, r.w.deal.terms, r.state.Extension, e); err != nil {
		r.decline(market.OrderExtend, err)
		return nil
	}
	both := market.Consent(s, r.w.deal.rigKey).Encode()
	if err := r.step(market.Extend{Extension: e}, func(d *rigDisk) { d.extensions = append(d.extensions, both) }); err != nil {
		r.decline(market.OrderExtend, err)
		return nil
	}
	r.send(market.ExtendMessage{Extension: both})
	return nil
}
