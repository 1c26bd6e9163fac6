package host_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"haggle/market"
)

// renter is a small honest agent: it signs what it checked, unless it is told not to.
type renter struct {
	t   *testing.T
	rig *rig
	key ed25519.PrivateKey

	bid     market.Bid
	sent    market.BidMessage
	env     market.Env
	secrets []market.Secret
	grant   []byte
	terms   market.Terms
	id      market.LeaseID
	head    market.Head
	stream  *pipe
	heard   sync.WaitGroup

	mu       sync.Mutex
	mute     bool // does not sign
	statuses []market.StatusMessage
	drafts   [][]byte // as they came, repetitions too
	agreed   [][]byte
	acks     []uint32
	outcomes []market.Outcome
	stated   [][]byte // the same, sealed
	declined []market.DeclineMessage
	extended [][]byte // with both signatures
	said     [][]byte // complaints and decisions
	last     *market.Extension
	refused  error // how the last stream ended

	bank     *bank // pays what the rig asks for; nil pays nothing
	asks     []market.AskMessage
	payments []market.Payment
	papers   []market.Paper // payments and notices
	notices  []market.Notice
	paid     market.Micro // by the rig's payments
}

func newRenter(r *rig, name string) *renter { return &renter{t: r.t, rig: r, key: private(name)} }

func (a *renter) self() market.Key { return market.KeyOf(a.key) }

// order makes a bid of one card for an hour; change may spoil it.
func (a *renter) order(args []string, change func(*market.Bid, *market.BidMessage)) market.BidMessage {
	o, sealed, raw := a.rig.offer()
	job := market.Job{Salt: market.Nonce{7}, Image: a.rig.image.Digest, Args: args, EnvHash: a.env.Hash(market.Nonce{7})}
	a.bid = market.Bid{
		Offer: sealed.Hash(), Rig: o.Rig, Renter: a.self(), Owner: a.self(), Count: 1, Model: "RTX_4090", Mode: market.ModeFirm,
		Prices: o.Prices, GoodTill: time.Now().Add(30 * time.Second).UnixMilli(), DurationMs: time.Hour.Milliseconds(), Budget: 1_000_000,
		Limits:     market.Limits{UnsignedMs: o.Rules.IntervalMs + o.Rules.GraceMs, UnattendedMs: 600_000, Credit: o.Rules.Credit},
		IntervalMs: o.Rules.IntervalMs, Nonce: market.Nonce(a.key[ed25519.SeedSize:][:16]),
	}
	m := market.BidMessage{Offer: raw, Job: job}
	a.bid.Job = job.Hash()
	if change != nil {
		change(&a.bid, &m)
	}
	if m.Bid == nil {
		m.Bid = market.SealBid(a.rig.config.Network, a.key, a.bid).Encode()
	}
	a.sent = m
	return m
}

// send opens a stream for the ordered bid and returns the grant or the refusal.
func (a *renter) send() error {
	a.stream = a.rig.open(a.self(), a.rig.ServeLease)
	ctx := a.t.Context()
	if err := a.stream.Send(ctx, market.Hello{WallMs: time.Now().UnixMilli()}); err != nil {
		return err
	}
	if m, err := a.stream.Receive(ctx); err != nil {
		return err
	} else if _, ok := m.(market.Hello); !ok {
		return market.Unexpected(m)
	}
	if err := a.stream.Send(ctx, a.sent); err != nil {
		return err
	}
	m, err := a.stream.Receive(ctx)
	if err != nil {
		return err
	}
	g, ok := m.(market.GrantMessage)
	if !ok {
		return market.Unexpected(m)
	}
	terms, sealed, err := market.OpenGrant(a.rig.config.Network, g.Lease)
	if err != nil {
		return err
	}
	a.grant, a.terms, a.id = g.Lease, terms, sealed.ID()
	return nil
}

// accept signs the grant and begins to listen.
func (a *renter) accept() {
	a.t.Helper()
	o, _, err := market.OpenOffer(a.rig.config.Network, a.sent.Offer)
	if err != nil {
		a.t.Fatal(err)
	}
	if err := market.CheckGrant(a.terms, o, a.bid, market.HashOf(bodyOf(a.sent.Bid)), time.Now().UnixMilli()); err != nil {
		a.t.Fatal(err)
	}
	a.say(market.AcceptMessage{Lease: a.signed(), Env: a.env, Secrets: a.secrets})
	a.listen()
}

func (a *renter) signed() []byte {
	a.t.Helper()
	s, err := market.DecodeSealed(a.grant)
	if err != nil {
		a.t.Fatal(err)
	}
	return s.Sign(market.RoleRenter, a.key).Encode()
}

func (a *renter) say(m market.Message) {
	a.t.Helper()
	if err := a.stream.Send(a.t.Context(), m); err != nil {
		a.t.Fatal(err)
	}
}

// rent is a whole purchase: bid, grant, signature. It returns once the job runs.
func (a *renter) rent(args ...string) {
	a.t.Helper()
	a.order(args, nil)
	if err := a.send(); err != nil {
		a.t.Fatal(err)
	}
	a.accept()
	synctest.Wait()
}

// connect takes the lease up again after a break.
func (a *renter) connect() {
	a.t.Helper()
	a.stream = a.rig.open(a.self(), a.rig.ServeLease)
	a.say(market.Hello{WallMs: time.Now().UnixMilli(), Lease: a.id, Seq: a.head.Seq, Hash: a.head.Hash})
	a.listen()
	synctest.Wait()
}

// hangUp closes the stream.
func (a *renter) hangUp() {
	a.stream.Close()
	a.heard.Wait()
	synctest.Wait()
}

