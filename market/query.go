package market

import "strings"

// Bounds of a query, checked before anything else is done with it.
const (
	maxQueryText    = 1024 // bytes, as written and in canonical form
	maxQueryClauses = 64
	maxQueryDepth   = 8 // parentheses in each other
	maxQueryList    = 64
)

// Query is a parsed question about offers. Clauses stand side by side and must all hold; OR between them, or |, binds
// less; parentheses group. A clause is a field (see Fields), an operator and a value:
//
//	gpu_name=RTX_40* num_gpus>=2 gpu_ram>=24GB dph<0.60
//	(gpu_name="RTX 4090" OR gpu_name=H100*) geolocation in [DE,NL] max_duration>=7d
//	dph=0.2..0.6 gpu_ram=24..48GB claim.power_feed=2 seen>=7d total<=5
//
// Operators are = == != < <= > >= and, with a list, in and notin, each also as a word: eq neq lt lte gt gte nin. A range has both its ends
// in it. There is no hidden clause. A clause about something that neither the offer says nor the renter knows never holds, with != as
// little as with =: unknown is not zero. The whole expression is asked of each slot; num_gpus then counts the free slots that fit, and
// without it one is enough.
//
// The zero Query asks nothing: every offer with a free slot matches. A Query never changes and is safe for concurrent use.
type Query struct {
	nodes []node // joined by AND; none is an AND
}

// Match is how an offer answers a query.
type Match struct {
	Slots []uint8 `json:"slots"` // indices of the free slots that fit, ascending; the caller's
}

// Match asks an offer alone. An offer without a free slot that fits, and one that is withdrawn, does not match. It reads no clock:
// whether the offer is still valid is for Offer.CheckAge. It allocates nothing but the slots of a match.
func (q Query) Match(o Offer) (Match, bool) { return q.MatchRow(Row{Offer: &o}) }

// MatchRow is Match for an offer with what the renter knows of it, and for the renter's job. Where the row has no standing, no job or no
// time, the fields that come from them are unknown. It allocates nothing but the slots of a match.
func (q Query) MatchRow(r Row) (Match, bool) {
	o := r.Offer
	if o.State == OfferWithdrawn || len(o.Slots) == 0 {
		return Match{}, false
	}
	for i := range q.nodes {
		if n := &q.nodes[i]; !n.perSlot && !n.counts() && !n.holds(&r, &o.Slots[0]) {
			return Match{}, false
		}
	}
	var fit [256]uint8 // an index is one byte
	count := 0
	for i := range o.Slots {
		if s := &o.Slots[i]; s.LeasedUntil == 0 && count < len(fit) && q.fits(&r, s) {
			fit[count] = s.Index
			count++
		}
	}
	if count == 0 || !q.enough(count) {
		return Match{}, false
	}
	return Match{Slots: append([]uint8(nil), fit[:count]...)}, true
}

// fits asks one slot what may differ between slots.
func (q Query) fits(r *Row, s *Slot) bool {
	for i := range q.nodes {
		if n := &q.nodes[i]; n.perSlot && !n.holds(r, s) {
			return false
		}
	}
	return true
}

// enough asks whether a number of free slots is the one that num_gpus wants.
func (q Query) enough(count int) bool {
	v := number(int64(count))
	for i := range q.nodes {
		if n := &q.nodes[i]; n.counts() && !n.clause.accepts(&v) {
			return false
		}
	}
	return true
}

// String writes the query in canonical form: full names, main units, no needless parentheses. ParseQuery reads the same
// query from it.
func (q Query) String() string {
	inside := nodeAnd
	if len(q.nodes) == 1 {
		inside = nodeClause // an OR that stands alone needs no parentheses
	}
	parts := make([]string, len(q.nodes))
	for i := range q.nodes {
		parts[i] = q.nodes[i].text(inside)
	}
	return strings.Join(parts, " ")
}

// MarshalText writes the query in canonical form.
func (q Query) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText reads a query as ParseQuery does.
func (q *Query) UnmarshalText(text []byte) error {
	parsed, err := ParseQuery(string(text))
	if err == nil {
		*q = parsed
	}
	return err
}
