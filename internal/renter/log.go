package renter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"haggle/market"
)

// A rig's log file is a row of records: 8 bytes, of which the first names the stream and the last four are the payload's
// length, big endian, and the payload. A record of stream 0 is the end. A log can be opened at the end of a record only.
const (
	logHeader     = 8
	maxLogPayload = 32 << 10
	logTries      = 4               // attempts to go on with a log that is not followed
	logOpenTime   = 5 * time.Second // from the dial to the request
)

// Log returns the bytes of a lease's log file as the rig keeps it, framed, from an offset that is 0 or the end of a record.
// Following, it ends with the log's end mark and survives connections that break and a rig that is away, however long;
// otherwise it ends with the log as it is. A rig that cannot be reached at all is an error at once, unless a job is followed
// that goes on as far as the agent knows. No byte comes twice and none is missing. ctx bounds the reader as a whole; the
// caller closes it.
func (a *Agent) Log(ctx context.Context, id string, offset int64, follow bool) (io.ReadCloser, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, market.NewError(market.CodeBadRequest, "why", "a log has no negative offset")
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &tail{a: a, ctx: ctx, cancel: cancel, record: r, follow: follow, at: offset, frames: frames{end: offset}}
	if err := t.open(); err != nil && !t.early(err) && !t.passing(err) {
		err = fault(ctx, err, r.Terms.Rig)
		cancel()
		return nil, err
	}
	return t, nil
}

// tail reads a log through tunnels, one after the other. Only Close may be called beside Read.
type tail struct {
	a      *Agent
	ctx    context.Context // the reader's life
	cancel context.CancelFunc
	record Record
	follow bool
	wait   pause
	tries  int

	stream Stream
	skip   int64  // bytes of the stream that were read before
	rest   []byte // came, and not read yet
	at     int64  // offset of the next byte to be read
	frames frames
	done   bool
	close  sync.Once
}

