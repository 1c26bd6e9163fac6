package sim

import "haggle/market"

// network carries messages on connections, as streams over a bad network look: what is lost comes late, a connection that loses
// too much breaks, and each side notices in its own time. What was under way on a broken connection may still arrive: at the rig also
// behind or before what a new one carries, or twice.
type network struct {
	w     *world
	apart bool // nothing passes
	conns []*conn
}

// conn is one conversation about the lease.
type conn struct {
	net        *network
	open       bool
	way        [2][]parcel // to each side, in order
	drains     [2]bool     // once it is broken: what is under way still arrives
	rigLife    int         // of the program that it leads to: another one knows nothing of it
	renterLife int
}

// parcel is a message on its way.
type parcel struct {
	m   market.Message
	due int64
}

// Directions.
const (
	toRig = iota
	toRenter
)

func newNetwork(w *world) *network { return &network{w: w} }

// dial opens a connection to the rig; nil where that fails.
func (n *network) dial() *conn {
	if n.apart || !n.w.rig.alive || n.w.chance(50) {
		return nil
	}
	c := &conn{net: n, open: true, rigLife: n.w.rig.life, renterLife: n.w.renter.life}
	n.conns = []*conn{c}
	return c
}

// send puts a message on its way. What is sent on one connection arrives in order.
func (c *conn) send(to int, m market.Message) {
	if c == nil || !c.open {
		return
	}
	w := c.net.w
	delay := w.between(5, 120)
	switch {
	case w.chance(4):
		w.stats.Breaks++
		c.cut("lost too much")
		return
	case w.chance(30):
		delay += w.between(200, 9000) // lost, and sent again below
	}
	due := w.now + delay
	if queue := c.way[to]; len(queue) > 0 {
		due = max(due, queue[len(queue)-1].due)
	}
	c.way[to] = append(c.way[to], parcel{m, due})
	w.after(due-w.now, func() { c.arrive(to) })
	if to == toRig && w.chance(10) {
		w.after(due-w.now+w.between(1, 3000), func() { c.deliver(to, m) }) // twice
	}
}

// arrive delivers what is due, in order.
func (c *conn) arrive(to int) {
	w := c.net.w
	if c.net.apart && c.open {
		w.after(500, func() { c.arrive(to) })
		return
	}
	for len(c.way[to]) > 0 && c.way[to][0].due <= w.now {
		m := c.way[to][0].m
		c.way[to] = c.way[to][1:]
		c.deliver(to, m)
	}
}

func (c *conn) deliver(to int, m market.Message) {
	w := c.net.w
	switch {
	case to == toRig && w.rig.alive && w.rig.life == c.rigLife && (c.open || c.drains[to]):
		w.guard(func() { w.rig.receive(c, m) })
	case to == toRenter && (c.open || c.drains[to]) && w.renter.alive && w.renter.life == c.renterLife && w.renter.conn == c:
		w.guard(func() { w.renter.receive(m) })
	}
}

// cut ends a connection. Both sides notice, each in its time.
func (c *conn) cut(why string) {
	if c == nil || !c.open {
		return
	}
	w := c.net.w
	c.open, c.drains = false, [2]bool{w.rng.IntN(3) == 0, w.rng.IntN(2) == 0}
	w.note("net", "connection breaks: "+why)
	w.after(w.between(1, 4000), func() {
		if w.rig.alive && w.rig.life == c.rigLife {
			w.rig.detach(c)
		}
	})
	w.after(w.between(1, 4000), func() {
		if w.renter.alive && w.renter.conn == c {
			w.renter.offline()
		}
	})
}

// part cuts the network for a while. Connections live through a short cut.
func (n *network) part(ms int64) {
	w := n.w
	n.apart = true
	w.note("net", "parted")
	w.after(ms, func() {
		if n.apart {
			n.apart = false
			w.note("net", "together")
		}
	})
	if ms > 15_000 {
		w.after(w.between(10_000, 15_000), func() {
			if n.apart {
				n.breakAll("parted for too long")
			}
		})
	}
}

func (n *network) breakAll(why string) {
	for _, c := range n.conns {
		c.cut(why)
	}
}

func (n *network) heal() { n.apart = false }
