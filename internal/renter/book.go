package renter

import (
	"context"
	"sync"
	"time"

	"haggle/internal/index"
	"haggle/market"
)

// Bounds of how the book sees to what comes with no word of it: who is blocked, and how rigs are reached.
const (
	smallBook  = 1024            // rigs up to which all are seen to with each question
	bookPause  = 5 * time.Second // between two times that all of a larger one are
	pathChecks = 512             // rigs that are not known to be connected and are looked at then
)

// book is the index's offers with what this renter knows of each, in a table, so that a question reads columns and copies only what it
// answers with. It follows the index: catchUp writes what has changed since. Its zero value is empty.
type book struct {
	mu        sync.RWMutex
	table     *market.Table
	rigs      map[market.Key]*booked
	connected map[market.Key]bool // rigs with a path or a round trip when they were last looked at, and those that may have one by now
	dealt     dealt
	given     map[market.Key]string
}

// booked is a rig as the table has it.
type booked struct {
	offers  []*index.Known // those in the table
	left    []*index.Known // those that a block keeps out of it
	path    string
	rtt     time.Duration
	country string
}

// catchUp brings the book up to date.
func (a *Agent) catchUp(ctx context.Context) error {
	d, err := a.dealtWith(ctx)
	if err != nil {
		return err
	}
	b := &a.book
	b.mu.Lock()
	defer b.mu.Unlock()
	a.turnPages(d)
	if len(b.rigs) <= smallBook {
		for key, r := range b.rigs {
			a.review(key, r)
		}
		return nil
	}
	for key := range b.connected {
		if r := b.rigs[key]; r != nil {
			a.review(key, r)
		}
	}
	return nil
}

// keepBook follows the index while nobody asks, so that whoever asks next does not wait for all of it.
func (a *Agent) keepBook(ctx context.Context) {
	for rest(ctx, bookPause) {
		b := &a.book
		b.mu.Lock()
		a.turnPages(b.dealt)
		if len(b.rigs) > smallBook {
			paths := 0
			for key, r := range b.rigs {
				switch {
				case b.connected[key] || paths < pathChecks:
					paths++
					a.review(key, r)
				case a.blocksAny(r):
					a.enterRig(key)
				}
			}
		}
		b.mu.Unlock()
	}
}

// turnPages takes what the index says has changed, and what changed of leases and names. The book is locked.
func (a *Agent) turnPages(d dealt) {
	b := &a.book
	if b.table == nil {
		b.table, b.rigs, b.connected = market.NewTable(market.TableConfig{}), map[market.Key]*booked{}, map[market.Key]bool{}
	}
	given := a.names.all()
	about := map[market.Key]bool{}
	differ(about, b.dealt.leases, d.leases)
	differ(about, b.dealt.keeps, d.keeps)
	differ(about, b.given, given)
	b.dealt, b.given = d, given
	rigs, all := a.index.Touched()
	if all {
		for key := range b.rigs {
			rigs = append(rigs, key)
		}
	}
	for _, key := range rigs {
		a.enterRig(key)
	}
	for _, l := range a.openLeases() {
		r, _ := l.get()
		b.connected[r.Terms.Rig] = true
	}
	if len(about) > 0 {
		for key, r := range b.rigs {
			if about[key] || r.anyOf(about) {
				a.enterRig(key)
			}
		}
	}
	b.table.Expire(a.cfg.Clock().UnixMilli())
}

// differ notes the keys whose values differ.
func differ[T comparable](keys map[market.Key]bool, before, now map[market.Key]T) {
	for key, v := range before {
		if was, known := now[key]; !known || was != v {
			keys[key] = true
		}
	}
	for key := range now {
		if _, known := before[key]; !known {
			keys[key] = true
		}
	}
}

// anyOf reports whether one of a rig's offers has one of these owners.
func (r *booked) anyOf(owners map[market.Key]bool) bool {
	for _, k := range r.offers {
		if owners[k.Offer.Owner] {
			return true
		}
	}
	return false
}

// review sees to a rig of which the index says nothing new. The book is locked.
func (a *Agent) review(key market.Key, r *booked) {
	path, rtt := a.cfg.Net.PathTo(key)
	if path != r.path || rtt != r.rtt || a.countryOf(key, path) != r.country || a.blocksAny(r) {
		a.enterRig(key)
	}
	if path == "" && rtt == 0 {
		delete(a.book.connected, key)
	}
}

func (a *Agent) countryOf(rig market.Key, path string) string {
	if a.cfg.Country == nil || path == "" {
		return ""
	}
	return a.cfg.Country(rig)
}

// blocksAny reports whether the table has an offer that is blocked now, or lacks one that no longer is.
func (a *Agent) blocksAny(r *booked) bool {
	for _, k := range r.offers {
		if !a.admits(k) {
			return true
		}
	}
	for _, k := range r.left {
		if a.admits(k) {
			return true
		}
	}
	return false
}

func (a *Agent) admits(k *index.Known) bool {
	return a.cfg.Net.Admits(k.Offer.Rig) && a.cfg.Net.Admits(k.Offer.Owner)
}

// enterRig writes a rig's offers as the index has them now. The book is locked.
func (a *Agent) enterRig(key market.Key) {
	b := &a.book
	held := a.index.Held(key)
	before := b.rigs[key]
	if len(held) == 0 {
		if before != nil {
			b.table.DropRig(key)
			delete(b.rigs, key)
		}
		delete(b.connected, key)
		return
	}
	path, rtt := a.cfg.Net.PathTo(key)
	r := &booked{path: path, rtt: rtt, country: a.countryOf(key, path)}
	if path != "" || rtt > 0 {
		b.connected[key] = true
	}
	for _, k := range held {
		if !a.admits(k) {
			r.left = append(r.left, k)
		} else if s := a.standing(k, b.dealt); b.enter(before, k, *s) {
			r.offers = append(r.offers, k)
		} else {
			a.cfg.Log.Debug("there is no room for an offer", "peer", key.String())
		}
	}
	if before != nil {
		for _, k := range before.offers {
			if r.offer(k.Offer.ID) == nil {
				b.table.Drop(key, k.Offer.ID)
			}
		}
	}
	b.rigs[key] = r
}

// enter writes one offer. False says that there is no room.
func (b *book) enter(before *booked, k *index.Known, s market.Standing) bool {
	if before != nil {
		if was := before.offer(k.Offer.ID); was != nil && was.Statement == k.Statement && b.table.Note(k.Offer.Rig, k.Offer.ID, s) {
			return true
		}
	}
	return b.table.Put(k.Raw, &k.Offer, s)
}

// find returns an offer that the table has. The book is locked.
func (b *book) find(rig market.Key, id string) *index.Known {
	if r := b.rigs[rig]; r != nil {
		return r.offer(id)
	}
	return nil
}

func (r *booked) offer(id string) *index.Known {
	for _, k := range r.offers {
		if k.Offer.ID == id {
			return k
		}
	}
	return nil
}

// offersNow visits the offers that are valid now, in no order.
func (a *Agent) offersNow(visit func(*index.Known)) {
	b := &a.book
	b.mu.Lock()
	a.turnPages(b.dealt)
	b.mu.Unlock()
	b.mu.RLock()
	defer b.mu.RUnlock()
	now := a.cfg.Clock()
	for _, r := range b.rigs {
		for _, k := range r.offers {
			if k.Offer.CheckAge(now.UnixMilli()) == nil && a.admits(k) {
				visit(k)
			}
		}
	}
}
