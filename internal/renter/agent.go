// Package renter decides what a renter's agent does: it keeps an index of offers, bids, signs leases, checks and
// countersigns receipts, keeps the connection to every rig that a lease runs on, and tells whoever asks.
//
// It knows no network, no database and no screen: Network and Store are what it needs of them. What leaves it is made of
// internal/view, its errors are market errors.
//
// Goroutines: Run owns them all. The operations of Agent may be called by any number of goroutines beside Run. An
// operation that changes something is handed to Run and goes on when its caller goes away. One goroutine, the link, owns
// each open lease: it alone answers the rig, so that no receipt is ever answered twice with other bytes. Whoever changes a lease's
// record holds the lease's lock from reading to storing: the link, and the payer that runs payment programs beside it. What is
// done inside a lease (uploads, checkpoints, what comes home) has goroutines and a part of the record of its own.
package renter

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"haggle/internal/index"
	"haggle/market"
)

// Stream is one stream of messages with a rig. Send may be called concurrently, Receive by one goroutine at a time; both
// end with their context. Receive returns io.EOF after the rig's clean close and the rig's refusal as its *market.Error.
type Stream interface {
	// Peer returns the key at the other end, as the connection proved it.
	Peer() market.Key
	Send(ctx context.Context, m market.Message) error
	Receive(ctx context.Context) (market.Message, error)
	Close() error
	// Raw turns the stream into bytes, once both sides have agreed on it; nothing is sent or received from then on.
	Raw() Conn
}

// Conn is a stream of bytes both ways. CloseWrite tells the other side that nothing more comes; Close ends both ways.
type Conn = interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Network is what an agent needs of the network. Its methods may be called concurrently and bound the size of what they
// return; the agent bounds their time.
type Network interface {
	index.Network
	// PathTo returns how a connected rig is reached (direct, punched, relayed or loopback) and its round trip; "" and 0 are unknown.
	PathTo(rig market.Key) (path string, rtt time.Duration)
	// OpenLease opens a stream about a lease, which the caller closes.
	OpenLease(ctx context.Context, rig market.Key) (Stream, error)
	// OpenTunnel opens a stream into a lease's job, which the caller closes. One for bulk does not hold up the others.
	OpenTunnel(ctx context.Context, rig market.Key, bulk bool) (Stream, error)
	// OpenDeputy opens a stream to hand leases to a deputy, which the caller closes.
	OpenDeputy(ctx context.Context, deputy market.Key) (Stream, error)
}

// Config is what an agent is made of. Key, Network, Net and Store are required.
type Config struct {
	Key     ed25519.PrivateKey
	Network string // the network's name, part of everything that is signed
	Net     Network
	Store   Store
	Clock   func() time.Time // with a monotonic reading; time.Now by default
	Random  io.Reader        // for nonces; the system's by default
	Log     *slog.Logger     // nil discards
	Refresh time.Duration    // between two questions to a known rig, 10 seconds by default
	Memory  index.Store      // what is remembered of rigs and offers; nil: nothing
	Names   NameBook         // nil: no names can be given
	// Country returns the country of the public address at which a rig itself is reached, as two capital letters; "" is unknown, and nil
	// knows none.
	Country func(rig market.Key) string
	// Measure measures the round trip to a rig, which Net.PathTo tells from then on; nil measures none.
	Measure func(ctx context.Context, rig market.Key) error

	Purse Purse // nil: this agent cannot pay, and leases are owed
	// Boot returns the reading of a clock that goes on while the machine sleeps, in milliseconds, and the id of the machine's boot,
	// after which it means nothing. By default Clock's monotonic reading is all there is.
	Boot func() (ms int64, boot market.Nonce)
	// Probe is the time between two questions into a running job whether it runs; 0 asks nothing.
	Probe time.Duration
	// Budgets are those of currencies for which the user has set none.
	Budgets []Budget

	// CheckpointDir is the local folder of checkpoints, which is made when it is needed. Without one no checkpoints are kept.
	CheckpointDir string
	// CollectDir is the local folder into which what leases in care have to collect goes, each lease's into one of its own. Without one
	// a deputy collects nothing.
	CollectDir string
	// IdentityFile holds the key that checkpoints are encrypted to. It is made with mode 0600 when it is needed.
	IdentityFile string
	// InspectImage returns the digest of the one image in a local OCI archive, and the archive's size in bytes. Without it no
	// images are brought.
	InspectImage func(path string) (digest string, size int64, err error)
}

// DefaultRefresh is the default of Config.Refresh.
const DefaultRefresh = index.DefaultRefresh

