package market_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haggle/market"
	"haggle/market/markettest"
)

// heldOffer is what the model of a table holds.
type heldOffer struct {
	offer    market.Offer
	standing market.Standing
	raw      []byte
}

// tableModel is a table beside the plain map that it must answer like.
type tableModel struct {
	table *market.Table
	held  map[string]heldOffer // by key and id
}

func newTableModel(cfg market.TableConfig) tableModel {
	return tableModel{table: market.NewTable(cfg), held: map[string]heldOffer{}}
}

func (m tableModel) put(t *rapid.T, o market.Offer, s market.Standing) {
	raw := market.SealOffer(markettest.Network, markettest.Private("rig"), o).Encode()
	if !m.table.Put(raw, &o, s) {
		t.Fatal("there is no room for the offer")
	}
	m.held[o.Rig.String()+o.ID] = heldOffer{o, s, raw}
}

// churn writes to the table in one of all ways.
func (m tableModel) churn(t *rapid.T, rigs int) {
	rig := rapid.IntRange(0, rigs-1).Draw(t, "rig")
	o := drawWide(t, rig, rapid.IntRange(0, 1).Draw(t, "id"))
	switch rapid.SampledFrom([]string{"put", "put", "put", "note", "drop", "drop rig", "expire"}).Draw(t, "write") {
	case "put":
		m.put(t, o, drawStanding(t))
	case "note":
		s := drawStanding(t)
		h, known := m.held[o.Rig.String()+o.ID]
		if m.table.Note(o.Rig, o.ID, s) != known {
			t.Fatalf("Note says that the offer is known: %t", !known)
		}
		if known {
			h.standing = s
			m.held[o.Rig.String()+o.ID] = h
		}
	case "drop":
		_, known := m.held[o.Rig.String()+o.ID]
		if m.table.Drop(o.Rig, o.ID) != known {
			t.Fatalf("Drop says that the offer was known: %t", !known)
		}
		delete(m.held, o.Rig.String()+o.ID)
	case "drop rig":
		m.table.DropRig(o.Rig)
		maps.DeleteFunc(m.held, func(_ string, h heldOffer) bool { return h.offer.Rig == o.Rig })
	case "expire":
		now := rapid.SampledFrom([]int64{markettest.Now, tableNow}).Draw(t, "now")
		m.table.Expire(now)
		maps.DeleteFunc(m.held, func(_ string, h heldOffer) bool { return now >= h.offer.Expires })
	}
	if m.table.Len() != len(m.held) {
		t.Fatalf("%d offers are held, want %d", m.table.Len(), len(m.held))
	}
}

// rows returns what is valid as rows, as a plain list would be asked.
func (m tableModel) rows(q market.TableQuery) []market.Row {
	var rows []market.Row
	for _, h := range m.held {
		if q.Now != 0 && (q.Now >= h.offer.Expires || h.offer.Issued > q.Now+market.MaxClockSkew.Milliseconds()) {
			continue
		}
		rows = append(rows, market.Row{Offer: &h.offer, Standing: &h.standing, Job: q.Job, Now: q.Now})
	}
	return rows
}

// ranked returns what Rank makes of all that matches.
func (m tableModel) ranked(t *rapid.T, q market.TableQuery) []market.Ranked {
	var list []market.Ranked
	for _, r := range m.rows(q) {
		if match, ok := q.Query.MatchRow(r); ok {
			if ranked, ok := market.RankedRow(r, match); ok {
				list = append(list, ranked)
			}
		}
	}
	if err := market.Rank(list, q.Order); err != nil {
		t.Fatal(err)
	}
	return list
}

// same compares lists by offer, slots, cost and standing.
func same(t *rapid.T, what string, q market.TableQuery, got, want []market.Ranked) {
	t.Helper()
	want = want[:min(len(want), q.Limit)]
	if len(got) != len(want) {
		t.Fatalf("%s: %q by %q: %d offers, want %d", what, q.Query, q.Order, len(got), len(want))
	}
	for i := range got {
		g, w := &got[i], &want[i]
		if g.Offer.Rig != w.Offer.Rig || g.Offer.ID != w.Offer.ID || !slices.Equal(g.Match.Slots, w.Match.Slots) || g.Cost != w.Cost ||
			!cmp.Equal(g.Standing, w.Standing) {
			t.Fatalf("%s: %q by %q: place %d has %s %s %v %v, want %s %s %v %v", what, q.Query, q.Order, i,
				g.Offer.Name, g.Offer.ID, g.Match.Slots, g.Cost, w.Offer.Name, w.Offer.ID, w.Match.Slots, w.Cost)
		}
	}
}

