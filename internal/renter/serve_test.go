package renter_test

import (
	"encoding/binary"
	"path/filepath"
	"time"

	"haggle/market"
)

func (r *testRig) serveLease(w *wire) error {
	m, err := w.Receive(r.ctx)
	if err != nil {
		return err
	}
	hello, ok := m.(market.Hello)
	if !ok {
		return market.Unexpected(m)
	}
	if r.isMute() {
		_, err := w.Receive(r.ctx)
		return err
	}
	l, err := r.begin(w, hello)
	if err != nil {
		return err
	}
	for {
		m, err := w.Receive(r.ctx)
		if err != nil {
			r.part(l, w)
			return err
		}
		if err := r.handle(l, m); err != nil {
			return err
		}
	}
}

// begin grants a lease, or goes on with one.
func (r *testRig) begin(w *wire, hello market.Hello) (*rigLease, error) {
	answer := market.Hello{Instance: r.instance, WallMs: time.Now().Add(r.wrong).UnixMilli(), Lease: hello.Lease, Speaks: []string{"payment/1"}}
	if hello.Lease.IsZero() {
		if err := w.Send(r.ctx, answer); err != nil {
			return nil, err
		}
		m, err := w.Receive(r.ctx)
		if err != nil {
			return nil, err
		}
		bid, ok := m.(market.BidMessage)
		if !ok {
			return nil, market.Unexpected(m)
		}
		return r.grant(w, bid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.leases[hello.Lease]
	if l == nil {
		return nil, market.NewError(market.CodeLeaseUnknown, "lease", hello.Lease.Short())
	}
	answer.Seq, answer.Hash, answer.Paid = l.state.Head.Seq, l.state.Head.Hash, uint32(len(l.payments))
	if err := w.Send(r.ctx, answer); err != nil {
		return nil, err
	}
	if w.peer == l.state.Terms.Renter {
		l.wire = w
	} else {
		l.deputy = w
	}
	_ = l.event(market.Contact{})
	l.status()
	for _, raw := range l.payments[min(int(hello.Paid), len(l.payments)):] {
		l.send(market.PaymentMessage{Payment: raw})
	}
	for _, raw := range l.receipts[min(int(hello.Seq), len(l.receipts)):] {
		l.send(market.ReceiptMessage{Receipt: raw})
	}
	if l.state.Draft != nil {
		l.send(market.ReceiptMessage{Receipt: l.draft(*l.state.Draft)})
	}
	if s := l.state.Slice; s != nil {
		l.askPay(*s)
	}
	if l.outcome != nil {
		l.send(market.OutcomeMessage{Outcome: l.outcome})
	}
	return l, nil
}

func (r *testRig) grant(w *wire, m market.BidMessage) (*rigLease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bids++
	if r.cheat.busy > 0 {
		r.cheat.busy--
		return nil, market.NewError(market.CodeTooMany)
	}
	if r.cheat.refuse != nil {
		return nil, r.cheat.refuse
	}
	bid, sealedBid, err := market.OpenBid(testNetwork, m.Bid)
	if err != nil {
		return nil, err
	}
	offer, sealedOffer, err := market.OpenOffer(testNetwork, m.Offer)
	if err != nil {
		return nil, err
	}
	now := r.now()
	if err := market.Admit(offer, sealedOffer.Hash(), bid, now.Wall); err != nil {
		return nil, err
	}
	if sealedOffer.Hash() != market.SealOffer(testNetwork, r.key, r.offer).Hash() {
		return nil, market.NewError(market.CodeOfferUnknown, "offer", sealedOffer.Hash().String()[:8])
	}
	for _, l := range r.leases {
		if l.state.Terms.Bid == sealedBid.Hash() { // the same bid again
			l.wire = w
			return l, w.Send(r.ctx, market.GrantMessage{Lease: l.sealed})
		}
	}
	slots, err := market.Pick(offer, bid)
	if err != nil {
		return nil, err
	}
	terms := market.Grant(offer, bid, sealedBid.Hash(), slots, now.Wall, market.Nonce{byte(r.bids)})
	if r.cheat.grant != nil {
		r.cheat.grant(&terms)
	}
	sealed := market.SealTerms(testNetwork, r.key, terms)
	l := &rigLease{rig: r, state: market.NewLease(sealed.ID(), terms, now, false), sealed: sealed.Encode(), wire: w, job: m.Job}
	l.work = filepath.Join(r.root, sealed.ID().String())
	r.leases[sealed.ID()] = l
	return l, w.Send(r.ctx, market.GrantMessage{Lease: l.sealed})
}

func (r *testRig) part(l *rigLease, w *wire) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch w {
	case l.wire:
		l.wire = nil
	case l.deputy:
		l.deputy = nil
	default:
		return
	}
	if l.wire == nil && l.deputy == nil {
		_ = l.event(market.Contact{Away: true})
	} else if s := l.state.Slice; s != nil {
		l.askPay(*s)
	}
}

func (r *testRig) handle(l *rigLease, m market.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch m := m.(type) {
	case market.AcceptMessage:
		_, s, err := market.OpenLease(testNetwork, m.Lease)
		if err != nil || s.ID() != l.state.ID {
			return market.NewError(market.CodeLeaseUnknown, "lease", s.ID().Short())
		}
		switch {
		case r.dropAccept:
			r.dropAccept = false
			l.wire.cut()
			return errCut
		case r.expire:
			_ = l.event(market.Stop{Reason: market.ReasonRig})
		}
		l.sealed, l.env, l.secrets = m.Lease, m.Env, m.Secrets
		r.accepted = append(r.accepted, len(m.Secrets))
		return l.event(market.Signed{})
	case market.ReceiptMessage:
		receipt, s, err := market.OpenReceipt(testNetwork, m.Receipt, l.state.Terms)
		if err != nil {
			return err
		}
		if l.state.Draft == nil && receipt.Seq > l.state.Head.Seq {
			r.echoes = append(r.echoes, receipt.Seq) // a real rig would check and store it: see internal/host
			return nil
		}
		if receipt.Seq <= l.state.Head.Seq {
			r.repeats++
		}
		if receipt.Seq == uint32(len(l.receipts))+1 {
			l.receipts = append(l.receipts, m.Receipt)
		}
		if err := l.event(market.Agreed{Receipt: receipt, Hash: s.Hash()}); err != nil {
			return err
		}
		l.send(market.AckMessage{Seq: receipt.Seq})
		if l.deputy != nil {
			l.send(m) // whoever did not sign it has it now
		}
		if r.cheat.agreed != nil {
			if raw := r.cheat.agreed(l, receipt.Seq); raw != nil {
				l.send(market.ReceiptMessage{Receipt: raw})
			}
		}
		return nil
	case market.RejectMessage:
		reject, _, err := market.OpenReject(testNetwork, m.Reject, l.state.Terms)
		if err != nil {
			return err
		}
		l.rejects = append(l.rejects, reject)
		return l.event(market.Rejected{})
	case market.StopMessage:
		r.stops++
		if err := l.event(market.Stop{Reason: market.ReasonRenter, Kill: m.Kill, Keep: m.Keep}); err != nil && m.Keep {
			l.send(market.DeclineMessage{What: market.OrderKeep, Err: *market.Public(err)})
			return nil
		} else if err != nil {
			return err
		}
		return nil
	}
	if l.handleMoney(m) {
		return nil
	}
	return r.handleInside(l, m)
}

// serveLog sends the log from an offset, in pieces of odd sizes, and breaks where the test wants it.
func (r *testRig) serveLog(w *wire, request market.TunnelRequest) error {
	r.mu.Lock()
	data, most, hold := r.log, int64(-1), r.logHold
	r.logs++
	if r.logCut != nil {
		most = r.logCut(request.Offset)
	}
	r.mu.Unlock()
	if hold {
		_, err := w.Receive(r.ctx)
		return err
	}
	if !atRecord(data, request.Offset) {
		return market.NewError(market.CodeBadRequest, "why", "not the end of a record")
	}
	data = data[request.Offset:]
	if most >= 0 {
		data = data[:min(int64(len(data)), most)]
	}
	for len(data) > 0 {
		n := min(len(data), 1000)
		if err := w.Send(r.ctx, market.ChunkMessage{Data: data[:n]}); err != nil {
			return err
		}
		data = data[n:]
	}
	if most >= 0 {
		w.snap()
		return errCut
	}
	return w.Send(r.ctx, market.EndMessage{})
}

// atRecord reports whether an offset is one at which a log can be opened.
func atRecord(data []byte, offset int64) bool {
	at := int64(0)
	for at < offset && at+8 <= int64(len(data)) {
		at += 8 + int64(binary.BigEndian.Uint32(data[at+4:]))
	}
	return at == offset
}
