// Package rigcore is a rig without its engine: store, network, local API and the mind that decides, for the assemblies that
// bring an engine and cards. It reads no flags, handles no signals and never exits.
package rigcore

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"haggle/internal/api"
	"haggle/internal/assemble"
	"haggle/internal/config"
	"haggle/internal/host"
	"haggle/internal/index"
	"haggle/internal/store"
	"haggle/internal/view"
	"haggle/market"
	"haggle/nvml"
	"haggle/p2p"
	"haggle/runtime"
)

// Engine runs the jobs of a rig. Close ends nothing but this process's hold of it.
type Engine interface {
	runtime.Runtime
	// Run looks after the engine until ctx ends.
	Run(ctx context.Context) error
	// Ready returns when the engine answers.
	Ready(ctx context.Context) error
}

// Config is what a rig is made from.
type Config struct {
	Rig     config.Rig
	Version string
	Log     *slog.Logger // nil discards
	// Warnings are sentences for the owner that hold for as long as the rig runs.
	Warnings []string
	// Cards and Engine open what the rig works with, once nobody else can hold the rig's files. The rig closes them.
	Cards  func(rig market.Key) (nvml.Driver, error)
	Engine func(log *slog.Logger) (Engine, error)
}

// Rig is a whole rig. Make one with New, then Run it once.
type Rig struct {
	cfg     Config
	log     *slog.Logger
	begun   time.Time
	key     ed25519.PrivateKey
	store   *store.Rig
	cards   nvml.Driver
	engine  Engine
	host    *host.Daemon
	node    *p2p.Node
	shelf   *index.Index
	visible atomic.Pointer[view.Visible] // what strangers showed of the rig last; nil: not asked yet
	owners  atomic.Pointer[index.Index]  // the shelf, for those who ask before New has returned
	server  *api.Server
	stop    chan struct{} // closed when the owner asks for the end
	end     sync.Once

	mu        sync.Mutex
	unoffered map[string]string // images that are not offered, and why
}

// New opens what the rig keeps and makes its parts. It listens on the network and on the local socket, and answers
// nothing before Run. The caller must Run what it got; on an error everything is closed again.
func New(ctx context.Context, cfg Config) (_ *Rig, err error) {
	r := &Rig{cfg: cfg, log: cfg.Log, begun: time.Now(), stop: make(chan struct{}), unoffered: map[string]string{}}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	paths := cfg.Rig.Paths
	if err := paths.Make(); err != nil {
		return nil, err
	}
	if r.key, err = p2p.LoadOrCreateKey(paths.Key); err != nil {
		return nil, err
	}
	if r.store, err = store.OpenRig(ctx, paths.Database); err != nil {
		return nil, err
	}
	if r.cards, err = cfg.Cards(market.KeyOf(r.key)); err != nil {
		return nil, err
	}
	if r.engine, err = cfg.Engine(r.log); err != nil {
		return nil, err
	}
	if r.host, err = r.newHost(ctx); err != nil {
		return nil, err
	}
	if r.node, err = r.newNode(); err != nil {
		return nil, err
	}
	if r.shelf, err = r.newShelf(); err != nil {
		return nil, err
	}
	r.owners.Store(r.shelf)
	if err = assemble.RestoreBlocks(ctx, r.node, r.store, r.log); err != nil {
		return nil, err
	}
	r.server = api.NewRigServer(api.Config{Socket: paths.Socket, Version: cfg.Version, Group: ownersGroup(paths), Log: r.log}, owner{r})
	return r, r.server.Listen()
}

