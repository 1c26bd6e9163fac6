package sim

import "haggle/market"

// beginWall is the true wall time at which every run begins, in Unix milliseconds.
const beginWall = int64(1_700_000_000_000)

// clock is a machine's idea of time: it runs too fast or too slowly, and somebody sets its wall clock. Its program counts from
// its own start, its boot clock from the machine's.
type clock struct {
	w      *world
	ppm    int64 // by which it is fast
	set    int64 // ms by which the wall clock was set
	origin int64 // true time of the program's start
	booted int64 // true time of the machine's
	boots  byte
}

// read returns what a program that counts from its own start sees.
func (c *clock) read() market.Instant {
	return market.Instant{Mono: c.run(c.w.now - c.origin), Wall: c.wall()}
}

// steady is read with the machine's boot clock, which no program's end stops.
func (c *clock) steady() market.Instant {
	return market.Instant{Mono: c.run(c.w.now-c.booted) + 1, Wall: c.wall()}
}

func (c *clock) wall() int64 { return beginWall + c.run(c.w.now) + c.set }

func (c *clock) run(ms int64) int64 { return ms + ms*c.ppm/1_000_000 }

// boot names the machine's present boot.
func (c *clock) boot() market.Nonce { return market.Nonce{c.boots + 1} }

// reboot starts the machine anew.
func (c *clock) reboot() { c.booted, c.boots = c.w.now, c.boots+1 }
