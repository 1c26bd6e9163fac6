package market

import (
	"math"
	"strings"
)

// op is an operator of a clause.
type op uint8

const (
	opEqual op = iota
	opNotEqual
	opLess
	opAtMost
	opMore
	opAtLeast
	opIn
	opNotIn
	opRange // from values[0] to values[1], both included
)

// String writes the operator as canonical text has it.
func (o op) String() string {
	switch o {
	case opEqual:
		return "="
	case opNotEqual:
		return "!="
	case opLess:
		return "<"
	case opAtMost:
		return "<="
	case opMore:
		return ">"
	case opAtLeast:
		return ">="
	case opIn:
		return "in"
	case opNotIn:
		return "notin"
	case opRange:
		return "="
	}
	return ""
}

func (o op) orders() bool { return o >= opLess && o <= opAtLeast }

func (o op) lists() bool { return o == opIn || o == opNotIn }

// rangeMark stands between the ends of a range.
const rangeMark = ".."

// clause is one condition: field, operator, value or values.
type clause struct {
	subject
	op     op
	values []operand
}

// holds reports whether a slot of an offer fits. What is not known never does.
func (c *clause) holds(r *Row, s *Slot) bool {
	v := c.read(r, s)
	return v.known && c.accepts(&v)
}

// accepts judges a known value. Of a claim that is not registered, a word is in no order.
func (c *clause) accepts(v *value) bool {
	if c.kind == kindClaim && v.text != "" && (c.op.orders() || c.op == opRange) {
		return false
	}
	switch c.op {
	case opRange:
		return c.values[0].order(v, c.kind) >= 0 && c.values[1].order(v, c.kind) <= 0
	case opLess:
		return c.values[0].order(v, c.kind) < 0
	case opAtMost:
		return c.values[0].order(v, c.kind) <= 0
	case opMore:
		return c.values[0].order(v, c.kind) > 0
	case opAtLeast:
		return c.values[0].order(v, c.kind) >= 0
	}
	wanted := c.op == opEqual || c.op == opIn
	for i := range c.values {
		if c.values[i].matches(v, c.kind) {
			return wanted
		}
	}
	return !wanted
}

// far is the distance of a value that has no measure: a word, a switch, or one that is unknown.
const far = 1000

// distance says how far a value that the clause refuses is from one that it accepts: thousandths of what was asked for,
// at most far.
func (c *clause) distance(v *value) int64 {
	if !v.known || !c.kind.form().ordered || c.kind == kindVersion || c.kind == kindClaim && v.text != "" {
		return far
	}
	nearest := int64(far)
	for _, d := range c.values {
		off := math.Abs(float64(v.num)-float64(d.num)) / math.Max(math.Abs(float64(d.num)), 1)
		nearest = min(nearest, int64(math.Min(off*1000, far)))
	}
	return nearest
}

// text writes the clause in canonical form.
func (c *clause) text() string {
	if c.op == opRange {
		return c.name + c.op.String() + c.values[0].show(c.kind) + rangeMark + c.values[1].show(c.kind)
	}
	if !c.op.lists() {
		return c.name + c.op.String() + quote(c.values[0].show(c.kind))
	}
	items := make([]string, len(c.values))
	for i, d := range c.values {
		items[i] = quote(d.show(c.kind))
	}
	return c.name + " " + c.op.String() + " [" + strings.Join(items, ",") + "]"
}

// quote puts a word into quotes if the parser would otherwise end it too early. A word never has both kinds of quotes,
// because there is no way to write one.
func quote(word string) string {
	switch {
	case !strings.ContainsFunc(word, endsWord):
		return word
	case strings.Contains(word, `"`):
		return "'" + word + "'"
	}
	return `"` + word + `"`
}

type nodeKind uint8

const (
	nodeClause nodeKind = iota
	nodeAnd
	nodeOr
)

// node is a clause, or nodes joined by AND or OR. An AND never holds an AND, nor an OR an OR.
type node struct {
	kind    nodeKind
	clause  clause
	kids    []node
	perSlot bool // its answer may differ between slots of one offer
}

// join makes one node of several, lifting the kids of those that are joined in the same way.
func join(kind nodeKind, nodes []node) node {
	if len(nodes) == 1 {
		return nodes[0]
	}
	joined := node{kind: kind}
	for _, n := range nodes {
		joined.perSlot = joined.perSlot || n.perSlot
		if n.kind == kind {
			joined.kids = append(joined.kids, n.kids...)
		} else {
			joined.kids = append(joined.kids, n)
		}
	}
	return joined
}

func (n *node) holds(r *Row, s *Slot) bool {
	switch n.kind {
	case nodeAnd:
		for i := range n.kids {
			if !n.kids[i].holds(r, s) {
				return false
			}
		}
		return true
	case nodeOr:
		for i := range n.kids {
			if n.kids[i].holds(r, s) {
				return true
			}
		}
		return false
	default:
		return n.clause.holds(r, s)
	}
}

// counts reports whether the node is a clause on num_gpus.
func (n *node) counts() bool { return n.kind == nodeClause && n.clause.field == fieldNumGPUs }

// hasCount reports whether num_gpus stands anywhere in the node.
func (n *node) hasCount() bool {
	for i := range n.kids {
		if n.kids[i].hasCount() {
			return true
		}
	}
	return n.counts()
}

// text writes the node in canonical form, for a place inside another.
func (n *node) text(inside nodeKind) string {
	if n.kind == nodeClause {
		return n.clause.text()
	}
	parts := make([]string, len(n.kids))
	for i := range n.kids {
		parts[i] = n.kids[i].text(n.kind)
	}
	switch {
	case n.kind == nodeAnd:
		return strings.Join(parts, " ")
	case inside == nodeAnd:
		return "(" + strings.Join(parts, " OR ") + ")"
	}
	return strings.Join(parts, " OR ")
}
