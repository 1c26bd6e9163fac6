package netsim

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
)

// Figure is one measured thing over several seeds.
type Figure struct {
	Name   string
	Unit   string
	Mean   float64
	Half   float64 // half of the 95 % interval of the mean; 0 for a single seed
	Values []float64
}

// Measurement is what the model says about a network of one size.
type Measurement struct {
	Rigs    int
	Seeds   []uint64
	figures []*Figure
}

// Get returns a figure's mean; NaN for a name that was not measured.
func (m *Measurement) Get(name string) float64 {
	for _, f := range m.figures {
		if f.Name == name {
			return f.Mean
		}
	}
	return math.NaN()
}

// Names of the figures that have an aim.
const (
	ScreenP50  = "first screen, median"
	ScreenP95  = "first screen, 95 %"
	ScreenMsgs = "first screen, messages"
	ScreenKB   = "first screen, traffic"
	IdleMean   = "idle traffic of a rig"
	IdleServer = "idle traffic of a rig that serves the DHT"
	IdleClient = "idle traffic of a rig behind a NAT"
	Busiest    = "busiest node to median"
	Hostile    = "live offers found beside hostile nodes"
	Covered    = "live mates on a shelf"
)

const screens = 300 // first screens of one seed

// Measure runs the model for one size with every seed of the scenario. It stops early with ctx.
func Measure(ctx context.Context, sc *Scenario, rigs int) (*Measurement, error) {
	m := &Measurement{Rigs: rigs}
	for _, seed := range sc.Seeds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.Seeds = append(m.Seeds, seed)
		m.measure(NewWorld(sc, rigs, seed, 0))
		m.read(NewWorld(sc, rigs, seed, sc.Hostile))
	}
	for _, f := range m.figures {
		f.Mean, f.Half = interval(f.Values)
	}
	return m, nil
}

func (m *Measurement) add(name, unit string, value float64) {
	i := slices.IndexFunc(m.figures, func(f *Figure) bool { return f.Name == name })
	if i < 0 {
		i = len(m.figures)
		m.figures = append(m.figures, &Figure{Name: name, Unit: unit})
	}
	m.figures[i].Values = append(m.figures[i].Values, value)
}

func (m *Measurement) measure(w *World) {
	rng := rand.New(rand.NewPCG(w.seed, 1))
	shelves := w.shelves(w.meanCell(), 0, rng)
	var ms, messages, bytes []float64
	for range screens {
		renter := w.newRig(int(rng.Int64N(math.MaxInt32)), 0)
		s := w.firstScreen(&renter, w.query(rng), shelves.Coverage, rng)
		ms, messages, bytes = append(ms, s.Ms), append(messages, float64(s.Messages)), append(bytes, s.Bytes/1000)
	}
	m.add(ScreenP50, "ms", quantile(ms, 0.5))
	m.add(ScreenP95, "ms", quantile(ms, 0.95))
	m.add(ScreenMsgs, "", quantile(messages, 0.5))
	m.add(ScreenMsgs+", 95 %", "", quantile(messages, 0.95))
	m.add(ScreenKB, "kB", quantile(bytes, 0.5))
	m.add(ScreenKB+", 95 %", "kB", quantile(bytes, 0.95))
	idle := w.idle(shelves, rng)
	m.add(IdleMean, "B/s", idle.Mean)
	m.add(IdleClient, "B/s", idle.Client)
	m.add(IdleServer, "B/s", idle.Server)
	m.add("  announcing", "B/s", idle.Announce)
	m.add("  routing table", "B/s", idle.Refresh)
	m.add("  shelves", "B/s", idle.Shelves)
	m.add("  connections", "B/s", idle.Keepalive)
	m.add("  serving the DHT", "B/s", idle.Served)
	m.add("cells of a rig", "", idle.Keys)
	m.add("live rigs in a cell", "", float64(w.meanCell()))
	m.add(Covered, "%", 100*shelves.Coverage)
	m.add("dead on a shelf, not expired", "%", 100*shelves.Dead)
	m.add(Busiest, "", w.load(idle).Ratio)
}

// read reads a few buckets whole among hostile nodes.
func (m *Measurement) read(w *World) {
	rng := rand.New(rand.NewPCG(w.seed, 2))
	covered := w.shelves(w.meanCell(), w.sc.Hostile, rng).Coverage
	renter := w.newRig(0, 0)
	live, found, lookups, traffic := 0, 0, 0, traffic{}
	for _, name := range []string{"model/M0", "model/M3", "model/M8", "region/0.1", "memory/80"} {
		b, ok := w.index[name]
		if !ok {
			continue
		}
		r := w.readAll(&renter, b, covered, rng)
		live, found, lookups = live+r.Live, found+r.Found, lookups+r.Lookups
		traffic.add(r.traffic)
	}
	m.add(Hostile, "%", 100*float64(found)/float64(max(live, 1)))
	m.add("  lookups for 1000 of them", "", 1000*float64(lookups)/float64(max(found, 1)))
	m.add("  traffic for each of them", "kB", traffic.Bytes/1000/float64(max(found, 1)))
}

// meanCell is how many live rigs share a cell with a rig, on the mean.
func (w *World) meanCell() int {
	sum, n := 0, 0
	for _, of := range w.of {
		for _, m := range of {
			sum += len(w.cells[w.leaf(m)])
			n++
		}
	}
	return max(2, int(float64(sum)/float64(n)*(1-w.sc.Stale)))
}

// query draws the bucket that a renter asks.
func (w *World) query(rng *rand.Rand) int32 {
	like := w.newRig(int(rng.Int64N(math.MaxInt32)), 0) // people want what there is
	q := w.sc.Queries
	at, kind := rng.Float64(), "any"
	switch {
	case at < q.ByModel:
		kind = "model"
	case at < q.ByModel+q.ByMemory:
		kind = "memory"
	case at < q.ByModel+q.ByMemory+q.ByRegion:
		kind = "region"
	}
	b, ok := w.index[w.bucketName(&like, kind)]
	if !ok {
		return w.index["any"]
	}
	return b
}

// Print writes a table for people.
func (m *Measurement) Print(out io.Writer) {
	fmt.Fprintf(out, "%d rigs, seeds %v\n", m.Rigs, m.Seeds)
	for _, f := range m.figures {
		fmt.Fprintf(out, "  %-44s %10.1f ± %-8.1f %s\n", f.Name, f.Mean, f.Half, f.Unit)
	}
}

// interval returns the mean and half of its 95 % interval, by Student's t for up to ten seeds.
func interval(values []float64) (mean, half float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	if len(values) < 2 {
		return mean, 0
	}
	sum := 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	t := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}
	return mean, t[min(len(values)-2, len(t)-1)] * math.Sqrt(sum/(n-1)/n)
}

func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}
