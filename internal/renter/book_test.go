package renter_test

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"haggle/internal/index"
	"haggle/internal/renter"
	"haggle/internal/view"
	"haggle/market"
)

// lastLife is what an agent remembers of many rigs.
type lastLife []index.Remembered

func (l lastLife) RememberedRigs(context.Context, int) ([]index.Remembered, error) { return l, nil }

func (l lastLife) RememberRigs(_ context.Context, rigs []index.Remembered) ([]int64, error) {
	return make([]int64, len(rigs)), nil
}

// crowd makes so many rigs that differ in price, memory, model, country and free slots. Some have two kinds of slots.
func crowd(n int) (life lastLife, answers map[market.Key][][]byte) {
	now, answers := time.Now(), map[market.Key][][]byte{}
	for i := range n {
		seed := make([]byte, ed25519.SeedSize)
		binary.BigEndian.PutUint32(seed[1:], uint32(i+1))
		key := ed25519.NewKeyFromSeed(seed)
		o := testOffer(key, fmt.Sprintf("rig-%d", i), market.Rate(200_000+i*7919%900_000), 1+i%4, now)
		o.Net.Country = []string{"DE", "NL", "US", ""}[i%4]
		for s := range o.Slots {
			if i%5 == 0 && s > 0 {
				o.Slots[s].Model, o.Slots[s].Memory, o.Slots[s].Usable = "RTX_3090", 12<<30, 11<<30
			}
			if (i+s)%3 == 0 {
				o.Slots[s].LeasedUntil = o.Expires
			}
		}
		raw := market.SealOffer(testNetwork, key, o).Encode()
		answers[o.Rig] = [][]byte{raw}
		life = append(life, index.Remembered{Rig: o.Rig, FirstSeen: now.UnixMilli() - int64(i)*60_000, Used: now.UnixMilli(), Offers: [][]byte{raw}})
	}
	return life, answers
}

func TestTheBookAnswersAsTheListDoesRowByRow(t *testing.T) {
	inHouse(t, rigs(), func(t *testing.T, h *house) {
		life, answers := crowd(2500)
		h.net.set(func() {
			h.net.fetch = func(rig market.Key) ([][]byte, error) { return answers[rig], nil }
		})
		a, err := renter.New(renter.Config{Key: h.key, Network: testNetwork, Net: h.net, Store: newMemStore(), Memory: life, Refresh: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var runs sync.WaitGroup
		runs.Go(func() {
			if err := a.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		pass(time.Second)
		for _, ask := range []view.OfferQuery{
			{Limit: 20},
			{Limit: 20, Sort: "dph"},
			{Query: "country=DE dph<0.60", Limit: 50},
			{Query: "gpu_name=RTX_3090 OR dph<0.25", Sort: "gpu_ram-,dph"},
			{Query: "num_gpus>=2", Limit: 10, Sort: "num_gpus-,total"},
			{Query: "source=owner"},
			{Query: "gpu_ram<20", Job: view.JobShape{GPUs: 2}, Limit: 5},
			{Query: "country=FR", Limit: 5},
		} {
			compareWithPlain(t, a, ask)
		}
		cancel()
		runs.Wait()
	})
}

func compareWithPlain(t *testing.T, a *renter.Agent, ask view.OfferQuery) {
	t.Helper()
	ask.Explain = true
	got, err := a.Offers(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	text := ask.Query
	if ask.Job.GPUs > 1 {
		text = fmt.Sprintf("(%s) num_gpus>=%d", text, ask.Job.GPUs)
	}
	q, err := market.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	want, funnel, err := renter.PlainOffers(t.Context(), a, q, max(ask.Job.GPUs, 1), ask.Sort)
	if err != nil {
		t.Fatal(err)
	}
	listed := len(want)
	if ask.Limit > 0 {
		listed = min(listed, ask.Limit)
	}
	if got.Matches != len(want) || len(got.Offers) != listed || got.Known != funnel.Offers || got.Known < 2500 {
		t.Fatalf("%q: %d match, %d listed, %d known; want %d, %d, %d", ask.Query, got.Matches, len(got.Offers), got.Known, len(want), listed, funnel.Offers)
	}
	for i, o := range got.Offers {
		if w := want[i]; o.RigKey != w.Offer.Rig.String() || o.Source != w.Standing.Source {
			t.Fatalf("%q: place %d has %s of %s, want %s of %s", ask.Query, i, o.Rig, o.Source, w.Offer.Name, w.Standing.Source)
		}
	}
	for i, s := range got.Funnel.Steps {
		if s.Left != funnel.Steps[i].Left {
			t.Errorf("%q: step %d leaves %d, want %d", ask.Query, i, s.Left, funnel.Steps[i].Left)
		}
	}
}
