// Package agent plugs the parts of a renter's agent together: store, network, local API. It reads no flags, handles no
// signals and never exits.
package agent

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"haggle/internal/api"
	"haggle/internal/assemble"
	"haggle/internal/config"
	"haggle/internal/renter"
	"haggle/internal/store"
	"haggle/internal/view"
	"haggle/market"
	"haggle/p2p"
	"haggle/runtime/archive"
)

// Config is what an agent is made from.
type Config struct {
	Agent   config.Agent
	Version string
	Log     *slog.Logger // nil discards
}

// Agent is a whole agent. Make one with New, then Run it once.
type Agent struct {
	*renter.Agent
	renter atomic.Pointer[renter.Agent] // the same, for those who ask before New has returned
	cfg    Config
	log    *slog.Logger
	begun  time.Time
	store  *store.Agent
	node   *p2p.Node
	server *api.Server
	stop   chan struct{} // closed when the user asks for the end
	end    sync.Once
}

var _ api.Agent = (*Agent)(nil)

// New opens what the agent keeps and makes its parts. It listens on the network and on the local socket, and answers
// nothing before Run. The caller must Run what it got; on an error everything is closed again.
func New(ctx context.Context, cfg Config) (_ *Agent, err error) {
	a := &Agent{cfg: cfg, log: cfg.Log, begun: time.Now(), stop: make(chan struct{})}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	paths := cfg.Agent.Paths
	if err := paths.Make(); err != nil {
		return nil, err
	}
	key, err := p2p.LoadOrCreateKey(paths.Key)
	if err != nil {
		return nil, err
	}
	if a.store, err = store.OpenAgent(ctx, paths.Database); err != nil {
		return nil, err
	}
	if err := a.join(key); err != nil {
		return nil, err
	}
	a.renter.Store(a.Agent)
	if err := assemble.RestoreBlocks(ctx, a.node, a.store, a.log); err != nil {
		return nil, err
	}
	a.server = api.NewAgentServer(api.Config{Socket: paths.Socket, Version: cfg.Version, Log: a.log}, a)
	return a, a.server.Listen()
}

func (a *Agent) join(key ed25519.PrivateKey) (err error) {
	c := a.cfg.Agent
	reach, err := assemble.Reach(c.Reach)
	if err != nil {
		return err
	}
	access, err := a.access()
	if err != nil {
		return err
	}
	members, err := assemble.Members(c.Sources, c.Network, c.Paths.Database)
	if err != nil {
		return err
	}
	a.node, err = p2p.New(p2p.Config{
		Reach: reach, Access: access, Members: members,
		Sources: assemble.Sources(c.Sources, c.Network, c.Paths.Database),
		Key:     key, Network: c.Network, Mode: p2p.ModeClient, Listen: c.Listen, Bootstrap: c.Bootstrap,
		Agent: "haggle/" + a.cfg.Version, Log: a.log,
		// Nothing is served before the node runs, and then the agent is there.
		Handlers: map[p2p.Protocol]p2p.Handler{p2p.DeputyProtocol: func(ctx context.Context, s *p2p.Stream) error { return a.ServeDeputy(ctx, s) }},
	})
	if err != nil {
		return err
	}
	purse, err := a.purse()
	if err != nil {
		return err
	}
	caps, err := budgets(c)
	if err != nil {
		return err
	}
	state := filepath.Dir(c.Paths.Database)
	a.Agent, err = renter.New(renter.Config{
		Key: key, Network: c.Network, Net: network{a.node}, Store: a.store, Memory: a.store, Names: a.store, Log: a.log,
		Country: a.countryOf, Measure: a.measure,
		CheckpointDir: filepath.Join(state, "checkpoints"), CollectDir: filepath.Join(state, "collected"),
		IdentityFile: filepath.Join(state, "checkpoint.key"), InspectImage: inspectImage,
		Purse: purse, Boot: assemble.Boot(), Probe: c.Probe, Budgets: caps,
	})
	return err
}

// inspectImage reads the digest and the size of a local image archive.
func inspectImage(path string) (digest string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	about, err := archive.Inspect(bufio.NewReaderSize(f, 1<<20))
	if errors.Is(err, archive.ErrNotArchive) {
		return "", 0, market.NewError(market.CodeUploadFailed, "why", "it is no OCI archive of one image: make one with docker save, podman save --format oci-archive, or skopeo")
	}
	return about.Digest, info.Size(), err
}

