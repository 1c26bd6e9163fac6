package index

import (
	"context"
	"slices"
	"time"

	"haggle/market"
)

// pull is a reading of some cells from the snapshots of at least two peers, the second without what the first gave. One peer can
// leave offers out; it would have to know who the other is.
type pull struct {
	x     *Index
	names []string
	cells []cell
	want  int               // peers
	found <-chan market.Key // more peers to ask, as they are found; nil is none
	wide  bool              // two peers at once from the beginning: nothing is known yet

	queue  []market.Key
	tried  map[market.Key]bool
	active int
	got    int
	depth  int // the deepest cell of which one of them keeps a shelf, in the bucket of the first cell
	least  int // the least deep one
}

// newPull makes a reading that begins with some peers.
func (x *Index) newPull(names []string, first []market.Key, found <-chan market.Key) *pull {
	p := &pull{x: x, names: names, cells: parseCells(names), want: wantSources, found: found, tried: map[market.Key]bool{x.cfg.Self: true}}
	for _, key := range first {
		p.add(key)
	}
	return p
}

// maxQueue bounds the peers that wait to be asked for one reading.
const maxQueue = 16

func (p *pull) add(key market.Key) {
	if len(p.queue) < maxQueue && !p.tried[key] && !p.x.sources.shunned(key, p.x.cfg.Clock()) {
		p.tried[key] = true
		p.queue = append(p.queue, key)
	}
}

// visit is what came of asking one peer.
type visit struct {
	ok    bool
	depth int
}

// run asks until enough peers have answered or there is nobody left to ask. It waits for those that it has begun to ask only as long
// as they are wanted.
func (p *pull) run(ctx context.Context) (answered int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	visits := make(chan visit, maxQueue+wantSources)
	hedge := time.NewTimer(hedgeAfter)
	defer hedge.Stop()
	atOnce := 1
	if p.wide {
		atOnce = p.want
	}
	for p.got < p.want {
		for p.active < min(atOnce, p.want-p.got) && len(p.queue) > 0 {
			p.start(ctx, visits)
		}
		if p.active == 0 && len(p.queue) == 0 && p.found == nil {
			break
		}
		select {
		case key, ok := <-p.found:
			if !ok {
				p.found = nil
				continue
			}
			p.add(key)
		case v := <-visits:
			p.active--
			if v.ok {
				p.got++
				p.depth = max(p.depth, v.depth)
				if p.least = min(p.least, v.depth); p.got == 1 {
					p.least = v.depth
				}
			}
		case <-hedge.C:
			atOnce = p.want - p.got + 1 // one is slow: ask one more than are wanted
			if p.active > 0 && len(p.queue) > 0 {
				p.start(ctx, visits)
			}
			hedge.Reset(hedgeAfter)
		case <-ctx.Done():
			return p.got
		}
	}
	return p.got
}

func (p *pull) start(ctx context.Context, visits chan<- visit) {
	key := p.queue[0]
	p.queue = p.queue[1:]
	p.active++
	err := p.x.spawn(ctx, func(running context.Context) {
		running, stop := context.WithCancel(running)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		depth, err := p.x.visit(running, key, p.names, p.cells, p.wide)
		visits <- visit{ok: err == nil, depth: depth}
	})
	if err != nil {
		visits <- visit{}
	}
}

// visit reads some cells from one peer, page by page, and merges what is true of it. A peer that serves what nobody asked for or
// nobody signed is shunned for a while. The first page
// is a small one where few is true: it fits into what a new connection carries at once. It returns how deep the peer's own cell is in
// the bucket of the first cell.
func (x *Index) visit(ctx context.Context, key market.Key, names []string, cells []cell, few bool) (depth int, err error) {
	r := market.SnapshotRequest{Cells: names, Have: x.haveFew(cells), Mate: x.serves()}
	if few {
		r.Max = firstPage
	}
	for range pullPages {
		raws, end, err := x.cfg.Net.Snapshot(ctx, key, r)
		if err != nil {
			if ctx.Err() == nil {
				x.log.Debug("no snapshot", "peer", key.String(), "err", err)
				x.sources.failed(key)
			}
			return depth, err
		}
		now := x.cfg.Clock()
		list := x.open(raws)
		if bad := unfit(list, cells); bad > 1+len(list)/shunShare {
			x.log.Warn("peer serves offers that are not valid or not of the cells asked", "peer", key.String(), "bad", bad, "of", len(list))
			x.sources.shun(key, now.Add(shunFor))
			fault := market.NewError(market.CodeUnexpected, "got", "offers that are not valid or of other cells")
			x.cfg.Net.Blame(key, fault)
			return depth, fault
		}
		x.take(list, key, FromSnapshot, now)
		depth = min(int(end.Depth), market.MaxCellDepth) / market.CellStep * market.CellStep
		if !end.More || end.Next == r.Since {
			break
		}
		r.Since, r.Max = end.Next, 0
		if few {
			few, r.Have = false, x.haveFew(cells) // of what others have told meanwhile
		}
	}
	x.sources.served(key, x.cfg.Clock())
	return depth, nil
}

// unfit counts what is not valid or of other cells and takes it out.
func unfit(list []*Statement, cells []cell) (bad int) {
	for i, s := range list {
		if s == nil || !s.in(cells) {
			list[i] = nil
			bad++
		}
	}
	return bad
}

// maxHaveRigs is up to how many rigs an index looks for what it has of some cells before it asks for them.
const maxHaveRigs = 8192

// haveFew is have, or nothing where looking would take too long: a few offers then come twice.
func (x *Index) haveFew(cells []cell) []byte {
	x.mu.Lock()
	many := len(x.rigs) > maxHaveRigs
	x.mu.Unlock()
	if many {
		return nil
	}
	return x.have(cells, x.cfg.Clock().UnixMilli())
}

// firstPeers returns whom to ask for a snapshot before a lookup has found anybody: those by which the node joined, those that served
// before, and rigs that answered.
func (x *Index) firstPeers() []market.Key {
	keys := append(x.cfg.Net.Contacts(), x.sources.proven(4)...)
	x.mu.Lock()
	defer x.mu.Unlock()
	more := 0
	for key, r := range x.rigs {
		if r.failures == 0 && (!r.heard.IsZero() || r.warm) && !slices.Contains(keys, key) {
			keys = append(keys, key)
			if more++; more == 4 {
				break
			}
		}
	}
	return keys
}