// errStopped says that Run has returned.
var errStopped = errors.New("the agent has stopped")

// Agent is a renter's agent. New makes it, Run keeps it going.
type Agent struct {
	cfg      Config
	self     market.Key
	index    *index.Index
	hub      *hub
	work     chan func(context.Context) // operations for Run to own
	stopped  chan struct{}              // closed when Run ends its work
	bidding  atomic.Int64               // operations that may not have a record yet
	instance market.Nonce               // of the store; set before the first operation runs
	keys     sync.Mutex                 // held while the key of checkpoints is read or made
	deputies deputies
	dealings dealings
	book     book
	names    names
	amending sync.Mutex // held while the inside of a lease, or a name, is changed
	choosing sync.Mutex // held while the settings are changed
	spending sync.Mutex // held from weighing the budgets of all leases to storing what is spent; after a lease's lock, if both
	canPay   methodList
	born     time.Time // of this life, for the default of Config.Boot

	open struct {
		sync.Mutex
		leases map[market.Hash]*lease // by bid: those that still have something to do
	}
}

// New checks a configuration and makes an agent of it. It starts nothing.
func New(cfg Config) (*Agent, error) {
	switch {
	case len(cfg.Key) != ed25519.PrivateKeySize:
		return nil, errors.New("new agent: no key")
	case cfg.Net == nil || cfg.Store == nil:
		return nil, errors.New("new agent: no network or no store")
	case cfg.Refresh < 0 || cfg.Probe < 0:
		return nil, errors.New("new agent: a negative time")
	}
	if err := market.CheckNetwork(cfg.Network); err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Refresh == 0 {
		cfg.Refresh = DefaultRefresh
	}
	a := &Agent{
		cfg:     cfg,
		self:    market.KeyOf(cfg.Key),
		hub:     newHub(),
		work:    make(chan func(context.Context)),
		stopped: make(chan struct{}),
	}
	a.born = cfg.Clock()
	a.open.leases = map[market.Hash]*lease{}
	var err error
	a.index, err = index.New(index.Config{
		Network: cfg.Network, Self: a.self, Net: cfg.Net, Store: cfg.Memory, Clock: cfg.Clock, Log: cfg.Log, Refresh: cfg.Refresh,
	})
	if err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	return a, nil
}

// Run takes up the leases of the agent's last life and then works until ctx ends. It returns when every goroutine is gone;
// jobs go on. It is called once.
func (a *Agent) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	defer close(a.stopped)
	var err error
	if a.instance, err = a.cfg.Store.Instance(ctx); err != nil {
		return fmt.Errorf("run agent: %w", err)
	}
	records, err := a.cfg.Store.Records(ctx)
	if err != nil {
		return fmt.Errorf("run agent: %w", err)
	}
	a.loadNames(ctx)
	a.sweepOpened()
	for _, r := range records {
		a.resume(ctx, &group, r)
	}
	group.Go(func() { _ = a.index.Run(ctx) }) // it ends with ctx and has no other end
	group.Go(func() { a.watchBudgets(ctx) })
	group.Go(func() { a.keepBook(ctx) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-a.work:
			group.Go(func() { f(ctx) })
		}
	}
}

// resume takes up a lease of the last life: an unanswered bid is sent again as it was, an open lease gets its link.
func (a *Agent) resume(ctx context.Context, group *sync.WaitGroup, r Record) {
	l := newLease(a.woken(r))
	switch {
	case r.over():
	case r.Lease.IsZero():
		a.enter(l)
		group.Go(func() { a.resumeBid(ctx, l) })
	default:
		a.enter(l)
		group.Go(func() { a.tend(ctx, l, nil) })
	}
}

// tend keeps an open lease's link and does what is to be done inside, until nothing is left to do or ctx ends. The stream, if there
// is one, is one on which this side's signature has just been sent.
func (a *Agent) tend(ctx context.Context, l *lease, s Stream) {
	for ctx.Err() == nil {
		a.tendOnce(ctx, l, s)
		s = nil
		l.writing.Lock() // whoever wants to pay for it now finds it gone, and takes it up again
		r, _ := l.get()
		again := r.State.busy() && !r.State.Released && ctx.Err() == nil
		if !again && ctx.Err() == nil {
			a.leave(l)
		}
		l.writing.Unlock()
		if !again {
			break
		}
	}
	if ctx.Err() != nil {
		return
	}
	r, _ := l.get()
	a.cfg.Log.Info("lease is over", "lease", r.Lease.Short(), "peer", r.Terms.Rig.String())
	a.awaitOutcome(ctx, r)
}

