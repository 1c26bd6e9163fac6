package host

import (
	"context"

	"haggle/market"
)

// filing is what comes of a step beside its state.
type filing struct {
	receipts []Receipt
	papers   []market.Paper
}

// keep stores the state that a step led to, with what came of it.
type keep func(ctx context.Context, next market.Lease, f filing) error

func (l *lease) save(ctx context.Context, next market.Lease, f filing) error {
	if len(f.papers) == 0 {
		return l.d.cfg.Store.Save(ctx, next, f.receipts...)
	}
	return l.d.cfg.Store.File(ctx, next, f.receipts, f.papers)
}

// filed is save with one more paper.
func (l *lease) filed(kind market.Kind, seq uint32, sealed []byte) keep {
	return func(ctx context.Context, next market.Lease, f filing) error {
		f.papers = append(f.papers, market.Paper{Lease: l.id, Kind: kind, Seq: seq, Sealed: sealed})
		return l.save(ctx, next, f)
	}
}

// signatures are what a lease has signed last, with what a step adds to it.
type signatures struct {
	filing
	draft, outcome, notice []byte
	concludes              bool // there is a new outcome
}

// sign seals what a step asks for.
func (l *lease) sign(actions []market.Action) signatures {
	network, key := l.d.cfg.Network, l.d.cfg.Key
	s := signatures{draft: l.draft, outcome: l.record.Outcome, notice: l.notice}
	for _, a := range actions {
		switch a := a.(type) {
		case market.Propose:
			s.draft = market.SealReceipt(network, key, a.Receipt).Encode()
			s.receipts = append(s.receipts, Receipt{Lease: l.id, Seq: a.Receipt.Seq, Sealed: s.draft})
		case market.Attest:
			a.Outcome.Chain = l.d.chainEnd()
			s.outcome, s.concludes = market.SealOutcome(network, key, a.Outcome).Encode(), true
		case market.Warn:
			s.notice = market.SealNotice(network, key, a.Notice).Encode()
			s.papers = append(s.papers, market.Paper{Lease: l.id, Kind: market.KindNotice, Seq: a.Notice.Seq, Sealed: s.notice})
		}
	}
	return s
}