// listen answers the rig until the stream ends.
func (a *renter) listen() {
	stream := a.stream
	a.heard.Go(func() {
		for {
			m, err := stream.Receive(a.t.Context())
			if err != nil {
				a.mu.Lock()
				if a.refused = err; errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
					a.refused = nil
				}
				a.mu.Unlock()
				return
			}
			a.hear(stream, m)
		}
	})
}

func (a *renter) hear(stream *pipe, m market.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch m := m.(type) {
	case market.StatusMessage:
		a.statuses = append(a.statuses, m)
	case market.OutcomeMessage:
		o, _, err := market.OpenOutcome(a.rig.config.Network, m.Outcome, a.terms)
		if err != nil {
			a.t.Errorf("outcome: %v", err)
		}
		a.outcomes, a.stated = append(a.outcomes, o), append(a.stated, m.Outcome)
	case market.DeclineMessage:
		a.declined = append(a.declined, m)
	case market.ExtendMessage:
		e, _, err := market.OpenExtension(a.rig.config.Network, m.Extension, a.terms)
		if err != nil {
			a.t.Errorf("extension: %v", err)
		}
		if a.last == nil || e.Seq > a.last.Seq {
			a.last = &e
		}
		a.extended = append(a.extended, m.Extension)
	case market.AskMessage, market.PaymentMessage, market.NoticeMessage:
		a.hearMoney(stream, m)
	case market.DisputeMessage:
		a.said = append(a.said, m.Dispute)
	case market.AckMessage:
		a.acks = append(a.acks, m.Seq)
	case market.ReceiptMessage:
		a.drafts = append(a.drafts, m.Receipt)
		if both := a.sign(m.Receipt); both != nil {
			_ = stream.Send(a.t.Context(), market.ReceiptMessage{Receipt: both})
		}
	}
}

// sign checks a receipt and countersigns it; nil where it will not. A receipt that it knows it signs again.
func (a *renter) sign(raw []byte) []byte {
	if a.mute {
		return nil
	}
	r, s, err := market.OpenReceipt(a.rig.config.Network, raw, a.terms)
	if err != nil {
		a.t.Errorf("receipt: %v", err)
		return nil
	}
	both, signed := raw, s.SignedBy(market.RoleRenter)
	if !signed {
		both = s.Sign(market.RoleRenter, a.key).Encode()
	}
	switch {
	case r.Seq <= a.head.Seq && signed:
		return nil
	case r.Seq <= a.head.Seq:
		return both
	}
	if err := market.CheckReceipt(a.id, a.terms.Extended(a.last), a.head, r, market.Unlimited); err != nil {
		a.t.Errorf("receipt: %v", err)
		return nil
	}
	a.head = market.HeadOf(r, s.Hash())
	a.agreed = append(a.agreed, both)
	if signed { // it was lost here, or a deputy's
		return nil
	}
	return both
}

func (a *renter) setMute(mute bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mute = mute
}

func (a *renter) status() market.StatusMessage {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.statuses) == 0 {
		a.t.Fatal("no status")
	}
	return a.statuses[len(a.statuses)-1]
}

// states lists the job's states in the order in which the renter heard of them.
func (a *renter) states() []market.JobState {
	a.mu.Lock()
	defer a.mu.Unlock()
	var states []market.JobState
	for _, s := range a.statuses {
		states = append(states, s.State)
	}
	return slices.Compact(states)
}

// statusOf returns the last status in which the job was in a state.
func (a *renter) statusOf(job market.JobState) market.StatusMessage {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range slices.Backward(a.statuses) {
		if s.State == job {
			return s
		}
	}
	a.t.Fatalf("the job was never %s", job)
	return market.StatusMessage{}
}

func (a *renter) wantState(job market.JobState, reason market.Reason) {
	a.t.Helper()
	if s := a.status(); s.State != job || s.Reason != reason {
		a.t.Fatalf("job is %s (%s), want %s (%s)", s.State, s.Reason, job, reason)
	}
}

// outcome returns the rig's newest word on what the job left behind.
func (a *renter) outcome() market.Outcome {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.outcomes) == 0 {
		a.t.Fatal("no outcome")
	}
	return a.outcomes[len(a.outcomes)-1]
}

// wantDecline waits for nothing: the last order must have been refused with a code.
func (a *renter) wantDecline(what string, code market.Code) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.declined) == 0 {
		a.t.Fatalf("nothing was declined, want %s with %s", what, code)
	}
	if last := a.declined[len(a.declined)-1]; last.What != what || last.Err.Code != code {
		a.t.Fatalf("declined %s with %v, want %s with %s", last.What, &last.Err, what, code)
	}
}

// receipts opens what both signed.
func (a *renter) receipts() []market.Receipt {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []market.Receipt
	for _, raw := range a.agreed {
		r, _, err := market.OpenReceipt(a.rig.config.Network, raw, a.terms)
		if err != nil {
			a.t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// once leaves out repetitions.
func once(list [][]byte) [][]byte {
	var kept [][]byte
	for _, raw := range list {
		if !slices.ContainsFunc(kept, func(old []byte) bool { return bytes.Equal(old, raw) }) {
			kept = append(kept, raw)
		}
	}
	return kept
}

// judge judges everything that both signed from its bytes.
func (a *renter) judge() market.Judgement {
	return market.Judge(market.Evidence{Network: a.rig.config.Network, Offer: a.sent.Offer, Bid: a.sent.Bid, Lease: a.signed(), Extensions: once(a.extended), Receipts: a.agreed}.Encode())
}