// Run is the agent's life. It returns nil when ctx ends, when the user shut it down, or when it has been idle for as long as
// configured, after everything of this process is closed.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	node := a.node
	for name, run := range map[string]func(context.Context) error{
		"renter": a.Agent.Run, "network": a.node.Run, "api": a.server.Run, "copies": a.copies().Run,
		"peers": func(ctx context.Context) error {
			return assemble.KeepAcquainted(ctx, node, a.cfg.Agent.Sources, a.cfg.Agent.Paths.Database)
		},
	} {
		group.Go(func() error {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	group.Go(func() error {
		defer cancel()
		a.awaitEnd(ctx)
		return nil
	})
	a.log.Info("agent is up", "network", a.cfg.Agent.Network, "key", a.node.ID().String())
	err := group.Wait()
	a.node = nil // it closed itself
	return errors.Join(err, a.close())
}

// idleCheck is how often the agent looks whether anybody still needs it.
const idleCheck = 10 * time.Second

// awaitEnd returns when the agent has to go: told so, or idle for long enough. A lease or a debt that is open keeps it, an agent for
// which it is a deputy, and every use of the local API.
func (a *Agent) awaitEnd(ctx context.Context) {
	ticker := time.NewTicker(idleCheck)
	defer ticker.Stop()
	busy := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.stop:
			return
		case now := <-ticker.C:
			if used := a.server.LastUse(); used.After(busy) {
				busy = used
			}
			if a.OpenLeases() > 0 || a.Serving(ctx) {
				busy = now
			}
			if now.Sub(busy) >= a.cfg.Agent.IdleExit {
				a.log.Info("agent leaves, it has been idle", "for", a.cfg.Agent.IdleExit)
				return
			}
		}
	}
}

func (a *Agent) close() error {
	var errs []error
	if a.node != nil {
		errs = append(errs, a.node.Close())
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	return errors.Join(errs...)
}

// Status implements api.Agent.
func (a *Agent) Status(ctx context.Context) (view.AgentStatus, error) {
	return view.AgentStatus{
		Version: a.cfg.Version, PID: os.Getpid(), Home: a.cfg.Agent.Paths.Home, Uptime: int64(time.Since(a.begun).Seconds()),
		Network: assemble.Network(a.node), Offers: a.KnownOffers(), Leases: a.OpenLeases(),
		Warnings: a.Warnings(), Methods: a.PayMethods(ctx), Alerts: a.Alerts(ctx),
	}, nil
}

// Peers implements api.Agent.
func (a *Agent) Peers(context.Context) ([]view.Peer, error) { return assemble.Peers(a.node), nil }

// Shutdown implements api.Agent. Without force it refuses while a lease or a debt is open.
func (a *Agent) Shutdown(_ context.Context, force bool) error {
	if open := a.OpenLeases(); open > 0 && !force {
		return market.NewError(market.CodeBadRequest, "why", fmt.Sprintf("%d leases are open, and only a running agent signs for them; use --force to stop it all the same", open))
	}
	a.end.Do(func() { close(a.stop) })
	return nil
}

// network is a node as the renter's rules see it.
type network struct{ *p2p.Node }

// OpenLease implements renter.Network.
func (n network) OpenLease(ctx context.Context, rig market.Key) (renter.Stream, error) {
	return opened(n.Open(ctx, rig, p2p.LeaseProtocol))
}

// OpenDeputy implements renter.Network.
func (n network) OpenDeputy(ctx context.Context, deputy market.Key) (renter.Stream, error) {
	return opened(n.Open(ctx, deputy, p2p.DeputyProtocol))
}

// OpenTunnel implements renter.Network.
func (n network) OpenTunnel(ctx context.Context, rig market.Key, bulk bool) (renter.Stream, error) {
	if bulk {
		return opened(n.OpenBulk(ctx, rig, p2p.TunnelProtocol))
	}
	return opened(n.Open(ctx, rig, p2p.TunnelProtocol))
}

func opened(s *p2p.Stream, err error) (renter.Stream, error) {
	if err != nil {
		return nil, err // not s: a nil *Stream in an interface is not nil
	}
	return s, nil
}

// Explain puts into words what keeps an agent from starting.
func Explain(err error) (market.Explanation, bool) {
	return assemble.Explain(err, "haggle agent status")
}
