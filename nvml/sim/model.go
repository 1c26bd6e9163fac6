package sim

import (
	"cmp"
	"math"
	"time"

	"haggle/nvml"
)

// physics is how a model draws power and warms up. The power follows the load at once; the temperature follows the
// power with a lag of first order; a card at its limit draws no more than the room takes away.
type physics struct {
	idle, busy int64         // mW at no and at full load
	cap        int64         // mW that the card is limited to; 0 when nobody limited it
	ambient    float64       // °C of the room
	limit      float64       // °C at which the card slows itself down
	resistance float64       // °C above the room per W
	lag        time.Duration // after which 63 % of a step in temperature is done

	idleMHz, baseMHz, boostMHz int
}

// body is a card's physical state at one moment.
type body struct {
	at       time.Duration
	permille int     // load since at
	temp     float64 // °C
	energy   int64   // mJ since the start
	rest     int64   // mW·ns below one mJ
}

const nanosPerMilliJoule = int64(time.Second) // 1 mJ is 1e9 mW·ns

// start is a card that has been idle for long.
func (p physics) start(at time.Duration) body {
	return body{at: at, temp: p.settles(p.idle)}
}

// wish is the power in mW that the load would take without a limit.
func (p physics) wish(permille int) int64 {
	return p.idle + (p.busy-p.idle)*int64(permille)/1000
}

// demand is the power in mW that the load asks for, within the limit.
func (p physics) demand(permille int) int64 {
	return min(p.wish(permille), p.most())
}

// most is the power in mW that the card may draw.
func (p physics) most() int64 { return cmp.Or(p.cap, p.busy) }

// settles is the temperature that a constant power in mW leads to.
func (p physics) settles(milliWatt int64) float64 {
	return p.ambient + p.resistance*float64(milliWatt)/1000
}

// held is the power in mW that keeps the card at its limit.
func (p physics) held() int64 {
	return int64((p.limit - p.ambient) / p.resistance * 1000)
}

// hot reports whether b is at its limit and would get hotter.
func (p physics) hot(b body) bool {
	return b.temp >= p.limit && p.settles(p.demand(b.permille)) > p.limit
}

// power is what b draws now, in mW.
func (p physics) power(b body) int64 {
	if p.hot(b) {
		return p.held()
	}
	return p.demand(b.permille)
}

// advance returns b at the later moment to; an earlier one changes nothing. How often it is called on the way makes no
// difference but for rounding in the temperature.
func (p physics) advance(b body, to time.Duration) body {
	if to <= b.at {
		return b
	}
	demand := p.demand(b.permille)
	if goal := p.settles(demand); goal > p.limit {
		reach := p.reaches(b.temp, goal)
		if reach < to-b.at {
			b = b.draw(demand, reach)
			b.temp = p.limit
			b = b.draw(p.held(), to-b.at)
			return b
		}
	}
	dt := to - b.at
	b = b.draw(demand, dt)
	goal := p.settles(demand)
	b.temp = goal + (b.temp-goal)*math.Exp(-float64(dt)/float64(p.lag))
	b.temp = min(b.temp, p.limit)
	return b
}

// reaches is the time from temp to the limit on the way to a goal above it.
func (p physics) reaches(temp, goal float64) time.Duration {
	if temp >= p.limit {
		return 0
	}
	return time.Duration(float64(p.lag) * math.Log((goal-temp)/(goal-p.limit)))
}

// draw adds the energy of a constant power over dt, exactly, and moves the clock.
func (b body) draw(milliWatt int64, dt time.Duration) body {
	whole, part := int64(dt/time.Second), int64(dt%time.Second)
	b.rest += milliWatt * part
	b.energy += milliWatt*whole + b.rest/nanosPerMilliJoule
	b.rest %= nanosPerMilliJoule
	b.at += dt
	return b
}

// clock is the processors' clock in MHz: high at light load, lower as the power limit bites, lower still in heat.
func (p physics) clock(b body) int {
	if b.permille == 0 {
		return p.idleMHz
	}
	mhz := p.boostMHz - (p.boostMHz-p.baseMHz)*b.permille/1000
	if now, wish := p.power(b), p.wish(b.permille); now < wish {
		mhz = int(int64(mhz) * now / wish)
	}
	return max(mhz, p.idleMHz)
}

// throttle says what holds the clock down.
func (p physics) throttle(b body) nvml.Throttle {
	switch {
	case p.hot(b):
		return nvml.ThrottleHeatHard
	case b.permille == 0:
		return nvml.ThrottleIdle
	case b.permille == 1000 || p.wish(b.permille) > p.most():
		return nvml.ThrottlePowerCap
	default:
		return 0
	}
}
