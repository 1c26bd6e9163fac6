package market

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParseQuery reads a query; see Query for its form. A text of blanks asks nothing. Several arguments of a command line are
// joined with blanks before. The error has code CodeBadQuery, with the place where the text stops making sense,
// CodeUnknownField, with the nearest field, or CodeBadUnit, with what the field expects.
func ParseQuery(text string) (Query, error) {
	if len(text) > maxQueryText {
		return Query{}, tooLongQuery()
	}
	text = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ").Replace(text)
	p := queryParser{text: text}
	if clean := Printable(text); clean != text {
		p.at = differAt(clean, text)
		return Query{}, p.fail("there is an invisible character")
	}
	p.blanks()
	if p.atEnd() {
		return Query{}, nil
	}
	root, err := p.or(0)
	if err != nil {
		return Query{}, err
	}
	if !p.atEnd() {
		return Query{}, p.fail("a parenthesis closes that never opened")
	}
	q := Query{nodes: []node{root}}
	if root.kind == nodeAnd {
		q.nodes = root.kids
	}
	if len(q.String()) > maxQueryText {
		return Query{}, tooLongQuery() // else its canonical form could not be read again
	}
	return q, nil
}

func tooLongQuery() error {
	return NewError(CodeBadQuery, "at", "its end", "why", "it is longer than "+strconv.Itoa(maxQueryText)+" bytes")
}

// differAt returns where the character of b begins in which it first differs from a.
func differAt(a, b string) int {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	for at > 0 && at < len(b) && !utf8.RuneStart(b[at]) {
		at--
	}
	return at
}

// queryParser reads by recursive descent; its depth is bounded by maxQueryDepth.
type queryParser struct {
	text    string
	at      int
	clauses int
}

func (p *queryParser) fail(why string) error {
	at := "its end"
	if p.at < len(p.text) {
		at = "character " + strconv.Itoa(utf8.RuneCountInString(p.text[:p.at])+1)
	}
	return NewError(CodeBadQuery, "at", at, "why", why)
}

func (p *queryParser) atEnd() bool { return p.at == len(p.text) }

// blanks steps over blanks and reports whether there were any.
func (p *queryParser) blanks() bool {
	rest := strings.TrimLeftFunc(p.text[p.at:], unicode.IsSpace)
	stepped := len(p.text) - len(rest) - p.at
	p.at += stepped
	return stepped > 0
}

