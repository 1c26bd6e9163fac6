//go:build linux

package containerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	ctr "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"haggle/runtime"
	"haggle/runtime/device"
	"haggle/runtime/jobnet"
	"haggle/runtime/volume"
)

// Config says where an Engine works. All paths are absolute.
type Config struct {
	// Root, State and Socket are the places of the engine's own containerd: images and file systems, what lasts
	// until a reboot, and its API. Socket defaults to containerd.sock in State. No other program may use them.
	Root, State, Socket string
	// Address is the socket of a containerd that somebody else looks after. Then the three above are not used.
	Address string
	// Namespace holds all that belongs to the engine inside containerd. Default "haggle".
	Namespace string
	// Binary is the containerd to start. Default: the one in PATH.
	Binary string
	// Snapshotter keeps file systems. Default "overlayfs".
	Snapshotter string
	// LoggerPath and LoggerArgs start a logger: LoggerArgs is the one word that makes that program call
	// runtime.RunLogger with the next argument.
	LoggerPath string
	LoggerArgs []string
	// LogDir holds one log per job, named after it, and while a job is made the FIFOs of its output. Shims must
	// see it at the same path.
	LogDir string
	// CgroupParent is the cgroup of all jobs, from the hierarchy's root. Default "/haggle".
	CgroupParent string
	// RuncRoot is where runc keeps its state. Default: runc in State; with Address, /run/haggle-runc.
	RuncRoot string
	// VolumeDir holds the disks of jobs and nothing else. Default: disks in Root; with Address it must be given.
	VolumeDir string
	// JobsDir holds, in memory, what a job must not find on a disk. Every user must be able to pass through it and all
	// folders above it. Default: a folder in /run of a name that follows from the socket and the namespace.
	JobsDir string
	// Networks are those of jobs. Run runs them and Purge purges them. nil: no job has a network.
	Networks *jobnet.Networks
	// Devices are what can be passed to jobs beside simulated ones. nil: none.
	Devices *device.Devices
	// IDBase is the first of the ids that jobs' users have on the host, a multiple of 65536; each job takes as many. Default:
	// 2000224256, see ids.go.
	IDBase uint32
	// CheckProgram is a static program and its arguments, which Check runs as a job: it tries the protections out from inside
	// and prints a JSON object a line with "name", "holds" and "found". Empty: nothing is checked.
	CheckProgram []string
	// Spares is how many containers are kept ready for jobs that are like the last one, see spares.go. Default: none.
	Spares int
	// WaitProgram is a static program and its arguments, which waits in a spare: with the name of a folder behind them it calls
	// runtime/inside's wait. Every user must be able to reach it. With Spares it must be given.
	WaitProgram []string
	// DoorProgram is a static program and its arguments, which opens a job for Enter: with an address behind them it listens on
	// that unix socket, and with --idle DURATION before the address it ends when no path was open for so long. Every user must be
	// able to reach it. Empty: no job can be entered.
	DoorProgram []string
	// MaxImageBytes and MaxImageFiles bound what one image takes unpacked. Default: 64 GiB and 2 million.
	MaxImageBytes, MaxImageFiles int64
	// Without lists protections left out, by name, for tests that prove that they matter; nothing else sets it.
	Without []string
	// Log receives what no caller is told. nil means none.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	setDefault := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	setDefault(&c.Namespace, "haggle")
	setDefault(&c.Snapshotter, "overlayfs")
	setDefault(&c.CgroupParent, "/haggle")
	if c.Address == "" {
		setDefault(&c.Socket, filepath.Join(c.State, "containerd.sock"))
		setDefault(&c.RuncRoot, filepath.Join(c.State, "runc"))
		setDefault(&c.VolumeDir, filepath.Join(c.Root, "disks"))
	}
	setDefault(&c.RuncRoot, "/run/haggle-runc")
	setDefault(&c.JobsDir, defaultJobsDir(cmp.Or(c.Address, c.Socket), c.Namespace))
	c.MaxImageBytes = cmp.Or(c.MaxImageBytes, defaultImageBytes)
	c.MaxImageFiles = cmp.Or(c.MaxImageFiles, defaultImageFiles)
	c.IDBase = cmp.Or(c.IDBase, defaultIDBase)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// maxSocket leaves room for the suffix that containerd adds to the 107 bytes of a socket's path.
const maxSocket = 100

func (c Config) validate() error {
	paths := map[string]string{
		"logger": c.LoggerPath, "log folder": c.LogDir, "cgroup parent": c.CgroupParent, "runc root": c.RuncRoot,
		"volume folder": c.VolumeDir, "folder of jobs": c.JobsDir,
	}
	if c.Address == "" {
		paths["root"], paths["state"], paths["socket"] = c.Root, c.State, c.Socket
	} else {
		paths["address"] = c.Address
	}
	for name, p := range paths {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p || p == "/" {
			return fmt.Errorf("containerd: %s %q is no clean absolute path", name, p)
		}
	}
	if len(c.Socket) > maxSocket {
		return fmt.Errorf("containerd: socket path %s is longer than %d bytes", c.Socket, maxSocket)
	}
	if len(c.LoggerArgs) != 1 {
		return fmt.Errorf("containerd: %d logger arguments, exactly one word must come before ours", len(c.LoggerArgs))
	}
	if c.Spares < 0 || c.Spares > maxSpares || (c.Spares > 0 && len(c.WaitProgram) == 0) {
		return fmt.Errorf("containerd: %d spares, which wait with %q", c.Spares, c.WaitProgram)
	}
	if len(c.DoorProgram) > 0 && !filepath.IsAbs(c.DoorProgram[0]) {
		return fmt.Errorf("containerd: program for doors %q is no absolute path", c.DoorProgram[0])
	}
	if c.IDBase%idsPerJob != 0 || c.IDBase >= idLimit {
		return fmt.Errorf("containerd: first id of jobs %d is no multiple of %d below %d", c.IDBase, idsPerJob, idLimit)
	}
	for _, name := range c.Without {
		if !slices.Contains(Protections(), name) {
			return fmt.Errorf("containerd: unknown protection %q", name)
		}
	}
	if strings.Count(c.CgroupParent, "/") > 8 {
		return fmt.Errorf("containerd: cgroup parent %s is too deep", c.CgroupParent)
	}
	return nil
}

// Engine is a runtime.Runtime on containerd. Run must run beside its other methods: it is what starts containerd
// and records how jobs end.
type Engine struct {
	cfg    Config
	client *ctr.Client
	daemon *daemon // nil with an Address
	hub    hub
	jobs   jobLocks
	images imageCache
	host   hostLimits
	disks  *volume.Disks
	ids    idRanges
	cards  cards
	names  names
	spares spares
	heirs  heirs
	check  checks
	// appArmor loads the profile of jobs, once, and returns its name.
	appArmor func() (string, error)

	ctx    context.Context // ends with Close; for what outlives a call
	cancel context.CancelFunc
	bg     sync.WaitGroup

	mu      sync.Mutex
	ready   chan struct{} // closed while containerd answers
	running bool
	runDone chan struct{} // closed when the last Run has returned; nil before the first
	stop    chan struct{} // closed by Purge under mu: Run must not start containerd again
}

var _ runtime.Runtime = (*Engine)(nil)

// New prepares an engine. It starts nothing and needs no containerd yet.
func New(cfg Config) (*Engine, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.LogDir, 0o700); err != nil {
		return nil, fmt.Errorf("containerd: %w", err)
	}
	disks, err := volume.New(volume.Config{Dir: cfg.VolumeDir, Without: volumeWithout(cfg.Without), Log: cfg.Log})
	if err != nil {
		return nil, fmt.Errorf("containerd: %w", err)
	}
	address := cfg.Address
	if address == "" {
		address = cfg.Socket
	}
	client, err := ctr.New(address, ctr.WithDefaultNamespace(cfg.Namespace), ctr.WithExtraDialOpts([]grpc.DialOption{
		// A call must fail at once while there is no containerd, and find a restarted one within seconds.
		grpc.WithContextDialer(dialUnix),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	}))
	if err != nil {
		return nil, fmt.Errorf("containerd: client for %s: %w", address, err)
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // kills that Stop owes outlive every caller; Close ends it
	e := &Engine{
		cfg: cfg, client: client, host: readHostLimits(), ctx: ctx, cancel: cancel,
		ready: make(chan struct{}), stop: make(chan struct{}),
		disks: disks, ids: idRanges{base: cfg.IDBase}, cards: cards{shared: !cfg.has(OneCardOneLease)},
		appArmor: sync.OnceValues(loadAppArmor),
	}
	if cfg.Address == "" {
		e.daemon = &daemon{cfg: cfg, log: cfg.Log}
	}
	return e, nil
}

func dialUnix(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(address, "unix://"))
}

// Ready waits until containerd answers, or returns the context's error.
func (e *Engine) Ready(ctx context.Context) error {
	e.mu.Lock()
	ready := e.ready
	e.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for containerd: %w", ctx.Err())
	}
}

// Close implements runtime.Runtime. End Run first. Kills that Stop still owes are dropped.
func (e *Engine) Close() error {
	e.cancel()
	e.bg.Wait()
	e.hub.closeAll()
	e.ids.close()
	if err := e.client.Close(); err != nil {
		return fmt.Errorf("close containerd client: %w", err)
	}
	return nil
}

// within binds a call to the engine's namespace.
func (e *Engine) within(ctx context.Context) context.Context {
	return namespaces.WithNamespace(ctx, e.cfg.Namespace)
}

// closers closes what a reader holds, in order.
type closers struct {
	io.Reader
	all []func() error
}

func (c closers) Close() error {
	var errs []error
	for _, f := range c.all {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}