// Run is the rig's life. It returns nil when ctx ends or the owner shut the rig down, after everything of this process is
// closed; jobs, their logs and the engine go on.
func (r *Rig) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	node := r.node
	for name, run := range map[string]func(context.Context) error{
		"engine": r.engine.Run, "host": r.host.Run, "network": r.node.Run, "api": r.server.Run, "images": r.importImages,
		"copies": r.copies().Run,
		"peers": func(ctx context.Context) error {
			return assemble.KeepAcquainted(ctx, node, r.cfg.Rig.Sources, r.cfg.Rig.Paths.Database)
		}, "shelf": r.shelf.Run, "visible": r.keepVisible,
	} {
		group.Go(func() error {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	group.Go(func() error {
		select {
		case <-r.stop:
			cancel()
		case <-ctx.Done():
		}
		return nil
	})
	r.log.Info("rig is up", "name", r.cfg.Rig.Name, "network", r.cfg.Rig.Network, "key", market.KeyOf(r.key).String())
	err := group.Wait()
	r.node = nil // it closed itself
	return errors.Join(err, r.close())
}

// close lets go of what New opened, in reverse.
func (r *Rig) close() error {
	var errs []error
	if r.node != nil {
		errs = append(errs, r.node.Close())
	}
	if r.engine != nil {
		errs = append(errs, r.engine.Close())
	}
	if r.cards != nil {
		errs = append(errs, r.cards.Close())
	}
	if r.store != nil {
		errs = append(errs, r.store.Close())
	}
	return errors.Join(errs...)
}

func (r *Rig) newHost(ctx context.Context) (*host.Daemon, error) {
	prices, err := prices(r.cfg.Rig)
	if err != nil {
		return nil, err
	}
	machine, err := readMachine(r.cfg.Rig)
	if err != nil {
		return nil, err
	}
	if machine.SlotUp, machine.SlotDown, err = r.bandwidth(ctx); err != nil {
		r.log.Warn("no bandwidth is promised with a card", "err", err)
	}
	egress := runtime.NetworkNone
	if r.cfg.Rig.JobNetwork() == config.NetworkInternet {
		egress = runtime.NetworkInternet
	}
	credit, err := credit(r.cfg.Rig)
	if err != nil {
		return nil, err
	}
	claims, err := claims(r.cfg.Rig)
	if err != nil {
		return nil, err
	}
	till, err := r.till()
	if err != nil {
		return nil, err
	}
	jobs := r.cfg.Rig.Jobs
	power, _ := r.cards.(nvml.PowerLimiter) // nil of a driver that cannot
	salt := hmac.New(sha256.New, r.key.Seed())
	salt.Write([]byte("haggle/card-salt/1"))
	return host.New(host.Config{
		Key: r.key, Network: r.cfg.Rig.Network, Name: r.cfg.Rig.Name, Store: r.store, Cards: r.cards, Runtime: r.engine,
		Machine: machine, Salt: salt.Sum(nil), Prices: prices, Rules: rules(r.cfg.Rig.Rules),
		Net: market.NetFacts{Country: r.cfg.Rig.Country}, Reach: r.reached, Claims: claims, Egress: egress, Credit: credit, Content: jobs.Content,
		Images:       host.ImageRules{Allow: jobs.AllowImages, Deny: jobs.DenyImages},
		PowerLimitMW: 1000 * jobs.Power, Power: power, Clock: clock(r.begun), Log: r.log,
		Bring: jobs.Images == config.ImagesAny, Spool: filepath.Join(filepath.Dir(r.cfg.Rig.Paths.Database), "brought"),
		SpoolSpace:    func() (free, total int64, err error) { return space(r.cfg.Rig.Paths.Database) },
		OffersChanged: func() { r.offered() },
		Till:          till, Bidders: r.cfg.Rig.Rules.Bidders, Boot: assemble.Boot(), DiskFull: r.store.Full,
	})
}

// clock reads both clocks: milliseconds since begun on the monotonic one, and the wall clock.
func clock(begun time.Time) func() market.Instant {
	return func() market.Instant {
		now := time.Now()
		return market.Instant{Mono: now.Sub(begun).Milliseconds() + 1, Wall: now.UnixMilli()}
	}
}

func (r *Rig) newNode() (*p2p.Node, error) {
	reach, err := assemble.Reach(r.cfg.Rig.Reach)
	if err != nil {
		return nil, err
	}
	access, err := r.access()
	if err != nil {
		return nil, err
	}
	members, err := assemble.Members(r.cfg.Rig.Sources, r.cfg.Rig.Network, r.cfg.Rig.Paths.Database)
	if err != nil {
		return nil, err
	}
	node, err := p2p.New(p2p.Config{
		Reach: reach, Access: access, Members: members,
		Sources: assemble.Sources(r.cfg.Rig.Sources, r.cfg.Rig.Network, r.cfg.Rig.Paths.Database),
		Key:     r.key, Network: r.cfg.Rig.Network, Mode: p2p.ModeAuto, Listen: r.cfg.Rig.Listen, Bootstrap: r.cfg.Rig.Bootstrap,
		Agent: "haggled/" + r.cfg.Version, Log: r.log,
		Handlers: map[p2p.Protocol]p2p.Handler{
			p2p.OffersProtocol: p2p.OffersHandler(r.host.Offers),
			p2p.SnapshotProtocol: p2p.SnapshotHandler(func(asker market.Key, q market.SnapshotRequest) ([][]byte, market.SnapshotEnd) {
				return r.shelf.Serve(asker, q) // nothing is served before the node runs, and then the shelf is there
			}),
			p2p.LeaseProtocol:  func(ctx context.Context, s *p2p.Stream) error { return r.host.ServeLease(ctx, s) },
			p2p.TunnelProtocol: func(ctx context.Context, s *p2p.Stream) error { return r.host.ServeTunnel(ctx, s) },
		},
	})
	if err == nil {
		node.OnReach(r.host.Refresh)
	}
	return node, err
}

// reached tells offers how the rig is reached.
func (r *Rig) reached() string {
	if r.node == nil {
		return ""
	}
	return assemble.Offered(r.node)
}