// take steps over a text if it comes next.
func (p *queryParser) take(s string) bool {
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

// name returns the letters, digits and underscores that come next, without stepping over them.
func (p *queryParser) name() string {
	rest := p.text[p.at:]
	end := strings.IndexFunc(rest, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	if end < 0 {
		return rest
	}
	return rest[:end]
}

func (p *queryParser) atOr() bool { return p.name() == "OR" || strings.HasPrefix(p.text[p.at:], "|") }

// or reads clauses up to the end or a closing parenthesis.
func (p *queryParser) or(depth int) (node, error) {
	start := p.at
	var branches []node
	for {
		branch, err := p.and(depth)
		if err != nil {
			return node{}, err
		}
		branches = append(branches, branch)
		if !p.take("|") && !p.take("OR") { // what else begins with OR would have been read as a clause
			break
		}
	}
	joined := join(nodeOr, branches)
	if joined.kind == nodeOr && joined.hasCount() {
		p.at = start
		return node{}, p.fail("num_gpus counts the slots that all other clauses leave, so it cannot stand inside OR")
	}
	return joined, nil
}

// and reads clauses up to OR, the end or a closing parenthesis.
func (p *queryParser) and(depth int) (node, error) {
	var nodes []node
	for {
		p.blanks()
		if p.atEnd() || p.text[p.at] == ')' || p.atOr() {
			break
		}
		n, err := p.item(depth)
		if err != nil {
			return node{}, err
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 0 {
		return node{}, p.fail("a clause is missing")
	}
	return join(nodeAnd, nodes), nil
}

// item reads one clause or a group in parentheses.
func (p *queryParser) item(depth int) (node, error) {
	if p.text[p.at] != '(' {
		return p.clause()
	}
	if depth == maxQueryDepth {
		return node{}, p.fail("there are more than " + strconv.Itoa(maxQueryDepth) + " parentheses in each other")
	}
	open := p.at
	p.at++
	n, err := p.or(depth + 1)
	if err != nil {
		return node{}, err
	}
	if !p.take(")") {
		p.at = open
		return node{}, p.fail("the parenthesis is not closed")
	}
	return n, nil
}

func (p *queryParser) clause() (node, error) {
	if p.clauses++; p.clauses > maxQueryClauses {
		return node{}, p.fail("there are more than " + strconv.Itoa(maxQueryClauses) + " clauses")
	}
	start := p.at
	name := p.fieldName()
	if name == "" {
		return node{}, p.fail("the name of a field is expected")
	}
	p.blanks()
	operator, ok := p.operator()
	if !ok {
		p.at = start
		return node{}, p.fail("no operator follows " + clip(name, 40) + "; put a value that has blanks into quotes")
	}
	about, err := subjectNamed(name)
	if err != nil {
		return node{}, err
	}
	c := clause{subject: about, op: operator}
	form := c.kind.form()
	if operator.orders() && !form.ordered || operator.lists() && c.kind == kindSwitch {
		return node{}, NewError(CodeBadUnit, "value", operator.String(), "field", c.name, "expects", form.expects)
	}
	if err := p.values(&c); err != nil {
		return node{}, err
	}
	if !p.atEnd() && !p.blanks() && !strings.ContainsRune(")|", rune(p.text[p.at])) {
		return node{}, p.fail("a blank is missing; put a value that has such characters into quotes")
	}
	return node{clause: c, perSlot: c.field.perSlot()}, nil
}

// fieldName reads the name of a field, or that of a claim with its prefix; "" where none comes next.
func (p *queryParser) fieldName() string {
	name := p.name()
	p.at += len(name)
	if name == "" || !strings.EqualFold(name+".", claimPrefix) || !p.take(".") {
		return name
	}
	rest := p.text[p.at:]
	end := strings.IndexFunc(rest, func(r rune) bool { return r == '=' || r == '!' || endsWord(r) })
	if end < 0 {
		end = len(rest)
	}
	p.at += end
	return claimPrefix + rest[:end]
}

// wordOperator returns the operator that a word stands for.
func wordOperator(word string) (op, bool) {
	switch word {
	case "in":
		return opIn, true
	case "notin", "nin":
		return opNotIn, true
	case "eq":
		return opEqual, true
	case "neq", "noteq":
		return opNotEqual, true
	case "lt":
		return opLess, true
	case "lte":
		return opAtMost, true
	case "gt":
		return opMore, true
	case "gte":
		return opAtLeast, true
	}
	return 0, false
}

// operator reads the operator that comes next.
func (p *queryParser) operator() (op, bool) {
	word := p.name()
	if word == "not" { // not in, not eq
		p.at += len(word)
		p.blanks()
		word = "not" + p.name()
		p.at -= len("not")
	}
	if o, ok := wordOperator(word); ok {
		p.at += len(word)
		return o, true
	}
	for _, o := range []struct {
		text string
		op   op
	}{{"==", opEqual}, {"=", opEqual}, {"!=", opNotEqual}, {"<=", opAtMost}, {"<", opLess}, {">=", opAtLeast}, {">", opMore}} {
		if p.take(o.text) {
			return o.op, true
		}
	}
	return 0, false
}

// values reads the value or the list of a clause.
func (p *queryParser) values(c *clause) error {
	p.blanks()
	list := p.take("[")
	switch {
	case list && !c.op.lists():
		p.at--
		return p.fail("a list needs in or notin")
	case !list && c.op.lists():
		return p.fail("a list such as [DE,NL] is expected")
	}
	for {
		p.blanks()
		if len(c.values) == maxQueryList {
			return p.fail("the list is longer than " + strconv.Itoa(maxQueryList))
		}
		word, err := p.word()
		if err != nil {
			return err
		}
		if low, high, ranges := strings.Cut(word, rangeMark); ranges && c.op == opEqual && c.spans(low, high) {
			return p.ends(c, low, high)
		}
		d, ok := c.kind.parseOperand(word)
		if !ok || c.kind == kindClaim && c.op.orders() && d.isWord {
			return c.misfit(word)
		}
		c.values = append(c.values, d)
		if !list {
			return nil
		}
		p.blanks()
		if p.take("]") {
			return nil
		}
		if !p.take(",") {
			return p.fail("a comma or a closing bracket is expected")
		}
	}
}

// misfit says what a clause takes instead of a value.
func (c *clause) misfit(value string) error {
	return NewError(CodeBadUnit, "value", clip(value, 40), "field", c.name, "expects", c.kind.form().expects)
}

// spans reports whether two texts are the ends of a range: not where words can have dots.
func (c *clause) spans(low, high string) bool {
	if c.kind != kindClaim {
		return c.kind.form().ordered
	}
	for _, end := range []string{low, high} {
		if d, _ := kindClaim.parseOperand(end); d.isWord {
			return false
		}
	}
	return true
}

// ends reads a range. A unit behind the second end stands for both, where the first has none.
func (p *queryParser) ends(c *clause, low, high string) error {
	if strings.Trim(low, "0123456789.") == "" {
		low += strings.TrimLeft(high, "0123456789.")
	}
	for _, end := range []string{low, high} {
		d, ok := c.kind.parseOperand(end)
		if !ok {
			return c.misfit(end)
		}
		c.values = append(c.values, d)
	}
	a, b := c.values[0], c.values[1]
	if a.num > b.num || a.version.compare(b.version, min(a.version.n, b.version.n)) > 0 {
		return p.fail("a range goes from the lower value to the higher")
	}
	c.op = opRange
	return nil
}

// endsWord reports whether a character ends a word that is not in quotes.
func endsWord(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`()[],|"'=<>!`, r) }

// word reads one value, with or without quotes.
func (p *queryParser) word() (string, error) {
	rest := p.text[p.at:]
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		end := strings.IndexByte(rest[1:], rest[0])
		if end < 0 {
			return "", p.fail("the quote is not closed")
		}
		if end == 0 {
			return "", p.fail("the value is empty")
		}
		p.at += end + 2
		return rest[1 : end+1], nil
	}
	end := strings.IndexFunc(rest, endsWord)
	if end < 0 {
		end = len(rest)
	}
	if end == 0 {
		return "", p.fail("a value is expected")
	}
	p.at += end
	return rest[:end], nil
}
