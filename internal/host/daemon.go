package host

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"haggle/internal/pay"
	"haggle/market"
	"haggle/runtime"
)

const (
	maxTick   = time.Second // market.MaxTickMs bills two of them at most
	maxSkewed = 1024        // peers that are remembered for a wrong clock
)

// Daemon is a rig's mind. New makes one, Run brings it to life; every other method may be called at any time by several
// goroutines, waits until the rig is ready, and returns its context's error if that ends first. After the end of Run they
// return errors with code CodeEngineDown.
type Daemon struct {
	cfg      Config
	self     market.Key
	log      *slog.Logger
	instance market.Nonce // of the store; written before ready is closed
	rack     rack
	engine   engine
	spool    spool

	ready   chan struct{} // closed once the stored leases are known
	stopped chan struct{} // closed when Run begins to end
	births  chan *lease   // leases whose goroutine Run starts
	renew   chan struct{} // the offer is out of date
	untidy  chan struct{} // images that renters brought may have to go
	tills   chan struct{} // one for each payment program that runs

	grants   sync.Mutex
	pledging sync.Mutex
	purse    sync.Mutex
	chaining sync.Mutex
	signing  sync.Mutex

	mu      sync.Mutex
	leases  map[market.LeaseID]*lease
	jobs    map[string]*lease // the same by their first id in the engine
	chosen  Settings
	offer   []byte
	buckets []string
	skewed  map[market.Key]time.Duration // peers whose clocks are ahead of this one, or behind
	methods []pay.Method                 // payment programs
	past    map[account]money            // leases that are over
	pledges map[market.Hash]market.Micro // what leases that are over still hold of guarantees
	chain   market.ChainEnd              // of accepted outcomes
}

// New checks a configuration. It starts nothing.
func New(cfg Config) (*Daemon, error) {
	switch {
	case len(cfg.Key) != ed25519.PrivateKeySize:
		return nil, errors.New("rig needs an ed25519 key")
	case cfg.Store == nil || cfg.Cards == nil || cfg.Runtime == nil || cfg.Clock == nil:
		return nil, errors.New("rig needs a store, cards, an engine and a clock")
	case cfg.Tick < 0 || cfg.Tick > maxTick:
		return nil, fmt.Errorf("rig cannot tick every %s: more than 0 and at most %s", cfg.Tick, maxTick)
	}
	if cfg.OfferID == "" {
		cfg.OfferID = "main"
	}
	if cfg.Rules == (market.Rules{}) {
		cfg.Rules = DefaultRules()
	}
	cfg.Rules = cfg.rules()
	if cfg.Egress == runtime.NetworkNone {
		cfg.Machine.SlotUp, cfg.Machine.SlotDown = 0, 0 // nothing is promised of a network that jobs do not have
	}
	if cfg.Tick == 0 {
		cfg.Tick = maxTick
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	d := &Daemon{
		cfg: cfg, self: market.KeyOf(cfg.Key), log: cfg.Log,
		ready: make(chan struct{}), stopped: make(chan struct{}), births: make(chan *lease), renew: make(chan struct{}, 1),
		untidy: make(chan struct{}, 1),
		leases: map[market.LeaseID]*lease{}, jobs: map[string]*lease{}, skewed: map[market.Key]time.Duration{},
		tills: make(chan struct{}, tillCalls), past: map[account]money{}, pledges: map[market.Hash]market.Micro{},
	}
	d.rack = rack{driver: cfg.Cards, salt: cfg.Salt, tick: cfg.Tick, power: cfg.PowerLimitMW, log: cfg.Log, fault: d.faulty}
	d.engine = engine{
		rt: cfg.Runtime, log: cfg.Log, allowed: cfg.Images.check,
		brought: map[string]int64{}, idle: map[string]int64{}, leaving: map[string]chan struct{}{}, shown: map[proof]struct{}{},
	}
	d.spool = spool{dir: cfg.Spool, space: cfg.SpoolSpace}
	return d, nil
}

// Run is the rig's life: it takes up the stored leases, adopts their jobs, and serves until ctx ends. It returns when all
// its goroutines are gone; jobs go on, and their time is not billed until another Run has found them. It can be called
// once.
func (d *Daemon) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(d.stopped)
	old, err := d.recall(ctx)
	if err != nil {
		return err
	}
	if err := d.rack.load(ctx); err != nil {
		d.log.Warn("no cards", slog.Any("err", err))
	}
	for _, l := range old {
		d.enter(l)
		if l.wants.Archive > 0 && (l.state.Ready || l.state.Attempt > 0) {
			d.engine.note(l.wants.Image, l.state.Terms.Renter)
		}
		wg.Go(func() { l.run(ctx) })
	}
	d.sweepSpool()
	close(d.ready)
	var sweep sync.Once
	wg.Go(func() {
		d.engine.run(ctx, func(ctx context.Context) {
			d.changed()
			sweep.Do(func() { wg.Go(func() { d.sweep(ctx) }) })
		}, d.changed, d.hint, d.full)
	})
	wg.Go(func() { d.rack.run(ctx, d.changed) })
	wg.Go(func() { d.renewOffers(ctx) })
	wg.Go(func() { d.keepTidy(ctx) })
	if d.cfg.Till != nil {
		wg.Go(func() { d.keepMethods(ctx) })
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case l := <-d.births:
			wg.Go(func() { l.run(ctx) })
		}
	}
}

