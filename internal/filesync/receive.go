package filesync

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// limits are what a receiver accepts. Zero fields have the defaults.
type limits struct {
	entries, bytes int64
	path           int
}

// bytesPerName bounds the memory of a list: its paths may have this many bytes on average.
const bytesPerName = 256

// What the receiver knows of an entry.
const (
	recvDone   = iota // nothing is missing
	recvFull          // all contents are wanted
	recvDelta         // it is being hashed
	recvReady         // contents may come
	recvOpen          // contents are coming
	recvLast          // all of them came
	recvFailed        // the sender could not read it
)

type recvEntry struct {
	entry
	state byte
	ready atomic.Bool // it has been hashed, and have is complete
	skip  bool        // this system cannot have it
	same  bool        // no contents had to be sent
	tried bool        // it came once and changed
	blind bool        // nobody looked at the contents
	hash  hash
	have  haves
	old   attrs // of the file that is there
	file  *writing
}

// receiver is the side that gets the files. One goroutine reads frames and keeps the state, some write.
type receiver struct {
	s        *session
	t        *target
	limits   limits
	workers  int
	names    localNames
	deletes  bool
	ignore   bool
	checksum bool
	sync     bool

	list    []*recvEntry
	folders []string // the open path of folders of the list, to check that what comes is in one of them
	skipped []string // of them, those that are left out
	nameLen int64
	folded  map[string]bool
	bytes   int64 // sizes of the files, as the sender says
	listed  bool
	partial bool // the sender could not read its whole tree
	open    *writing

	jobs  chan func(*hands)
	busy  sync.WaitGroup
	bufs  chan []byte
	hands hands

	mu   sync.Mutex
	fail *Error // what the sender could not read
	rep  Report
}

func newReceiver(s *session, t *target, l limits, n int) *receiver {
	if l.entries <= 0 {
		l.entries = DefaultMaxEntries
	}
	if l.path <= 0 || l.path > MaxPath {
		l.path = MaxPath
	}
	n = workers(n)
	r := &receiver{s: s, t: t, limits: l, workers: n, jobs: make(chan func(*hands), n), bufs: make(chan []byte, n+2), hands: hands{root: t.root}}
	r.names.windows = runtime.GOOS == "windows"
	r.names.folds = runtime.GOOS == "windows" || runtime.GOOS == "darwin"
	if r.names.folds {
		r.folded = map[string]bool{}
	}
	for range cap(r.bufs) {
		r.bufs <- nil // made when it is needed
	}
	return r
}

// run receives everything, writes it and confirms it.
func (r *receiver) run() error {
	var ready byte
	if r.t.fresh {
		ready = flagFresh
	}
	if err := r.s.l.send(frameReady, []byte{ready}); err != nil {
		return err
	}
	var wg sync.WaitGroup
	for range r.workers {
		wg.Go(r.labour)
	}
	err := r.read()
	r.s.stop(err)
	// What came is written even where more does not: the next copy goes on from there.
	close(r.jobs)
	wg.Wait()
	r.hands.close()
	if r.open != nil {
		r.open.f.Close()
	}
	return err
}

func (r *receiver) labour() {
	h := &hands{root: r.t.root}
	defer h.close()
	for j := range r.jobs {
		j(h)
		r.busy.Done()
	}
}

// do has a worker call f, whose error ends the copy.
func (r *receiver) do(f func(*hands) error) {
	r.busy.Add(1)
	r.jobs <- func(h *hands) { r.s.stop(f(h)) }
}

// read handles frames until the sender's last, or until the session has ended.
func (r *receiver) read() error {
	for {
		kind, n, err := r.s.l.next()
		if err != nil {
			return err
		}
		buf := <-r.bufs
		if cap(buf) < n {
			buf = make([]byte, n, max(n, 64<<10))
		}
		buf = buf[:n]
		if err := r.s.l.payload(buf); err != nil {
			return err
		}
		if kind == frameError {
			r.s.said(decodeError(buf))
			return r.s.peerErr
		}
		kept := false
		if !r.s.dead() {
			kept, err = r.handle(kind, buf)
			if kind == frameDone && err == nil && !r.s.dead() {
				return r.finish(buf)
			}
			r.s.stop(err)
		}
		if !kept {
			r.bufs <- buf
		}
	}
}

// handle handles one frame. It says whether it gave buf to a worker, which gives it back.
func (r *receiver) handle(kind byte, buf []byte) (kept bool, err error) {
	d := decoder{b: buf}
	switch kind {
	case frameList:
		return false, r.takeList(&d)
	case frameListEnd:
		return false, r.takeListEnd(buf)
	case frameSmall:
		return r.takeSmall(&d, buf)
	case frameStart:
		return false, r.takeStart(&d)
	case frameChunk:
		return r.takeChunk(&d, buf)
	case frameCopy:
		return false, r.takeCopy(&d)
	case frameFinish:
		return false, r.takeFinish(&d)
	case frameFail:
		return false, r.takeFail(&d)
	case frameDone:
		return false, nil
	}
	return false, badFrame("a frame of type %#x to a receiver", kind)
}

