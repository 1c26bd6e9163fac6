package renter_test

import (
	"context"
	"crypto/ed25519"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/renter"
	"haggle/internal/view"
	"haggle/market"
)

// house is one agent in a market of a few rigs. It lives in a bubble of virtual time.
type house struct {
	names   nameBook
	t       *testing.T
	net     *testNet
	store   *memStore
	agent   *renter.Agent
	stop    context.CancelFunc
	gone    chan error
	dir     string // of the agent's files
	key     ed25519.PrivateKey
	purse   renter.Purse
	probe   time.Duration
	country func(market.Key) string
}

var bidder = seedKey(200)

// inHouse runs a test with an agent that is up.
func inHouse(t *testing.T, rigs func() []*testRig, test func(t *testing.T, h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		list := rigs()
		h := &house{t: t, net: newTestNet(market.KeyOf(bidder), list...), store: newMemStore(), dir: t.TempDir(), key: bidder}
		for _, r := range list {
			r.root = t.TempDir()
			r.start(ctx)
		}
		h.up()
		test(t, h)
		h.down()
		cancel()
		for _, r := range list {
			r.close()
		}
		synctest.Wait()
	})
}

func rigs(list ...func() *testRig) func() []*testRig {
	return func() []*testRig {
		var made []*testRig
		for _, f := range list {
			made = append(made, f())
		}
		return made
	}
}

func oneRig(change func(*testRig)) func() []*testRig {
	return func() []*testRig {
		r := newRig(1, "attic", 400_000)
		if change != nil {
			change(r)
		}
		return []*testRig{r}
	}
}

// up starts an agent on the house's store.
func (h *house) up() {
	h.t.Helper()
	a, err := renter.New(renter.Config{
		Key: h.key, Network: testNetwork, Net: h.net, Store: h.store, Names: &h.names, CheckpointDir: filepath.Join(h.dir, "checkpoints"),
		CollectDir: filepath.Join(h.dir, "collected"), IdentityFile: filepath.Join(h.dir, "key"), InspectImage: inspectImage, Log: loggerOf(h.t),
		Purse: h.purse, Probe: h.probe, Country: h.country,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	h.agent, h.stop, h.gone = a, cancel, make(chan error, 1)
	go func() { h.gone <- a.Run(ctx) }()
}

// down stops the agent and waits until it is gone.
func (h *house) down() {
	h.t.Helper()
	h.stop()
	if err := <-h.gone; err != nil {
		h.t.Fatalf("Run: %v", err)
	}
}

func (h *house) rig(i int) *testRig { return h.net.rigs[h.net.order[i]] }

func (h *house) bid(change func(*view.BidRequest)) (view.Lease, error) {
	r := view.BidRequest{Query: "gpu_name=RTX_4090", Image: "train", Args: []string{"--steps", "10"}, Env: []string{"SEED=1"}}
	if change != nil {
		change(&r)
	}
	return h.agent.Bid(h.t.Context(), r)
}

func (h *house) mustBid(change func(*view.BidRequest)) view.Lease {
	h.t.Helper()
	l, err := h.bid(change)
	if err != nil {
		h.t.Fatalf("bid: %v", err)
	}
	return l
}

func (h *house) lease(id string) view.Lease {
	h.t.Helper()
	l, err := h.agent.Lease(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return l
}

// until waits for a state of a lease, as long as a test may.
func (h *house) until(id, what string, reached func(view.Lease) bool) view.Lease {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 24*time.Hour)
	defer cancel()
	changes := h.agent.Watch(ctx)
	for {
		l := h.lease(id)
		if reached(l) {
			return l
		}
		if _, ok := <-changes; !ok {
			h.t.Fatalf("lease is not %s after a day: %+v", what, l)
		}
	}
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func wantCode(t *testing.T, err error, code market.Code) {
	t.Helper()
	if err == nil || market.CodeOf(err) != code {
		t.Fatalf("error is %v (code %q), want code %q", err, market.CodeOf(err), code)
	}
}

// rigLease returns a rig's only lease as it is now.
func (h *house) rigLease(i int) rigLease {
	h.t.Helper()
	r := h.rig(i)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.leases {
		return *l
	}
	h.t.Fatal("the rig has no lease")
	return rigLease{}
}