func (t *tail) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		if t.done {
			return 0, io.EOF
		}
		if err := t.ctx.Err(); err != nil {
			return 0, err
		}
		if err := t.more(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// Close ends the reader and unblocks Read.
func (t *tail) Close() error {
	t.close.Do(t.cancel)
	return nil
}

// more gets the next bytes, over a new tunnel where the last one broke.
func (t *tail) more() error {
	if t.stream == nil {
		if err := t.open(); err != nil {
			return t.broken(err)
		}
	}
	m, err := t.stream.Receive(t.ctx)
	if err != nil {
		return t.broken(err)
	}
	switch m := m.(type) {
	case market.ChunkMessage:
		return t.take(m.Data)
	case market.EndMessage:
		if t.follow && !t.ended() {
			return t.broken(io.EOF) // the rig lost sight of a job that goes on
		}
		t.hangUp()
		t.done = true
		return nil
	}
	t.hangUp()
	return market.Unexpected(m)
}

// take passes on what is new of a chunk.
func (t *tail) take(data []byte) error {
	if len(data) > market.MaxChunk {
		t.hangUp()
		return market.NewError(market.CodeTooLarge, "limit", fmt.Sprint(market.MaxChunk))
	}
	if known := min(t.skip, int64(len(data))); known > 0 {
		t.skip -= known
		data = data[known:]
	}
	n, err := t.frames.pass(data)
	if err != nil {
		t.hangUp()
		return err
	}
	t.at += int64(n)
	t.rest = data[:n]
	if n > 0 {
		t.tries = 0
		t.wait.reset()
	}
	if t.frames.ended {
		t.hangUp()
		t.done = true
	}
	return nil
}

// open opens a tunnel at the last whole record; what was read of the next one is skipped.
func (t *tail) open() error {
	ctx, cancel := context.WithTimeout(t.ctx, logOpenTime)
	defer cancel()
	s, err := t.a.cfg.Net.OpenTunnel(ctx, t.record.Terms.Rig, false)
	if err != nil {
		return err
	}
	request := market.TunnelRequest{Lease: t.record.Lease, Kind: "log", Offset: t.frames.end, Follow: t.follow}
	if err := s.Send(ctx, request); err != nil {
		return errors.Join(reasonOf(ctx, s, err), s.Close())
	}
	t.stream, t.skip = s, t.at-t.frames.end
	return nil
}

// broken decides whether to go on after an error, and waits if so.
func (t *tail) broken(err error) error {
	whole := t.stream != nil && errors.Is(err, io.EOF)
	t.hangUp()
	t.tries++
	ended := t.ended()
	var refusal *market.Error
	switch {
	case t.ctx.Err() != nil:
		return t.ctx.Err()
	case whole && (!t.follow || ended && t.tries > 1):
		t.done = true // the rig closed the tunnel and has no more
		return nil
	case !t.follow && t.tries > logTries:
		return fault(t.ctx, err, t.record.Terms.Rig)
	case errors.As(err, &refusal) && !t.early(err) && !transient(refusal.Code):
		return err
	}
	select {
	case <-t.a.stopped:
		return errStopped
	default:
	}
	if !rest(t.ctx, t.wait.take(lastPause)) {
		return t.ctx.Err()
	}
	return nil
}

// passing reports whether an error says nothing about the log of a job that goes on: its rig is away, or busy.
func (t *tail) passing(err error) bool {
	var refusal *market.Error
	return t.follow && !t.ended() && t.ctx.Err() == nil && (!errors.As(err, &refusal) || transient(refusal.Code))
}

// early reports whether an error only says that there is no log yet.
func (t *tail) early(err error) bool {
	switch market.CodeOf(err) {
	case market.CodeNoLog, market.CodeNotRunning, market.CodeBadState:
		return t.follow && !t.ended()
	}
	return false
}

// ended reports whether the job has ended, as far as the agent knows.
func (t *tail) ended() bool {
	r, _ := t.a.latest(t.record)
	if kept, err := t.a.cfg.Store.Record(t.ctx, r.Lease); err == nil && t.a.opened(r.Bid) == nil {
		r = kept // the lease is over, and its last state is on disk
	}
	return r.State.Job == market.JobEnded
}

// transient reports whether a refusal says nothing about the log itself.
func transient(c market.Code) bool {
	switch c {
	case market.CodeUnreachable, market.CodeTooSlow, market.CodeTooMany, market.CodeEngineDown, market.CodeInternal, market.CodeNoPeers:
		return true
	}
	return false
}

func (t *tail) hangUp() {
	if t.stream != nil {
		_ = t.stream.Close() // nothing more is wanted from it
		t.stream = nil
	}
}

// frames follows the records of a log that passes by, to know where the last whole one ended.
type frames struct {
	end    int64 // offset behind the last whole record
	ended  bool  // the end mark has passed
	header [logHeader]byte
	have   int // bytes of the header seen
	size   int // of the payload
	left   int // bytes of the payload still to come
}

// pass takes the next bytes and returns how many of them belong to the log.
func (f *frames) pass(p []byte) (int, error) {
	taken := 0
	for taken < len(p) && !f.ended {
		if f.have < logHeader {
			n := copy(f.header[f.have:], p[taken:])
			f.have += n
			taken += n
			if f.have < logHeader {
				break
			}
			size := binary.BigEndian.Uint32(f.header[4:])
			if size > maxLogPayload || f.header[0] > 2 || f.header[0] == 0 && size != 0 {
				return 0, market.NewError(market.CodeBadRecord, "kind", "log", "why", "its framing is broken")
			}
			f.size, f.left = int(size), int(size)
		}
		n := min(f.left, len(p)-taken)
		f.left -= n
		taken += n
		if f.left == 0 {
			f.end += logHeader + int64(f.size)
			f.ended = f.header[0] == 0
			f.have = 0
		}
	}
	return taken, nil
}
