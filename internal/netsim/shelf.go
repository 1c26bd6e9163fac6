package netsim

import "math/rand/v2"

// Shelves is how well the rigs of a cell know each other's offers, and what that costs them.
type Shelves struct {
	Coverage  float64 // share of the offers of live mates that a shelf holds unexpired
	Age       float64 // minutes since these were signed, on the mean
	Dead      float64 // share of a shelf that belongs to rigs that have died since
	Bytes     float64 // sent and received by one rig in a second, on the mean
	Exchanges float64 // that a rig begins in an hour
}

// shelved is what one rig knows of another's offer.
type shelved struct{ issued float64 }

// shelves simulates one cell for two hours: every rig exchanges news with some mates. Where that goes both ways over one connection,
// nobody needs to call a rig behind a NAT. A hostile mate takes and gives nothing.
func (w *World) shelves(size int, hostile float64, rng *rand.Rand) Shelves {
	c := newCircle(w, size, hostile, rng)
	for minute := 0.0; minute < 120; minute += 0.5 {
		c.step(minute)
	}
	return c.result()
}

type circle struct {
	w       *World
	rng     *rand.Rand
	size    int
	server  []bool
	bad     []bool
	died    []float64 // minute of death, or far away
	next    []float64 // minute of the next exchange
	phase   []float64 // of the renewals
	known   [][]shelved
	copies  float64
	having  float64
	begun   float64
	sum     Shelves
	samples float64
}

const never = 1e9

func newCircle(w *World, size int, hostile float64, rng *rand.Rand) *circle {
	c := &circle{w: w, rng: rng, size: size}
	for range size {
		c.server = append(c.server, rng.Float64() < w.serverShare())
		c.bad = append(c.bad, rng.Float64() < hostile)
		died := never
		if rng.Float64() < 2/w.meanSession() { // within the two hours
			died = 60 + 60*rng.Float64()
		}
		c.died = append(c.died, died)
		c.next = append(c.next, w.sc.Protocol.PullMin*rng.Float64())
		c.phase = append(c.phase, w.sc.Protocol.RenewalMin*rng.Float64())
		row := make([]shelved, size)
		for i := range row {
			row[i].issued = -never
		}
		c.known = append(c.known, row)
	}
	return c
}

// step lets half a minute pass.
func (c *circle) step(minute float64) {
	p := c.w.sc.Protocol
	for i := range c.size {
		if c.died[i] < minute {
			continue
		}
		renewals := float64(int((minute+p.RenewalMin-c.phase[i])/p.RenewalMin) - 1)
		c.known[i][i].issued = max(c.known[i][i].issued, c.phase[i]+renewals*p.RenewalMin)
	}
	for i := range c.size {
		if c.died[i] < minute || c.next[i] > minute {
			continue
		}
		c.next[i] = minute + p.PullMin*(0.9+0.2*c.rng.Float64())
		for range p.PullFrom {
			if mate := c.mate(i); mate >= 0 && c.died[mate] >= minute {
				c.exchange(i, mate, minute)
			}
		}
	}
	if minute >= 60 {
		c.sample(minute)
	}
}

// mate picks a mate: any, who may have to be called by way of a relay, or one that can be called where both talk.
func (c *circle) mate(i int) int {
	for range 8 {
		if m := c.rng.IntN(c.size); m != i && (c.server[m] || !c.w.sc.Protocol.BothWays) {
			return m
		}
	}
	return -1
}

func (c *circle) exchange(a, b int, minute float64) {
	c.begun++
	if c.bad[a] || c.bad[b] {
		return
	}
	c.having += float64(c.size)
	if c.w.sc.Protocol.BothWays {
		c.having += float64(c.size)
	}
	for of := range c.size {
		x, y := &c.known[a][of], &c.known[b][of]
		if x.issued == y.issued {
			continue
		}
		if max(x.issued, y.issued)+c.w.sc.Protocol.LifeMin < minute {
			continue // expired: nobody gives it away
		}
		switch {
		case y.issued > x.issued:
			x.issued = y.issued
		case c.w.sc.Protocol.BothWays:
			y.issued = x.issued
		default:
			continue
		}
		c.copies++
	}
}

func (c *circle) sample(minute float64) {
	life := c.w.sc.Protocol.LifeMin
	for i := range c.size {
		if c.died[i] < minute || c.bad[i] || !c.server[i] {
			continue // only reachable shelves are asked
		}
		held, dead, live, age := 0.0, 0.0, 0.0, 0.0
		for of := range c.size {
			valid := c.known[i][of].issued+life >= minute
			switch {
			case c.died[of] < minute && valid:
				dead++
			case c.died[of] >= minute && !c.bad[of]:
				live++
				if valid {
					held++
					age += minute - c.known[i][of].issued
				}
			}
		}
		if live > 0 && held > 0 {
			c.sum.Coverage += held / live
			c.sum.Dead += dead / (held + dead)
			c.sum.Age += age / held
			c.samples++
		}
	}
}

func (c *circle) result() Shelves {
	s, b := c.sum, c.w.sc.Bytes
	if c.samples > 0 {
		s.Coverage, s.Dead, s.Age = s.Coverage/c.samples, s.Dead/c.samples, s.Age/c.samples
	}
	const seconds = 120 * 60
	// Mates stay connected for long: one exchange in ten needs a new connection.
	size := float64(c.w.size)
	if b.Renewal > 0 {
		size = b.Renewal
	}
	wire := c.copies*(size+8) + c.having*b.Have + c.begun*2*(b.Request+b.Answer) + c.begun/10*b.Handshake
	s.Bytes = 2 * wire / float64(c.size) / seconds // each byte is sent by one and received by another
	s.Exchanges = c.begun / float64(c.size) / 2
	return s
}

func (w *World) serverShare() float64 { return w.sc.Datacentre + (1-w.sc.Datacentre)*(1-w.sc.NAT) }

// meanSession is the mean length of rigs' sessions in hours, weighted by rigs that are on. A Weibull law of shape 0.6 has a mean of
// 1.505 scales and a median of 0.543.
func (w *World) meanSession() float64 {
	s := w.sc.Session
	return w.sc.Datacentre*s.Datacentre + (1-w.sc.Datacentre)*s.Hobby*1.505/0.543
}