// takeList notes entries and answers for each what is missing.
func (r *receiver) takeList(d *decoder) error {
	if r.listed {
		return badFrame("a list after its end")
	}
	first := len(r.list)
	var answers []byte
	for len(d.b) > 0 {
		e := &recvEntry{entry: d.entry()}
		if d.err != nil {
			return d.err
		}
		if err := r.admit(e); err != nil {
			return err
		}
		answer, err := r.prepare(e)
		if err != nil {
			return err
		}
		r.list = append(r.list, e)
		answers = append(answers, answer)
	}
	if r.t.fresh || len(answers) == 0 {
		return nil
	}
	b := appendUint(appendUint(nil, uint64(first)), uint64(len(answers)))
	if err := r.s.l.send(frameNeed, append(b, answers...)); err != nil {
		return err
	}
	for i, e := range r.list[first:] {
		if e.state == recvDelta {
			r.do(func(h *hands) error { return r.compare(h, first+i, e) })
		}
	}
	return nil
}

// admit checks that an entry is one that a tree can have at this place of its list.
func (r *receiver) admit(e *recvEntry) error {
	bad := func(why string) error { return &Error{Code: CodeBadPath, Path: bounded(e.path), Message: why} }
	if err := checkPath(e.path, r.limits.path); err != nil {
		return err
	}
	r.nameLen += int64(len(e.path) + len(e.target))
	if int64(len(r.list)) >= r.limits.entries || r.nameLen > bytesPerName*r.limits.entries+64<<10 {
		return &Error{Code: CodeTooLarge, Message: "there are more files than are accepted"}
	}
	if n := len(r.list); n > 0 && comparePaths(r.list[n-1].path, e.path) >= 0 {
		return bad("the list is out of order")
	}
	dir, _ := cut(e.path)
	for len(r.folders) > 0 && r.folders[len(r.folders)-1] != dir {
		r.folders = r.folders[:len(r.folders)-1]
	}
	if dir != "" && len(r.folders) == 0 {
		return bad("it is in a folder that is not in the list")
	}
	if e.kind == kindFolder {
		r.folders = append(r.folders, e.path)
	}
	if e.kind == kindLink && !staysInside(e.path, e.target) {
		return bad("a symlink that may lead out of the folder")
	}
	if r.t.single != "" && (e.kind != kindFile || len(r.list) > 0) {
		return bad("more than the one file that was asked for")
	}
	e.skip = !r.accepts(e, dir)
	if e.kind == kindFile {
		r.s.m.found(1, e.size)
		return r.grow(e.size)
	}
	return nil
}

// accepts says whether this system can have the entry, and its folder.
func (r *receiver) accepts(e *recvEntry, dir string) bool {
	for len(r.skipped) > 0 && !within(dir, r.skipped[len(r.skipped)-1]) {
		r.skipped = r.skipped[:len(r.skipped)-1]
	}
	ok := len(r.skipped) == 0 && r.names.allows(e.path) && (e.kind != kindLink || r.names.allowsTarget(e.target))
	if ok && r.names.folds {
		key := strings.ToLower(e.path)
		ok = !r.folded[key]
		r.folded[key] = true
	}
	if !ok {
		r.rep.Skipped++
		if e.kind == kindFolder && len(r.skipped) == 0 {
			r.skipped = append(r.skipped, e.path)
		}
	}
	return ok
}

func within(dir, folder string) bool {
	return dir == folder || strings.HasPrefix(dir, folder+"/")
}

func (r *receiver) grow(n int64) error {
	r.bytes += n
	if r.bytes < 0 || r.limits.bytes > 0 && r.bytes > r.limits.bytes {
		return &Error{Code: CodeTooLarge, Message: "there are more bytes than are accepted"}
	}
	return nil
}

func (r *receiver) takeListEnd(buf []byte) error {
	l, err := decodeListEnd(buf)
	if err != nil {
		return err
	}
	if r.listed || l.entries != int64(len(r.list)) {
		return badFrame("a list of another length than its end says")
	}
	r.listed, r.partial = true, l.incomplete
	r.s.m.scanned()
	return nil
}

// at is the entry id if its state is one of those.
func (r *receiver) at(id int64, states ...byte) (*recvEntry, error) {
	if id < 0 || id >= int64(len(r.list)) {
		return nil, badFrame("entry %d, which is not in the list", id)
	}
	e := r.list[id]
	if e.state == recvDelta && e.ready.Load() {
		e.state = recvReady
	}
	for _, s := range states {
		if e.state == s {
			return e, nil
		}
	}
	return nil, badFrame("contents of entry %d out of turn", id)
}
