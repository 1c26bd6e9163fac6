package market

import "math"

// maxDistinct is the number of different numbers of a column from which on it keeps the numbers and not their codes.
const maxDistinct = 4096

// column is what all rows of a table have in one field. It keeps codes of a dict, and of numbers that are all different the numbers.
type column struct {
	subject subject
	rows    packed
	dict    *dict // nil where rows are the numbers
}

// get returns the value of a row.
func (c *column) get(row uint32) value {
	n, known := c.rows.get(row)
	switch {
	case !known:
		return value{}
	case c.dict == nil:
		return number(n)
	}
	return c.valueOf(uint32(n))
}

// valueOf returns what a code stands for. Columns of one list read different parts of it.
func (c *column) valueOf(code uint32) value {
	v := c.dict.value(code)
	v.digests = c.subject.field == fieldImageDigest
	return v
}

// set writes the value of a row that has none.
func (c *column) set(row uint32, v *value) {
	switch {
	case !v.known:
		c.rows.set(row, false, 0)
		return
	case c.dict == nil:
		c.rows.set(row, true, v.num)
		return
	}
	c.rows.set(row, true, int64(c.dict.intern(v)))
	if c.dict.kind.isNumber() && c.dict.distinct() > maxDistinct {
		c.direct()
	}
}

// change writes another value into a row that has one; the same costs a comparison.
func (c *column) change(row uint32, v *value) {
	n, known := c.rows.get(row)
	c.set(row, v) // before the old one is released: the same value keeps its code
	if known && c.dict != nil {
		c.dict.release(uint32(n))
	}
}

// write is set or change.
func (c *column) write(row uint32, v *value, fresh bool) {
	if fresh {
		c.set(row, v)
	} else {
		c.change(row, v)
	}
}

// clear takes a row's value back. What is left in its place is never looked at.
func (c *column) clear(row uint32) {
	if n, known := c.rows.get(row); known && c.dict != nil {
		c.dict.release(uint32(n))
	}
}

// direct turns codes into numbers.
func (c *column) direct() {
	codes := c.rows
	c.rows = packed{}
	for row := range uint32(len(codes.chunks)) * chunkRows {
		if code, known := codes.get(row); known {
			c.rows.set(row, true, *c.dict.nums.at(uint32(code)))
		}
	}
	c.dict = nil
}

// asker asks the rows of a column one clause. It remembers what it heard of each value.
type asker struct {
	clause *clause
	column *column
	judge  func(v value) bool // of a known value, beside the clause; nil is the clause alone
	memo   []uint8            // by code: 0 not asked yet, 1 no, 2 yes; nil where nothing is remembered
	lo, hi int64              // of numbers that are not coded: what the clause accepts, where it is a range
	ranged bool
}

// remember makes room for what is heard of each value.
func (a *asker) remember() {
	if a.column.dict != nil {
		a.memo = make([]uint8, a.column.dict.high)
	} else if a.judge == nil {
		a.lo, a.hi, a.ranged = a.clause.interval()
	}
}

// interval returns the numbers that a clause accepts, if they stand together.
func (c *clause) interval() (lo, hi int64, ok bool) {
	lo, hi = math.MinInt64, math.MaxInt64
	if len(c.values) == 0 {
		return lo, hi, false
	}
	switch n := c.values[0].num; c.op {
	case opEqual:
		return n, n, true
	case opLess:
		return lo, n - 1, n > math.MinInt64
	case opAtMost:
		return lo, n, true
	case opMore:
		return n + 1, hi, n < math.MaxInt64
	case opAtLeast:
		return n, hi, true
	case opRange:
		return n, c.values[1].num, true
	}
	return lo, hi, false
}

// accepts asks one known number or code.
func (a *asker) accepts(n int64) bool {
	switch {
	case a.column.dict == nil && a.ranged:
		return n >= a.lo && n <= a.hi
	case a.column.dict == nil:
		return a.hears(number(n))
	case a.memo == nil:
		return a.hears(a.column.valueOf(uint32(n)))
	}
	if a.memo[n] == 0 {
		a.memo[n] = 1 + truthOf(a.hears(a.column.valueOf(uint32(n))))
	}
	return a.memo[n] == 2
}

func (a *asker) hears(v value) bool {
	if a.judge != nil {
		return a.judge(v)
	}
	return a.clause.accepts(&v)
}

// row asks one row.
func (a *asker) row(row uint32) bool {
	n, known := a.column.rows.get(row)
	return known && a.accepts(n)
}

// chunk asks those rows of a chunk that are set in a selection, and returns those that fit.
func (a *asker) chunk(k int, in *selection) (out selection) {
	if k >= len(a.column.rows.chunks) {
		return out
	}
	c := &a.column.rows.chunks[k]
	if c.width == 0 {
		if n, known := c.number(c.same); known && a.accepts(n) {
			return *in
		}
		return out
	}
	switch c.width {
	case 1:
		return a.narrow(c, in)
	case 2:
		return a.coded(c, in)
	}
	for w, word := range in {
		for ; word != 0; word &= word - 1 {
			i := lowest(word)
			if n, known := c.number(c.at(uint32(w*64 + i))); known && a.accepts(n) {
				out[w] |= 1 << i
			}
		}
	}
	return out
}
