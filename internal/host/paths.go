package host

import (
	"context"
	"strconv"
	"sync"

	"golang.org/x/time/rate"

	"haggle/market"
)

// Bounds of what one lease's renter may open into it.
const (
	maxPaths  = 96 // open at once
	pathRate  = 32 // new ones a second
	pathBurst = 96
)

// paths are the tunnels that a renter has open into its job and its image. The zero value is not usable: see newPaths.
type paths struct {
	limit *rate.Limiter

	mu   sync.Mutex
	next int
	open map[int]context.CancelFunc
	shut bool
}

func newPaths() *paths {
	return &paths{limit: rate.NewLimiter(pathRate, pathBurst), open: map[int]context.CancelFunc{}}
}

// enter counts a new path. The context ends when the lease wants its paths closed; leave must be called in the end. The error
// has code CodeTooManyTunnels, or is errClosed once the lease is gone.
func (p *paths) enter(ctx context.Context) (on context.Context, leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.shut:
		return nil, nil, errClosed
	case len(p.open) >= maxPaths || !p.limit.Allow():
		return nil, nil, market.NewError(market.CodeTooManyTunnels, "most", strconv.Itoa(maxPaths))
	}
	on, cancel := context.WithCancel(ctx)
	id := p.next
	p.next++
	p.open[id] = cancel
	return on, func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, id)
	}, nil
}

// cut closes all paths that are open now.
func (p *paths) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cancel := range p.open {
		cancel()
	}
}

// close closes all paths and lets no more in.
func (p *paths) close() {
	p.mu.Lock()
	p.shut = true
	p.mu.Unlock()
	p.cut()
}
