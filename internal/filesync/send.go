package filesync

import (
	"context"
	"sync"
)

// What the sender knows of an entry.
const (
	sendListed  = iota // no answer yet
	sendAsked          // contents are wanted
	sendSame           // the receiver has it, or it has no contents
	sendSkipped        // the receiver does not want it
	sendGone           // contents were sent
	sendFailed         // it could not be read
)

type sendEntry struct {
	entry
	state byte
	tries byte // how often it was read in vain
	hash  hash
	have  *haves
}

// haves are the hashes of the chunks that a receiver has, by where it has them.
type haves struct {
	part, old []hash
}

func (h *haves) at(from byte) *[]hash {
	if from == fromPart {
		return &h.part
	}
	return &h.old
}

// want is an entry whose contents are to be sent.
type want struct {
	id    int
	delta bool // by chunks, with regard to what the receiver has
}

// job makes frames. Jobs are done in any order and written in theirs.
type job struct {
	do    func(*hands) (frame, buf []byte)
	frame []byte
	buf   []byte // the memory of the frame, to be used again
	ready chan struct{}
}

// sender is the side that has the files. Its goroutines: one walks the tree, one reads answers, one turns wanted entries into jobs,
// some do jobs, and one writes what they made.
type sender struct {
	s       *session
	src     *source
	ignore  bool
	workers int
	fresh   bool // the receiver has nothing: all is wanted

	out  chan *job
	work chan *job
	bufs sync.Pool

	mu      sync.Mutex
	wake    sync.Cond
	entries []*sendEntry
	wanted  []want
	pending int // entries that are wanted and not sent
	answers int
	listed  bool
	skipped int64
	sent    int64
	failed  int64
	fail    *Error
	digest  string

	results chan result
	end     result
}

func newSender(s *session, src *source, n int, ignore bool) *sender {
	n = workers(n)
	snd := &sender{
		s: s, src: src, ignore: ignore, workers: n,
		out: make(chan *job, 2*n), work: make(chan *job, 4*n), results: make(chan result, 1),
	}
	snd.wake.L = &snd.mu
	return snd
}

// run sends everything and returns when the receiver has confirmed it.
func (snd *sender) run() error {
	b, err := snd.s.expect(frameReady)
	if err != nil {
		return err
	}
	if len(b) != 1 {
		return badFrame("a ready of %d bytes", len(b))
	}
	snd.fresh = b[0]&flagFresh != 0
	stop := context.AfterFunc(snd.s.ctx, func() {
		snd.mu.Lock()
		defer snd.mu.Unlock()
		snd.wake.Broadcast()
	})
	defer stop()
	var wg, making sync.WaitGroup
	do := func(wg *sync.WaitGroup, f func() error) { wg.Go(func() { snd.s.stop(f()) }) }
	do(&wg, snd.read)
	do(&wg, snd.write)
	for range snd.workers {
		wg.Go(snd.labour)
	}
	do(&making, snd.scan)
	do(&making, snd.dispatch)
	making.Wait()
	close(snd.out)
	close(snd.work)
	wg.Wait()
	return context.Cause(snd.s.ctx)
}

// submit queues a job. It returns false when the session has ended.
func (snd *sender) submit(j *job) bool {
	j.ready = make(chan struct{})
	if j.do == nil {
		close(j.ready)
	}
	select {
	case snd.out <- j:
	case <-snd.s.ctx.Done():
		return false
	}
	if j.do == nil {
		return true
	}
	select {
	case snd.work <- j:
		return true
	case <-snd.s.ctx.Done():
		return false
	}
}

func (snd *sender) labour() {
	h := &hands{root: snd.src.root}
	defer h.close()
	for j := range snd.work {
		if !snd.s.dead() {
			j.frame, j.buf = j.do(h)
		}
		close(j.ready)
	}
}

func (snd *sender) write() error {
	for {
		var j *job
		var ok bool
		select {
		case j, ok = <-snd.out:
		default:
			if err := snd.s.l.flush(); err != nil {
				return err
			}
			j, ok = <-snd.out
		}
		if !ok {
			return snd.s.l.flush()
		}
		select {
		case <-j.ready:
		default:
			if err := snd.s.l.flush(); err != nil {
				return err
			}
			select {
			case <-j.ready:
			case <-snd.s.ctx.Done():
				return nil
			}
		}
		if err := snd.s.l.write(j.frame); err != nil {
			return err
		}
		if j.buf != nil {
			snd.bufs.Put(&j.buf)
		}
	}
}

// over says whether all is sent. snd.mu is held.
func (snd *sender) over() bool {
	return snd.listed && snd.answers == len(snd.entries) && snd.pending == 0
}

// take waits for wanted entries and returns those that are there. None means that all is sent.
func (snd *sender) take() []want {
	snd.mu.Lock()
	defer snd.mu.Unlock()
	for len(snd.wanted) == 0 && !snd.over() && !snd.s.dead() {
		snd.wake.Wait()
	}
	if snd.s.dead() {
		return nil
	}
	w := snd.wanted
	snd.wanted = nil
	return w
}

func (snd *sender) dispatch() error {
	h := &hands{root: snd.src.root}
	defer h.close()
	for {
		ws := snd.take()
		if ws == nil {
			break
		}
		var batch []int
		var size int64
		for _, w := range ws {
			if w.delta {
				snd.large(h, w.id)
				continue
			}
			batch = append(batch, w.id)
			size += snd.entry(w.id).size + 64
			if size >= smallBatch {
				snd.small(batch)
				batch, size = nil, 0
			}
		}
		if len(batch) > 0 {
			snd.small(batch)
		}
		if snd.s.dead() {
			break
		}
	}
	if snd.s.dead() {
		return nil
	}
	d := snd.sum()
	snd.submit(&job{frame: seal(append(startFrame(nil, frameDone), d.encode()...))})
	return nil
}

func (snd *sender) entry(id int) *sendEntry {
	snd.mu.Lock()
	defer snd.mu.Unlock()
	return snd.entries[id]
}

// finish notes that an entry needs nothing more. A nil error means that it was sent.
func (snd *sender) finish(e *sendEntry, h hash, err *Error) {
	snd.mu.Lock()
	defer snd.mu.Unlock()
	snd.pending--
	e.hash, e.have, e.state = h, nil, sendGone
	if err != nil {
		e.state = sendFailed
		snd.note(err)
	}
	snd.wake.Broadcast()
}

// note counts a failure. snd.mu is held.
func (snd *sender) note(err *Error) {
	if err.Code == CodeNotFound {
		snd.skipped++ // it vanished while the copy ran
		return
	}
	snd.failed++
	if snd.fail == nil {
		snd.fail = err
	}
}
