package nvidia

import (
	"fmt"
	"log/slog"
	"time"

	"haggle/nvml"
)

const (
	hangs      = 2                // deadlines missed in a row by a card that is taken to hang
	maxKnown   = 4 * maxCards     // cards seen in the life of one driver
	firstQuiet = time.Second      // before a card that hung is asked again
	maxQuiet   = 60 * time.Second // the same after many times: each time the child has to be restarted
)

// patient is what the driver remembers of a card, over all its children. The driver's lock guards it.
type patient struct {
	lost   bool
	misses int           // deadlines missed since the last answer
	missed time.Time     // when the last was
	quiet  time.Duration // how long it is left alone after the next hang
	until  time.Time     // when it may be asked again
	asked  time.Time     // when it last answered or was asked by the driver itself

	raw  int64 // energy as the card told it last
	base int64 // energy of the counter before it began anew
	ecc  nvml.Sample
}

// patient finds a card, or takes it in; when there have been too many it forgets the new one at once. The lock must be
// held.
func (d *Driver) patient(uuid string) *patient {
	p := d.patients[uuid]
	if p == nil {
		p = &patient{quiet: firstQuiet}
		if len(d.patients) < maxKnown {
			d.patients[uuid] = p
		}
	}
	return p
}

// now is the time since Open. It never goes back even if the clock does. The lock must be held.
func (d *Driver) now() time.Duration {
	d.last = max(d.last, d.cfg.Clock()-d.start)
	return d.last
}

// take sees every answer of a child in order. It stamps samples and events, and notices what happened to the card.
func (d *Driver) take(r *reply) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case r.Event != nil:
		if d.patients[r.Event.UUID] == nil {
			return fmt.Errorf("event on the unknown card %.96q", r.Event.UUID)
		}
		r.Event.At = d.now()
		d.feed.publish(*r.Event)
	case r.Sample != nil:
		d.diagnose(d.patient(r.Sample.UUID), r.Sample)
	case r.Card != nil:
		d.patient(r.Card.UUID).answered()
	}
	return nil
}

func (p *patient) answered() {
	p.lost, p.misses, p.quiet, p.asked = false, 0, firstQuiet, time.Now()
}

// diagnose compares a new sample with what is known of the card. The lock must be held.
func (d *Driver) diagnose(p *patient, s *nvml.Sample) {
	p.answered()
	s.At = d.now()
	if raw, ok := s.EnergyMilliJoule.Get(); ok {
		// The counter begins anew when the kernel module is loaded again or the card is reset.
		if raw < p.raw {
			p.base += p.raw
		}
		p.raw = raw
		s.EnergyMilliJoule = nvml.Some(p.base + raw)
	}
	if _, ok := s.ECCUncorrected.Get(); ok {
		if e, found := nvml.NewErrors(p.ecc, *s); found {
			d.feed.publish(e)
		}
		p.ecc = *s
	}
}

// lose notes that a card is gone.
func (d *Driver) lose(uuid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.patients[uuid]; p != nil && !p.lost {
		p.lost, p.misses = true, 0
		d.feed.publish(nvml.HealthEvent{UUID: uuid, Kind: nvml.EventLost, At: d.now()})
	}
}

// late notes that a child did not answer in time, and whose fault it is.
func (d *Driver) late(l *link, uuid string, asked time.Time) {
	silent := l.silentFor()
	d.mu.Lock()
	if d.link != l {
		d.mu.Unlock()
		return // already given up
	}
	p := d.patients[uuid]
	if p == nil || silent > d.cfg.Timeout/2 {
		d.mu.Unlock()
		d.cfg.Log.Warn("nvml child is stuck", slog.Duration("took", silent))
		l.stop(errLate)
		return
	}
	counted, hung := d.miss(p, uuid, asked)
	d.mu.Unlock()
	switch {
	case hung:
		d.cfg.Log.Warn("card hangs", slog.String("gpu", uuid))
		l.stop(fmt.Errorf("card %s hangs", uuid))
	case counted:
		d.look(uuid) // a card that nobody else asks must not stay in doubt
	}
}

// miss counts a missed deadline and reports whether the card is now taken to hang. Questions that waited at the same time
// are one miss. The lock must be held.
func (d *Driver) miss(p *patient, uuid string, asked time.Time) (counted, hung bool) {
	if p.misses > 0 && asked.Before(p.missed) {
		return false, false
	}
	p.misses, p.missed = p.misses+1, time.Now()
	d.feed.publish(nvml.HealthEvent{UUID: uuid, Kind: nvml.EventHang, Code: p.misses, At: d.now()})
	if p.misses < hangs {
		return true, false
	}
	p.until = p.missed.Add(p.quiet)
	p.quiet = min(2*p.quiet, maxQuiet)
	return true, true
}

// enrol takes in the cards that a new child found, and notes which of the known ones are gone.
func (d *Driver) enrol(l *listing) {
	here := make(map[string]bool)
	d.mu.Lock()
	for _, uuid := range l.UUIDs {
		here[uuid] = true
		d.patient(uuid)
	}
	var away []string
	for uuid := range d.patients {
		if !here[uuid] && l.Silent == 0 { // else it may be one that has not said who it is
			away = append(away, uuid)
		}
	}
	d.mu.Unlock()
	for _, uuid := range away {
		d.lose(uuid)
	}
}
