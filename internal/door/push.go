package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"filippo.io/age"

	"haggle/internal/checkpoint"
	"haggle/internal/tunnel"
)

// Kinds of channels beside those of package tunnel. Each takes its arguments and answers with one line of JSON, a PushStatus.
const (
	// KindPush orders, changes or ends the pushing of checkpoints to an object store. Its arguments are PushArgs.
	KindPush = "checkpoint-push"
	// KindPushStatus asks how it goes. It takes no arguments.
	KindPushStatus = "checkpoint-status"
)

// seqMark is what a checkpoint's number replaces in a URL.
const seqMark = "{seq}"

// PushArgs order pushing. A later order takes the place of an earlier one. An order lasts as long as the door.
type PushArgs struct {
	// Dir is the folder; "": /work/ckpt.
	Dir string `json:"dir,omitempty"`
	// Recipients are age X25519 keys, from 1 to 16.
	Recipients []string `json:"recipients,omitempty"`
	// URL takes a PUT: http or https, most often presigned. Each "{seq}" in it becomes the number of the checkpoint. "" leaves the
	// order as it is, for Now.
	URL string `json:"url,omitempty"`
	// EveryMs is the time between two looks at the folder, from 10 s to 24 h; 0: only when told to.
	EveryMs int64 `json:"every_ms,omitempty"`
	// Seq is the number of the next checkpoint.
	Seq int64 `json:"seq,omitempty"`
	// Known is the digest of the state that the store has; the same state is not sent.
	Known string `json:"known,omitempty"`
	// Now asks for a push at once, and the answer comes after it.
	Now bool `json:"now,omitempty"`
	// Stop ends the order.
	Stop bool `json:"stop,omitempty"`
}

// PushStatus tells how the pushing goes.
type PushStatus struct {
	Active  bool   `json:"active"`            // there is an order
	Pushing bool   `json:"pushing,omitempty"` // bytes are under way
	Next    int64  `json:"next"`              // the number of the next checkpoint
	Seq     int64  `json:"seq"`               // the newest that arrived; only with AtMs
	AtMs    int64  `json:"at_ms,omitempty"`   // when it did, by the job's clock, in Unix milliseconds; 0: none did
	Bytes   int64  `json:"bytes,omitempty"`   // its size as it was sent
	Files   int64  `json:"files,omitempty"`   // its files
	Digest  string `json:"digest,omitempty"`  // its state
	Error   string `json:"error,omitempty"`   // why the last try failed; "" where it did not
}

// pusher owns the order.
type pusher struct {
	mu     sync.Mutex
	order  *order
	status PushStatus
	wake   chan struct{}   // has a place: something changed
	asked  []chan struct{} // closed after the next push
	once   sync.Once
}

// order is a checked PushArgs.
type order struct {
	dir   string
	to    []age.Recipient
	url   string
	every time.Duration
}

func (p *pusher) bell() chan struct{} {
	p.once.Do(func() { p.wake = make(chan struct{}, 1) })
	return p.wake
}

func (p *pusher) ring() {
	select {
	case p.bell() <- struct{}{}:
	default:
	}
}