func drawTableQuery(t *rapid.T) market.TableQuery {
	order := rapid.SampledFrom([]string{
		"", "price", "best-", "dph", "gpu_ram-", "num_gpus-,dph", "gpu_name", "total-", "seen-", "image", "rig_key", "claim.power_feed", "tflops-", "driver",
	}).Draw(t, "order")
	return market.TableQuery{
		Query: drawAnyQuery(t), Job: drawJob(t), Now: rapid.SampledFrom([]int64{0, tableNow}).Draw(t, "asked at"), Order: order,
		Limit: rapid.IntRange(1, 6).Draw(t, "limit"),
	}
}

func TestATableAnswersAsAQueryAsksEachRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newTableModel(market.TableConfig{})
		for range rapid.IntRange(0, 25).Draw(t, "writes") {
			m.churn(t, 8)
		}
		for range 4 {
			q := drawTableQuery(t)
			answer, err := m.table.Select(q)
			if err != nil {
				t.Fatal(err)
			}
			want := m.ranked(t, q)
			if answer.Matches != len(want) {
				t.Fatalf("%q: %d match, want %d", q.Query, answer.Matches, len(want))
			}
			same(t, "Select", q, answer.Best, want)
		}
	})
}

func TestAViewIsWhatAskingAgainWouldGive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newTableModel(market.TableConfig{})
		for range rapid.IntRange(0, 12).Draw(t, "writes before") {
			m.churn(t, 10)
		}
		q := drawTableQuery(t)
		q.Now = tableNow
		view, err := m.table.Watch(q)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 25).Draw(t, "writes") {
			m.churn(t, 10)
			m.table.Expire(tableNow) // the views' time is the query's again
			maps.DeleteFunc(m.held, func(_ string, h heldOffer) bool { return tableNow >= h.offer.Expires })
			want := m.ranked(t, q)
			if view.Matches() != len(want) {
				t.Fatalf("%q: %d match, want %d", q.Query, view.Matches(), len(want))
			}
			same(t, "View", q, view.Best(), want)
		}
	})
}

func TestATableGivesBackWhatWasPut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newTableModel(market.TableConfig{})
		for range rapid.IntRange(1, 25).Draw(t, "writes") {
			m.churn(t, 6)
		}
		for _, h := range m.held {
			_, s, raw, known := m.table.Get(h.offer.Rig, h.offer.ID)
			if !known || !bytes.Equal(raw, h.raw) || !cmp.Equal(s, h.standing) {
				t.Fatalf("offer %s of %s came back otherwise", h.offer.ID, h.offer.Name)
			}
		}
		count := 0
		m.table.Each(func(rig market.Key, id string, raw []byte) bool {
			count++
			return bytes.Equal(raw, m.held[rig.String()+id].raw)
		})
		if count != len(m.held) {
			t.Fatalf("%d offers were visited, want %d", count, len(m.held))
		}
	})
}

func TestATableExplainsAsAListDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newTableModel(market.TableConfig{})
		for range rapid.IntRange(0, 20).Draw(t, "writes") {
			m.churn(t, 8)
		}
		q := drawTableQuery(t)
		rows := m.rows(q)
		want := q.Query.ExplainRows(rows)
		got, miss := m.table.Explain(q)
		if got.Offers != want.Offers || got.Matches != want.Matches || !cmp.Equal(got.Steps, want.Steps) {
			t.Fatalf("%q: %+v, want %+v", q.Query, got, want)
		}
		if (got.Nearest == nil) != (want.Nearest == nil) || (miss == nil) != (want.Nearest == nil) {
			t.Fatalf("%q: nearest %+v, want %+v", q.Query, got.Nearest, want.Nearest)
		}
		if miss == nil {
			return
		}
		// Of all misses, the one that was chosen must be as near as any: a list of it alone before the others keeps it.
		again := q.Query.ExplainRows(append([]market.Row{*miss}, rows...))
		if again.Nearest.Offer != 0 {
			t.Fatalf("%q: %+v is nearer than %+v", q.Query, again.Nearest, got.Nearest)
		}
	})
}

func TestATableCountsFacetsAsAListDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newTableModel(market.TableConfig{})
		for range rapid.IntRange(0, 20).Draw(t, "writes") {
			m.churn(t, 8)
		}
		q := drawTableQuery(t)
		fields := []string{"gpu_name", "dph", "image", "protections", "gpu_ram", "seen", "total", "claim.power_feed", "datacenter", "driver", "disk_free"}
		top := rapid.IntRange(1, 4).Draw(t, "top")
		want, err := q.Query.Facets(m.rows(q), fields, top)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.table.Facets(q, fields, top)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("%q: %v %s", q.Query, err, diff)
		}
	})
	if _, err := market.NewTable(market.TableConfig{}).Facets(market.TableQuery{}, []string{"gpu_nam"}, 3); market.CodeOf(err) != market.CodeUnknownField {
		t.Errorf("a field that is none: %v", err)
	}
}

func TestATableIsBounded(t *testing.T) {
	offer := func(rig byte, id string) market.Offer {
		o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564))
		o.Rig, o.ID = marketKey(rig), id
		return o
	}
	table := market.NewTable(market.TableConfig{Offers: 3, PerRig: 2})
	put := func(o market.Offer) bool {
		return table.Put(market.SealOffer(markettest.Network, markettest.Rig(), o).Encode(), &o, market.Standing{})
	}
	for _, c := range []struct {
		what  string
		offer market.Offer
		want  bool
	}{
		{"a first", offer(1, "a"), true},
		{"a second of its rig", offer(1, "b"), true},
		{"a third of its rig", offer(1, "c"), false},
		{"one of another rig", offer(2, "a"), true},
		{"one too many", offer(3, "a"), false},
		{"one that is renewed", offer(1, "b"), true},
		{"one without slots", func() market.Offer { o := offer(2, "a"); o.Slots = nil; return o }(), false},
		{"one in the place of the one that was refused", offer(3, "a"), true},
	} {
		if put(c.offer) != c.want {
			t.Errorf("%s: want %t", c.what, c.want)
		}
	}
	if table.Len() != 3 {
		t.Errorf("%d offers are held", table.Len())
	}
}

func TestWhoFillsATableKeepsRoomForUsualOffers(t *testing.T) {
	const offers = 400
	table := market.NewTable(market.TableConfig{Offers: offers})
	put := func(rig int, loud bool) bool {
		o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564))
		o.Rig = market.Key(market.HashOf([]byte{byte(rig), byte(rig >> 8)}))
		if loud {
			for i := range 32 {
				h := market.HashOf([]byte{byte(rig), byte(rig >> 8), byte(i)})
				o.Host.Images = append(o.Host.Images[:i:i], market.ImageName{Name: "i" + h.String()[:40], Digest: h.String(), Size: 1})
			}
		}
		return table.Put(market.SealOffer(markettest.Network, markettest.Rig(), o).Encode(), &o, market.Standing{})
	}
	refused := 0
	for rig := range offers / 2 {
		if !put(rig, true) {
			refused++
		}
	}
	if refused == 0 {
		t.Error("offers full of words of their own were all taken")
	}
	for rig := range offers / 2 {
		if !put(1000+rig, false) {
			t.Fatalf("usual offer %d found no room", rig)
		}
	}
	if most := 1024 * offers; table.Bytes() > most {
		t.Errorf("%d bytes are held, want at most %d", table.Bytes(), most)
	}
}

func TestATableAsksForAsManyFreeSlotsAsTheJobTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newTableModel(market.TableConfig{})
		for i := range rapid.IntRange(1, 12).Draw(t, "offers") {
			m.put(t, drawWide(t, i, 0), drawStanding(t))
		}
		q := market.TableQuery{Query: drawAnyQuery(t), Now: tableNow, Limit: 1, Slots: rapid.IntRange(0, 3).Draw(t, "slots")}
		want := map[market.Key]market.Standing{}
		for _, r := range m.rows(q) {
			if match, ok := q.Query.MatchRow(r); ok && len(match.Slots) >= q.Slots {
				want[r.Offer.Rig] = *r.Standing
			}
		}
		got := map[market.Key]market.Standing{}
		m.table.Visit(q, func(rig market.Key, _ string, s market.Standing) { got[rig] = s })
		if diff := cmp.Diff(want, got); diff != "" || m.table.Count(q) != len(want) {
			t.Fatalf("%q with %d slots (-want +got):\n%s", q.Query, q.Slots, diff)
		}
		if n := m.table.Live(q.Now); n != len(m.rows(q)) {
			t.Fatalf("%d offers are valid, want %d", n, len(m.rows(q)))
		}
	})
}
