package renter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"haggle/market"
)

// Bounds of serving.
const (
	maxHandovers = 256 // on one stream
	maxCare      = 64  // open leases of one agent
	takeTime     = 10 * time.Second
)

// ServeDeputy takes leases that an agent hands over, on a stream of that agent, until it ends. Whoever is not served is refused with
// code CodeDeputyUnknown. Each answer comes after what was handed over is on disk.
func (a *Agent) ServeDeputy(ctx context.Context, s Stream) error {
	for range maxHandovers {
		m, err := s.Receive(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		h, ok := m.(market.HandoverMessage)
		if !ok {
			return market.Unexpected(m)
		}
		seq, err := a.takeOver(ctx, s.Peer(), h)
		if !errors.Is(err, errNotServed) {
			a.deputies.note(s.Peer(), a.cfg.Clock().UnixMilli(), err)
		}
		if err != nil {
			return err
		}
		if err := s.Send(ctx, market.AckMessage{Seq: seq}); err != nil {
			return err
		}
	}
	return market.NewError(market.CodeTooMany)
}

// errNotServed marks the refusal of an agent that the user does not know: nothing is kept of it.
var errNotServed = errors.New("not served")

// handed is a handover that was checked.
type handed struct {
	market.HandoverMessage
	offer   market.Offer
	bid     market.Hash
	terms   market.Terms
	lease   market.LeaseID
	extend  *market.Extension
	receipt *market.Receipt
	hash    market.Hash // of the receipt
	signer  market.Key  // of the receipt, for the renter
}

// takeOver takes what an agent hands over, and returns the number of the receipt that came with it.
func (a *Agent) takeOver(ctx context.Context, peer market.Key, m market.HandoverMessage) (uint32, error) {
	d, served, err := a.deputyOf(ctx, peer, true)
	if err != nil {
		return 0, err
	}
	if !served {
		return 0, fmt.Errorf("%w: %w", market.NewError(market.CodeDeputyUnknown, "deputy", a.self.String()), errNotServed)
	}
	h, err := a.check(peer, m)
	if err != nil {
		return 0, err
	}
	if d.Cap > 0 {
		h.Cap = min(h.Cap, d.Cap)
	}
	a.deputies.taking.Lock()
	defer a.deputies.taking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	l, err := a.care(ctx, peer, h)
	if err != nil || l == nil {
		return 0, err
	}
	if h.Release {
		return 0, a.release(ctx, l)
	}
	if h.receipt == nil {
		return 0, a.learn(ctx, l, h)
	}
	return h.receipt.Seq, a.learn(ctx, l, h)
}

func badHandover(why string) error {
	return market.NewError(market.CodeBadRecord, "kind", "handover", "why", why)
}

// check verifies a handover as this agent would check a grant of its own: the peer's word counts for nothing in it.
func (a *Agent) check(peer market.Key, m market.HandoverMessage) (handed, error) {
	h := handed{HandoverMessage: m}
	offer, _, err := market.OpenOffer(a.cfg.Network, m.Offer)
	if err != nil {
		return h, err
	}
	bid, sealedBid, err := market.OpenBid(a.cfg.Network, m.Bid)
	if err != nil {
		return h, err
	}
	terms, sealed, err := market.OpenLease(a.cfg.Network, m.Lease)
	if err != nil {
		return h, err
	}
	h.offer, h.bid, h.terms, h.lease = offer, sealedBid.Hash(), terms, sealed.ID()
	switch {
	case terms.Renter != peer:
		return h, market.NewError(market.CodeNotYours)
	case !slices.Contains(terms.Deputies, a.self):
		return h, badHandover("its terms do not name this deputy")
	case m.Job.Validate() != nil || m.Job.Hash() != terms.Job:
		return h, badHandover("the job is not the one of the terms")
	case m.Cap < 0 || len(m.Collects) > maxCollects || slices.ContainsFunc(m.Collects, func(p string) bool { return !isRemote(p) }):
		return h, badHandover("its cap, or what it collects, is out of bounds")
	}
	if err := market.CheckGrant(terms, offer, bid, h.bid, terms.Issued); err != nil {
		return h, err
	}
	return h, a.checkPapers(&h)
}

// checkPapers verifies what a handover brings beside the lease.
func (a *Agent) checkPapers(h *handed) error {
	if h.Extension != nil {
		e, s, err := market.OpenExtension(a.cfg.Network, h.Extension, h.terms)
		switch {
		case err != nil:
			return err
		case !s.SignedBy(market.RoleRig) || e.Lease != h.lease:
			return badHandover("an extension of another lease, or without the rig's signature")
		}
		h.extend = &e
	}
	if h.Receipt != nil {
		r, s, err := market.OpenReceipt(a.cfg.Network, h.Receipt, h.terms)
		if err != nil {
			return err
		}
		signer, err := s.Verify(market.RoleRenter)
		if err != nil || r.Lease != h.lease {
			return badHandover("a receipt of another lease, or without the renter's signature")
		}
		h.receipt, h.hash, h.signer = &r, s.Hash(), signer
	}
	if h.Payment != nil {
		p, _, err := market.OpenPayment(a.cfg.Network, h.Payment, h.terms)
		switch {
		case err != nil:
			return err
		case p.Lease != h.lease:
			return badHandover("a payment of another lease")
		}
	}
	return nil
}

// care returns the open lease of a handover, which is begun where it is new. It is nil where there is nothing to do any more.
func (a *Agent) care(ctx context.Context, peer market.Key, h handed) (*lease, error) {
	if l := a.opened(h.bid); l != nil {
		if r, _ := l.get(); r.State.Serves == peer && !r.State.Released {
			return l, nil
		}
		return nil, market.NewError(market.CodeTooMany) // its work is just being ended here
	}
	r, err := a.cfg.Store.Record(ctx, h.lease)
	known := err == nil
	switch {
	case !known && market.CodeOf(err) != market.CodeLeaseUnknown:
		return nil, fmt.Errorf("take lease %s: %w", h.lease.Short(), err)
	case known && r.State.Serves != peer:
		return nil, market.NewError(market.CodeNotYours)
	case h.Release || known && !r.State.Released:
		return nil, nil // it is over
	case !known && a.inCare(peer) >= maxCare:
		return nil, market.NewError(market.CodeTooMany)
	case !known:
		r = a.recordOf(ctx, peer, h)
	}
	r.State.Released, r.State.Cap = false, h.Cap
	if r.State.over() {
		return nil, nil
	}
	if err := a.cfg.Store.Save(ctx, r); err != nil {
		return nil, fmt.Errorf("take lease %s: %w", h.lease.Short(), err)
	}
	l := newLease(a.woken(r))
	a.enter(l)
	if err := a.spawn(ctx, func(ctx context.Context) { a.tend(ctx, l, nil) }); err != nil {
		a.leave(l) // the next life takes it up
		return nil, err
	}
	a.cfg.Log.Info("lease is taken into care", "lease", r.Lease.Short(), "peer", peer.String())
	a.changed(l)
	return l, nil
}

// inCare returns the number of open leases of an agent.
func (a *Agent) inCare(peer market.Key) int {
	n := 0
	for _, l := range a.openLeases() {
		if r, _ := l.get(); r.State.Serves == peer {
			n++
		}
	}
	return n
}

// recordOf makes the record of a lease that was handed over. The job cannot have run before the grant, whose time is the rig's.
func (a *Agent) recordOf(ctx context.Context, peer market.Key, h handed) Record {
	now := a.cfg.Clock().UnixMilli()
	r := Record{
		Bid: h.bid, Lease: h.lease, Terms: h.terms, Sealed: h.Lease, Offer: h.Offer, SealedBid: h.Bid, Job: h.Job,
		RigName: h.offer.Name, Model: h.terms.Slots[0].Model, Image: h.Job.Image,
		State: State{
			Job: market.JobPreparing, Since: now, SignedAt: h.terms.Issued - market.MaxClockSkew.Milliseconds(), Seen: now,
			Created: h.terms.Issued, Isolation: h.offer.Host.Isolation, Serves: peer,
		},
		// The agent knows whether it ordered to keep the disk. A deputy believes it, within the time since the grant.
		Inside: Inside{Keeps: true},
	}
	if isName(h.Name) && a.nameFree(ctx, h.Name, h.bid) == nil {
		r.Inside.Name = h.Name
	}
	if a.cfg.CollectDir == "" {
		return r
	}
	taken := map[string]bool{}
	for _, remote := range h.Collects {
		local := folderFor(remote, taken)
		r.Inside.Collects = append(r.Inside.Collects, Collect{Remote: remote, Local: filepath.Join(a.cfg.CollectDir, h.lease.String(), local)})
	}
	return r
}

// folderFor names the folder for a part of the job's disk: by its last name, of harmless letters only, unlike any other.
func folderFor(remote string, taken map[string]bool) string {
	harmless := func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' {
			return c
		}
		return '_'
	}
	name := strings.Map(harmless, path.Base(path.Clean("/"+remote)))
	name = strings.TrimLeft(name[:min(len(name), 64)], ".")
	if name == "" || name == "_" {
		name = "work"
	}
	for n, base := 2, name; taken[strings.ToLower(name)]; n++ {
		name = base + "-" + strconv.Itoa(n)
	}
	taken[strings.ToLower(name)] = true
	return name
}