func (d *Door) servePush(ctx context.Context, args json.RawMessage, c *tunnel.Channel) error {
	var a PushArgs
	if err := decode(args, &a); err != nil {
		return err
	}
	var o *order
	if a.URL != "" && !a.Stop {
		var err error
		if o, err = d.checkOrder(a); err != nil {
			return err
		}
	}
	p := &d.pusher
	p.mu.Lock()
	switch {
	case a.Stop:
		p.order, p.status = nil, PushStatus{}
	case o != nil:
		p.order = o
		p.status = PushStatus{Active: true, Next: a.Seq, Digest: a.Known}
	case p.order == nil:
		p.mu.Unlock()
		return refuse("refused", "nothing is ordered: a URL is needed")
	}
	var done chan struct{}
	if a.Now && !a.Stop {
		if len(p.asked) >= defaultChannels {
			p.mu.Unlock()
			return refuse("too_many", "too many wait for a push")
		}
		done = make(chan struct{})
		p.asked = append(p.asked, done)
	}
	p.mu.Unlock()
	p.ring()
	if done != nil {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return d.servePushStatus(ctx, nil, c)
}

func (d *Door) servePushStatus(_ context.Context, _ json.RawMessage, c *tunnel.Channel) error {
	d.pusher.mu.Lock()
	s := d.pusher.status
	d.pusher.mu.Unlock()
	if err := json.NewEncoder(c).Encode(s); err != nil {
		return err
	}
	return c.CloseWrite()
}

func (d *Door) checkOrder(a PushArgs) (*order, error) {
	dir, to, err := d.checkpointOf(a.Dir, a.Recipients)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(strings.ReplaceAll(a.URL, seqMark, "0"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || len(a.URL) > 8<<10 {
		return nil, refuse("bad_request", "the URL must be one of http or https")
	}
	every := time.Duration(a.EveryMs) * time.Millisecond
	if a.Seq < 0 || a.EveryMs != 0 && (a.EveryMs < 10_000 || a.EveryMs > 86_400_000) {
		return nil, refuse("bad_request", "every_ms is not from 10 s to 24 h, or seq is negative")
	}
	return &order{dir: dir, to: to, url: a.URL, every: every}, nil
}

// run pushes when it is time to, and when it is asked, until ctx ends.
func (p *pusher) run(ctx context.Context, d *Door) {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		timed := false
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			timed = true
		case <-p.bell():
		}
		p.mu.Lock()
		o, asked := p.order, p.asked
		p.asked = nil
		p.mu.Unlock()
		if o != nil && (timed && o.every > 0 || len(asked) > 0) {
			if err := p.push(ctx, d, o); err != nil {
				d.cfg.Log.Warn("push a checkpoint", "err", err)
			}
		}
		for _, done := range asked {
			close(done)
		}
		if o != nil && o.every > 0 {
			t.Reset(o.every)
		} else {
			t.Reset(time.Hour)
		}
	}
}

// push makes one checkpoint and sends it, unless the store has this state.
func (p *pusher) push(ctx context.Context, d *Door, o *order) error {
	p.mu.Lock()
	known, seq := p.status.Digest, p.status.Next
	p.status.Pushing = true
	p.mu.Unlock()

	state, size, err := checkpointTo(ctx, d.work(), o, known, seq)

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.order != o {
		return err // another order since
	}
	p.status.Pushing, p.status.Error = false, ""
	if err != nil {
		p.status.Error = err.Error()
		return err
	}
	if size > 0 {
		p.status.Seq, p.status.Next, p.status.Digest = seq, seq+1, state.Digest
		p.status.Bytes, p.status.Files, p.status.AtMs = size, state.Files, time.Now().UnixMilli()
	}
	return nil
}

// checkpointTo sends the state of a folder, if it is another one than known. size is what was sent, 0 for nothing.
func checkpointTo(ctx context.Context, work string, o *order, known string, seq int64) (s *checkpoint.State, size int64, err error) {
	s, err = checkpoint.Survey(ctx, o.dir)
	if err != nil || s.Files == 0 || s.Digest == known {
		return s, 0, err
	}
	spool, err := newSpool(work)
	if err != nil {
		return nil, 0, fmt.Errorf("make room for the checkpoint: %w", err)
	}
	defer spool.Close()
	if err := checkpoint.Write(ctx, spool, o.dir, s, o.to); err != nil {
		return nil, 0, err
	}
	to := strings.ReplaceAll(o.url, seqMark, strconv.FormatInt(seq, 10))
	size, err = put(ctx, to, spool)
	return s, size, err
}

// withoutURL drops a URL from an error: a presigned one is a secret.
func withoutURL(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}
