package p2p

import (
	"net/netip"

	"haggle/market"
)

// shares divides the streams that a protocol may have open among those who call. All of its methods are called under one lock.
//
// Callers who are known, because they hold a lease, take any stream that is free. Strangers leave an eighth to them, and while much is taken a
// network or an owner gets no more than a part of what is left: the dynamic thresholds by which switches share memory among ports
// (Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998). Whoever finds nothing left takes a stream from the group that
// has most, where that group would still have no fewer than the caller: so of many groups that insist none has two more than another.
type shares struct {
	limit  Limit
	open   int
	peers  map[market.Key]int
	owners map[market.Key]int // of strangers
	nets   map[netip.Prefix]int
	groups map[netip.Prefix]int
	seats  []*seat // of strangers, the oldest first
}

// seat is one open stream.
type seat struct {
	caller
	evict func()
	gone  bool // its place was given to another
}

// reserved is the part of the streams that strangers leave free.
const reserved = 8

func newShares(limit Limit) *shares {
	return &shares{
		limit: limit, peers: map[market.Key]int{}, owners: map[market.Key]int{}, nets: map[netip.Prefix]int{}, groups: map[netip.Prefix]int{},
	}
}

// take gives a caller a seat, or nil.
func (s *shares) take(c caller, evict func()) *seat {
	if s.peers[c.peer] >= s.limit.PerPeer {
		return nil
	}
	left := s.limit.Streams - s.open
	if !c.known {
		left -= s.limit.Streams / reserved
		if s.fair(c, left) {
			return s.sit(c, evict)
		}
		if left > 0 || !s.makeRoom(c) {
			return nil
		}
	} else if left <= 0 && !s.makeRoom(c) {
		return nil
	}
	return s.sit(c, evict)
}

// fair reports whether a stranger's groups have less than their parts of what is left: the widest network as much again, a narrower
// one and an owner of several programs half of it. Whoever has nothing yet is served while anything is left.
func (s *shares) fair(c caller, left int) bool {
	if left <= 0 {
		return false
	}
	for i, net := range c.nets {
		most := left
		if i < len(c.nets)-1 {
			most = left / 2
		}
		if n := s.nets[net]; n > 0 && n >= most {
			return false
		}
	}
	n := s.owners[c.owner]
	return c.owner == c.peer || n == 0 || n < left/2
}

// makeRoom ends a stream of the group that has most. A known caller may take from any group, a stranger only from one that has two more
// than its own, or within its own from an owner who has two more than its own.
func (s *shares) makeRoom(c caller) bool {
	biggest, most := netip.Prefix{}, 0
	for g, n := range s.groups {
		if n > most {
			biggest, most = g, n
		}
	}
	var victim *seat
	switch mine := c.group(); {
	case c.known || most >= s.groups[mine]+2:
		victim = s.newest(biggest, 1)
	default:
		victim = s.newest(mine, s.owners[c.owner]+2)
	}
	if victim == nil {
		return false
	}
	victim.evict()
	s.leave(victim)
	return true
}

// newest returns the newest stream of the owner who has most in a group, if those are at least so many.
func (s *shares) newest(of netip.Prefix, least int) *seat {
	var last *seat
	theirs := map[market.Key]int{}
	for _, x := range s.seats {
		if x.group() != of {
			continue
		}
		theirs[x.owner]++
		if last == nil || theirs[x.owner] >= theirs[last.owner] {
			last = x
		}
	}
	if last == nil || theirs[last.owner] < least {
		return nil
	}
	return last
}

func (s *shares) sit(c caller, evict func()) *seat {
	x := &seat{caller: c, evict: evict}
	s.open++
	s.peers[c.peer]++
	if !c.known {
		s.count(c, 1)
		s.seats = append(s.seats, x)
	}
	return x
}

// leave gives a seat back. A second time does nothing.
func (s *shares) leave(x *seat) {
	if x.gone {
		return
	}
	x.gone = true
	s.open--
	add(s.peers, x.peer, -1)
	if x.known {
		return
	}
	s.count(x.caller, -1)
	for i, other := range s.seats {
		if other == x {
			s.seats = append(s.seats[:i], s.seats[i+1:]...)
			return
		}
	}
}

// know makes a seat's caller a known one: it has come to a lease on this stream, and counts for no stranger's share any more.
func (s *shares) know(x *seat) {
	if x.gone || x.known {
		return
	}
	s.leave(x)
	x.gone, x.known = false, true
	s.open++
	s.peers[x.peer]++
}

func (s *shares) count(c caller, n int) {
	add(s.owners, c.owner, n)
	add(s.groups, c.group(), n)
	for _, net := range c.nets {
		add(s.nets, net, n)
	}
}

// add changes a count and forgets one that is zero.
func add[K comparable](counts map[K]int, k K, n int) {
	if counts[k] += n; counts[k] == 0 {
		delete(counts, k)
	}
}
