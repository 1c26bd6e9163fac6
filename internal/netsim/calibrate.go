package netsim

import "math/rand/v2"

// Still returns the scenario of real nodes in virtual time: every round trip takes as long, everybody can be called, nobody is dead and
// all stay connected.
func (s *Scenario) Still() *Scenario {
	still := *s
	still.Regions = []Region{{Name: "everywhere", Share: 1, Countries: 1}}
	still.RTT = [][]float64{{s.Virtual.RTT}}
	still.LastMile.Median, still.LastMile.Sigma = 0, 0
	still.Datacentre, still.NAT, still.Stale = 1, 0, 0
	return &still
}

// Lookups runs some lookups by rigs that are connected to everybody they know, and returns the mean time in milliseconds and what one
// sends and receives. They are what the model and real nodes are compared by.
func (w *World) Lookups(n int) (ms, messages, bytes float64) {
	rng := rand.New(rand.NewPCG(w.seed, 3))
	for range n {
		i := w.liveRig(rng)
		l := lookup{w: w, from: &w.rigs[i], key: rng.Uint64(), fresh: func(int32) bool { return false }}
		l.run(w.table(w.rigs[i].ring, l.key))
		ms += l.now / float64(n)
		messages += float64(l.cost.Messages) / float64(n)
		bytes += l.cost.Bytes / float64(n)
	}
	return ms, messages, bytes
}
