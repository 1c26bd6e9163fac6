package index

import (
	"runtime"
	"sync"
	"sync/atomic"

	"haggle/market"
)

// verifyChunk is how many offers a worker takes at a time: enough that taking them costs nothing beside checking them.
const verifyChunk = 16

// Open opens sealed offers with so many workers at a time, or as many as there are processors if 0. The answer has a place for each;
// it is nil for one that is not valid.
func Open(network string, raws [][]byte, workers int) []*Statement {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	out := make([]*Statement, len(raws))
	var next atomic.Int64
	work := func() {
		for {
			end := int(next.Add(verifyChunk))
			begin := end - verifyChunk
			if begin >= len(raws) {
				return
			}
			for i := begin; i < min(end, len(raws)); i++ {
				out[i] = open(network, raws[i])
			}
		}
	}
	var group sync.WaitGroup
	for range min(workers, (len(raws)+verifyChunk-1)/verifyChunk) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	return out
}

func open(network string, raw []byte) *Statement {
	o, s, err := market.OpenOffer(network, raw)
	if err != nil {
		return nil
	}
	return &Statement{Offer: o, Raw: raw, Hash: s.Hash()}
}

// name is the beginning of the SHA-256 of a statement's sealed bytes; nobody finds two of the same.
type name [16]byte

func nameOf(raw []byte) name {
	h := market.HashOf(raw)
	return name(h[:len(name{})])
}

// verifier opens what comes in, a bounded number at a time for all who bring something, and nothing twice.
type verifier struct {
	network string
	workers int
	turn    chan struct{} // one token for each batch that is being opened
}

func newVerifier(network string, workers int) *verifier {
	if workers <= 0 {
		workers = max(1, runtime.GOMAXPROCS(0)/2)
	}
	return &verifier{network: network, workers: workers, turn: make(chan struct{}, 2)}
}

// open opens what the index does not hold already; the answer has a place for each, nil for one that is not valid.
func (x *Index) open(raws [][]byte) []*Statement {
	out := make([]*Statement, len(raws))
	var fresh [][]byte
	var at []int
	x.mu.Lock()
	for i, raw := range raws {
		if e := x.byName[nameOf(raw)]; e != nil {
			out[i] = e
			continue
		}
		fresh, at = append(fresh, raw), append(at, i)
	}
	x.mu.Unlock()
	if len(fresh) == 0 {
		return out
	}
	x.verify.turn <- struct{}{}
	opened := Open(x.verify.network, fresh, x.verify.workers)
	<-x.verify.turn
	for i, s := range opened {
		if s == nil {
			continue
		}
		if x.serves() {
			s.homes = homesOf(s.Offer)
		}
		out[at[i]] = s
	}
	return out
}