// learn takes what is new of a lease in care, as if the rig had sent it. What the rig has to send all the same, the receipts before
// the newest, is left to it.
func (a *Agent) learn(ctx context.Context, l *lease, h handed) error {
	k := &link{a: a, l: l, rig: h.terms.Rig, id: h.lease}
	r, _ := l.get()
	if r.State.Cap != h.Cap {
		if err := a.commit(ctx, l, func(r *Record) { r.State.Cap = h.Cap }); err != nil {
			return err
		}
	}
	if h.extend != nil && (r.State.Extension == nil || h.extend.Seq > r.State.Extension.Seq) {
		if err := k.extended(ctx, h.Extension); err != nil {
			return err
		}
	}
	if h.Payment != nil {
		if err := k.payment(ctx, h.Payment); err != nil {
			return err
		}
	}
	return k.follow(ctx, h)
}

// follow keeps a handed receipt that is the next one. Whether the rig has it is not known by that.
func (k *link) follow(ctx context.Context, h handed) error {
	k.l.writing.Lock()
	defer k.l.writing.Unlock()
	rec, _ := k.l.get()
	if h.receipt == nil || h.receipt.Seq != rec.Head.Seq+1 {
		return nil
	}
	answer := k.rental(rec).Answer(*h.receipt, h.hash, true, nil, k.a.seen(rec))
	if answer.Kind != market.AnswerKeep {
		return answer.Why
	}
	return k.agree(ctx, rec, answer.Head, h.Receipt, h.signer)
}

// release lets a lease in care go: nothing more is done for it here. What was kept of it stays.
func (a *Agent) release(ctx context.Context, l *lease) error {
	r, _ := l.get()
	a.cfg.Log.Info("lease needs no care any more", "lease", r.Lease.Short(), "peer", r.State.Serves.String())
	return a.commit(ctx, l, func(r *Record) { r.State.Released = true })
}