// tendOnce does all that is to be done for a lease now.
func (a *Agent) tendOnce(ctx context.Context, l *lease, s Stream) {
	life, drop := context.WithCancel(ctx)
	defer drop()
	done, idle := make(chan struct{}), make(chan struct{})
	var group, side sync.WaitGroup
	side.Go(func() { a.deputize(ctx, l, done, drop) })
	group.Go(func() { a.payer(life, l) })
	group.Go(func() { a.prober(life, l) })
	group.Go(func() { a.errands(life, l) })
	side.Go(func() {
		group.Wait()
		close(idle)
	})
	for life.Err() == nil && !isClosed(idle) {
		a.keepFrom(life, l, s)
		s = nil
		// Something may come up, such as a wish to pay, before the others have seen that the lease is over.
		l.until(life, idle, func(r Record) bool { return !r.State.over() })
	}
	<-idle
	close(done)
	side.Wait()
}

// spawn hands work to Run. The work's context is Run's: it outlives ctx, which bounds the handing over only.
func (a *Agent) spawn(ctx context.Context, f func(context.Context)) error {
	select {
	case a.work <- f:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("hand over to the agent: %w", ctx.Err())
	case <-a.stopped:
		return errStopped
	}
}

// OpenLeases returns the number of bids, leases and debts that still need this agent. A lease whose rig has vanished is
// kept up, but is not a reason to stay.
func (a *Agent) OpenLeases() int {
	n := 0
	now := a.cfg.Clock().UnixMilli()
	for _, l := range a.openLeases() {
		if r, _ := l.get(); !r.over() && !r.vanished(now) {
			n++
		}
	}
	return max(n, int(a.bidding.Load()))
}

func (a *Agent) openLeases() []*lease {
	a.open.Lock()
	defer a.open.Unlock()
	all := make([]*lease, 0, len(a.open.leases))
	for _, l := range a.open.leases {
		all = append(all, l)
	}
	return all
}

func (a *Agent) enter(l *lease) {
	a.open.Lock()
	defer a.open.Unlock()
	a.open.leases[l.bid] = l
}

func (a *Agent) leave(l *lease) {
	a.open.Lock()
	defer a.open.Unlock()
	delete(a.open.leases, l.bid)
}

// opened returns the open lease of a bid, if there is one.
func (a *Agent) opened(bid market.Hash) *lease {
	a.open.Lock()
	defer a.open.Unlock()
	return a.open.leases[bid]
}

// changed tells those who watch.
func (a *Agent) changed(l *lease) {
	r, connected := l.get()
	a.hub.publish(r.Bid, a.leaseView(r, connected))
}

// commit changes a lease's record on disk first and in memory after. Any goroutine may call it that does not hold l.writing.
func (a *Agent) commit(ctx context.Context, l *lease, change func(*Record)) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	return a.commitLocked(ctx, l, change)
}

// commitLocked is commit for a caller that holds l.writing.
func (a *Agent) commitLocked(ctx context.Context, l *lease, change func(*Record)) error {
	r, _ := l.get()
	before := r
	change(&r)
	a.booked(before, &r)
	if err := a.cfg.Store.Save(ctx, r); err != nil {
		return fmt.Errorf("save bid %s: %w", r.Bid, err)
	}
	a.show(l, r)
	return nil
}

// amend changes the inside of a lease, on disk first and in memory after. Any goroutine may call it.
func (a *Agent) amend(ctx context.Context, r Record, change func(*Inside) error) (Record, error) {
	a.amending.Lock()
	defer a.amending.Unlock()
	return a.amendLocked(ctx, r, change)
}

func (a *Agent) amendLocked(ctx context.Context, r Record, change func(*Inside) error) (Record, error) {
	l := a.opened(r.Bid)
	if l != nil {
		r, _ = l.get()
	} else if kept, err := a.cfg.Store.Record(ctx, r.Lease); err == nil {
		r = kept
	}
	in := r.Inside
	in.Collects, in.Checkpoints = slices.Clone(in.Collects), slices.Clone(in.Checkpoints) // others read the old ones
	if err := change(&in); err != nil {
		return r, err
	}
	if err := a.cfg.Store.SaveInside(ctx, r.Bid, in); err != nil {
		return r, fmt.Errorf("save the inside of bid %s: %w", r.Bid, err)
	}
	r.Inside = in
	if l != nil {
		l.change(func() { l.record.Inside = in })
		a.changed(l)
	}
	return r, nil
}

// show changes a lease's record in memory only.
func (a *Agent) show(l *lease, r Record) {
	l.set(r)
	a.changed(l)
}