// sweep removes from the engine what no lease keeps.
func (d *Daemon) sweep(ctx context.Context) {
	var strays []string
	report, err := d.cfg.Runtime.Sweep(ctx, func(job string) bool {
		l := d.jobLease(job)
		if l != nil && attemptOf(job) > l.snapshot().Attempt {
			strays = append(strays, job)
		}
		return l != nil
	})
	for _, job := range strays { // they began after the copy from which the store was put back, and run for nobody
		if err := d.cfg.Runtime.Kill(ctx, job); err != nil && ctx.Err() == nil {
			d.log.Warn("end a job that no lease knows of", slog.String("job", job), slog.Any("err", err))
		}
	}
	if err != nil && ctx.Err() == nil {
		d.log.Warn("sweep", slog.Any("err", err))
	}
	if n := len(report.Jobs) + len(report.Snapshots) + len(report.Logs); n > 0 {
		d.log.Info("swept", slog.Int("jobs", len(report.Jobs)), slog.Int("snapshots", len(report.Snapshots)), slog.Int("logs", len(report.Logs)))
	}
}

// sweepSpool deletes the archives that no lease waits for.
func (d *Daemon) sweepSpool() {
	waited := map[string]bool{}
	for _, l := range d.all() {
		waited[filepath.Base(d.spool.path(l.id))] = archiveDue(l.snapshot(), l.wants)
	}
	if err := d.spool.sweep(func(name string) bool { return waited[name] }); err != nil {
		d.log.Warn("sweep archives", slog.Any("err", err))
	}
}

// await waits until the rig is ready.
func (d *Daemon) await(ctx context.Context) error {
	select {
	case <-d.ready:
	case <-ctx.Done():
		return ctx.Err()
	case <-d.stopped:
	}
	select {
	case <-d.stopped:
		return market.NewError(market.CodeEngineDown)
	default:
		return nil
	}
}

// adopt gives a new lease to Run. A lease that comes too late is left to the next Run.
func (d *Daemon) adopt(l *lease) {
	d.enter(l)
	d.changed()
	select {
	case d.births <- l:
	case <-d.stopped:
		d.forget(l)
	}
}

func (d *Daemon) enter(l *lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leases[l.id], d.jobs[l.base] = l, l
}

// forget takes a lease off the lists when its goroutine ends.
func (d *Daemon) forget(l *lease) {
	d.mu.Lock()
	if seen := l.seen.Load(); d.over(seen.lease) {
		d.retire(seen.lease, seen.money)
	}
	delete(d.leases, l.id)
	delete(d.jobs, l.base)
	d.mu.Unlock()
	close(l.done)
}

func (d *Daemon) lease(id market.LeaseID) *lease {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.leases[id]
}

// jobLease returns the lease of a job in the engine, whichever attempt it is; nil for a stranger's.
func (d *Daemon) jobLease(job string) *lease {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.jobs[job[:min(len(job), baseLength)]]
}

// hint passes on that a job has ended.
func (d *Daemon) hint(job string) {
	if l := d.jobLease(job); l != nil {
		l.hint()
	}
}

// full passes on that a job's disk is full.
func (d *Daemon) full(job string) {
	if l := d.jobLease(job); l != nil {
		l.full.Store(true)
		l.hint()
	}
}

// all returns the leases in no order.
func (d *Daemon) all() []*lease {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*lease, 0, len(d.leases))
	for _, l := range d.leases {
		list = append(list, l)
	}
	return list
}

func (d *Daemon) settings() Settings {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chosen
}
