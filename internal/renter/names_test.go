package renter_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// nameBook keeps names in memory.
type nameBook struct{ given map[market.Key]string }

func (b *nameBook) GivenNames(context.Context) (map[market.Key]string, error) {
	return maps.Clone(b.given), nil
}

func (b *nameBook) GiveName(_ context.Context, key market.Key, name string, _ time.Time) error {
	if b.given == nil {
		b.given = map[market.Key]string{}
	}
	if b.given[key] = name; name == "" {
		delete(b.given, key)
	}
	return nil
}

func TestANameThatIGaveWinsOverTheOneThatARigGaveItself(t *testing.T) {
	inHouse(t, two(nil), func(t *testing.T, h *house) {
		ctx := t.Context()
		list, err := h.agent.Offers(ctx, view.OfferQuery{})
		if err != nil || len(list.Offers) != 2 {
			t.Fatalf("got %+v, %v", list, err)
		}
		// The dear rig is "cheap" to me: whatever the other calls itself.
		if n, err := h.agent.GiveName(ctx, "dear", "cheap"); err != nil || n.Calls != "dear" {
			t.Fatalf("got %+v, %v", n, err)
		}
		o, err := h.agent.Offer(ctx, "cheap")
		if err != nil || o.GivenName != "cheap" || o.Price.Text != "0.50" {
			t.Errorf("got %+v, %v", o, err)
		}
		names, err := h.agent.GivenNames(ctx)
		if err != nil || len(names) != 1 || names[0].Name != "cheap" || names[0].Calls != "dear" {
			t.Errorf("got %+v, %v", names, err)
		}
		h.down()
		h.up() // names outlive the agent
		if o, err := h.agent.Offer(ctx, "cheap"); err != nil || o.GivenName != "cheap" {
			t.Errorf("in the next life: %+v, %v", o, err)
		}
		if _, err := h.agent.GiveName(ctx, "cheap", ""); err != nil {
			t.Error(err)
		}
		if o, err := h.agent.Offer(ctx, "cheap"); err != nil || o.GivenName != "" || o.Price.Text != "0.30" {
			t.Errorf("without the name: %+v, %v", o, err)
		}
	})
}

func TestNamesThatCannotBeGivenAreRefused(t *testing.T) {
	inHouse(t, two(nil), func(t *testing.T, h *house) {
		ctx := t.Context()
		if _, err := h.agent.Offers(ctx, view.OfferQuery{}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.agent.GiveName(ctx, "dear", "attic"); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			who, name string
			want      market.Code
		}{
			{"cheap", "attic", market.CodeGivenTaken},
			{"cheap", "ATTIC", market.CodeGivenTaken},
			{"cheap", "two words", market.CodeBadRequest},
			{"cheap", "\x1b[31mred", market.CodeBadRequest},
			{"cheap", market.KeyOf(bidder).String(), market.CodeBadRequest},
			{"nobody", "x", market.CodeNobody},
		} {
			if _, err := h.agent.GiveName(ctx, c.who, c.name); market.CodeOf(err) != c.want {
				t.Errorf("%s as %q: got %v, want %s", c.who, c.name, err, c.want)
			}
		}
	})
}

func TestAnAgentDealsWithTheRigsOfItsLeases(t *testing.T) {
	inHouse(t, two(nil), func(t *testing.T, h *house) {
		keys := slices.Clone(h.net.order)
		for _, k := range keys {
			if h.agent.Deals(k) {
				t.Errorf("%s is known without a lease", k)
			}
		}
		h.mustBid(nil)
		dealt := 0
		for _, k := range keys {
			if h.agent.Deals(k) {
				dealt++
			}
		}
		if dealt != 1 {
			t.Errorf("it deals with %d rigs, want the one of its lease", dealt)
		}
	})
}
