package p2p

import (
	"container/list"
	"time"

	"golang.org/x/time/rate"
)

// maxPaced is how many rates of a kind a protocol remembers; the one not seen longest is forgotten first.
const maxPaced = 1024

// paces are token buckets of one size, one for each key.
type paces[K comparable] struct {
	rate    rate.Limit
	burst   int
	buckets map[K]*list.Element // values are *pace[K]
	recent  *list.List          // most recently seen first
}

type pace[K comparable] struct {
	of     K
	bucket *rate.Limiter
}

func newPaces[K comparable](perSecond float64, burst int) *paces[K] {
	return &paces[K]{rate: rate.Limit(perSecond), burst: burst, buckets: map[K]*list.Element{}, recent: list.New()}
}

// of returns a key's bucket.
func (p *paces[K]) of(k K) *rate.Limiter {
	e, known := p.buckets[k]
	if !known {
		e = p.recent.PushFront(&pace[K]{k, rate.NewLimiter(p.rate, p.burst)})
		p.buckets[k] = e
		if p.recent.Len() > maxPaced {
			delete(p.buckets, p.recent.Remove(p.recent.Back()).(*pace[K]).of)
		}
	}
	p.recent.MoveToFront(e)
	return e.Value.(*pace[K]).bucket
}

// takeAll takes a token from every bucket, or from none of them; then it says how long until each has one.
func takeAll(buckets []*rate.Limiter, now time.Time) (after time.Duration, ok bool) {
	for _, b := range buckets {
		if lack := 1 - b.TokensAt(now); lack > 0 {
			after = max(after, time.Duration(lack/float64(b.Limit())*float64(time.Second)))
		}
	}
	if after > 0 {
		return after, false
	}
	for _, b := range buckets {
		b.AllowN(now, 1)
	}
	return 0, true
}
