package nvidia

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"haggle/nvml"
)

var (
	_ nvml.Driver       = (*Driver)(nil)
	_ nvml.Scrubber     = (*Driver)(nil)
	_ nvml.PowerLimiter = (*Driver)(nil)
)

// Driver reads the cards of this machine through a child process. Make one with Open; all methods may be called at the
// same time.
//
// A call waits at most Config.Timeout for a card, and once as long for a child that is being restarted; it is asked again,
// once, when the child dies under it. A card that hangs is asked again after a second, then more and more rarely up to a
// minute, since each time costs a child; until then its calls return nvml.ErrTimeout at once. Channels of events stay open
// when a child is replaced; an Xid in that moment, usually well below a second, is not seen. A card that was lost answers
// again only when a later child finds it; to reset a card, close the driver first, since the child keeps it open.
type Driver struct {
	cfg   Config
	start time.Duration
	feed  feed
	life  context.Context // ends with Close
	end   context.CancelFunc
	loops sync.WaitGroup

	mu       sync.Mutex
	last     time.Duration
	link     *link // the child that answers; nil while there is none
	info     nvml.DriverInfo
	down     error         // why there is none, once waiting for one is no use
	changed  chan struct{} // closed and replaced whenever link or down changes
	closed   bool
	patients map[string]*patient      // by UUID: every card ever seen
	denied   []string                 // symbols that ended a child
	starts   int                      // children started so far
	limits   map[string]int64         // by UUID: the power in mW that a card was bounded to
	specs    specsKept                // the last CDI specs
	shots    map[string]chan struct{} // by key: closed when the child that answers one question is gone
}

// Open starts the child and waits until it answers, or until ctx ends; ctx has no say after that. It returns
// nvml.ErrNoDriver, with a sentence that says what is missing, on a machine without a driver, and nvml.ErrTimeout when the
// driver's library does not start within Config.StartTimeout or ctx. The caller must Close the driver.
func Open(ctx context.Context, cfg Config) (*Driver, error) {
	if !supported {
		return nil, fmt.Errorf("open NVIDIA driver: this program was built without NVML: %w", nvml.ErrNoDriver)
	}
	cfg, err := cfg.filled()
	if err != nil {
		return nil, fmt.Errorf("open NVIDIA driver: %w", err)
	}
	d := &Driver{
		cfg: cfg, start: cfg.Clock(), changed: make(chan struct{}), patients: make(map[string]*patient),
		limits: make(map[string]int64), shots: make(map[string]chan struct{}),
	}
	d.life, d.end = context.WithCancel(context.WithoutCancel(ctx))
	first := make(chan error, 1)
	d.loops.Go(func() { d.supervise(first) })
	select {
	case err = <-first:
	case <-ctx.Done():
		err = ended(ctx.Err())
	}
	if err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("open NVIDIA driver: %w", err)
	}
	d.loops.Go(d.poll)
	return d, nil
}

// Info implements nvml.Driver. A version that the library does not tell is "unknown".
func (d *Driver) Info(ctx context.Context) (nvml.DriverInfo, error) {
	if _, err := d.await(ctx, nil); err != nil {
		return nvml.DriverInfo{}, fmt.Errorf("describe driver: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.info, nil
}

// Cards implements nvml.Driver. A card that hangs or does not tell its memory is left out, with a line in the log, so that
// it does not hide the others.
func (d *Driver) Cards(ctx context.Context) ([]nvml.Card, error) {
	r, err := d.ask(ctx, request{Op: opList})
	if err == nil && r.List == nil {
		err = fmt.Errorf("the child process answered without a list")
	}
	if err != nil {
		return nil, fmt.Errorf("list cards: %w", err)
	}
	d.enrol(r.List)
	found := make([]*nvml.Card, len(r.List.UUIDs))
	var wg sync.WaitGroup
	for i, uuid := range r.List.UUIDs {
		wg.Go(func() {
			a, err := d.askCard(ctx, request{Op: opCard, UUID: uuid})
			if err != nil && !errors.Is(err, nvml.ErrLost) && ctx.Err() == nil && d.life.Err() == nil {
				d.cfg.Log.Warn("card is left out", slog.String("gpu", uuid), slog.Any("err", err))
			}
			found[i] = a.Card
		})
	}
	wg.Wait()
	if _, err := d.await(ctx, nil); err != nil {
		return nil, fmt.Errorf("list cards: %w", err)
	}
	list := make([]nvml.Card, 0, len(found))
	for _, c := range found {
		if c != nil {
			list = append(list, *c)
		}
	}
	return list, nil
}

// Sample implements nvml.Driver.
func (d *Driver) Sample(ctx context.Context, uuid string) (nvml.Sample, error) {
	r, err := d.askCard(ctx, request{Op: opSample, UUID: uuid})
	if err == nil && r.Sample == nil {
		err = fmt.Errorf("card %s: the child process answered without a sample", uuid)
	}
	if err != nil {
		return nvml.Sample{}, fmt.Errorf("sample: %w", err)
	}
	return *r.Sample, nil
}

// Events implements nvml.Driver. At most 64 channels may be open at a time.
func (d *Driver) Events(ctx context.Context) (<-chan nvml.HealthEvent, error) {
	err := ctx.Err()
	var events <-chan nvml.HealthEvent
	if err == nil {
		events, err = d.feed.open(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("watch cards: %w", err)
	}
	return events, nil
}

// Close implements nvml.Driver. It waits up to two seconds for the child; one that hangs in the kernel is left to end when
// it can.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	d.wake()
	d.mu.Unlock()
	d.feed.close()
	d.end()
	d.loops.Wait()
	return nil
}

// wake lets waiting calls look again. The lock must be held.
func (d *Driver) wake() {
	close(d.changed)
	d.changed = make(chan struct{})
}
