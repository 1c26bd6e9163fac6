package filesync

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
)

// open opens the file of an entry for reading.
func (snd *sender) open(h *hands, e *sendEntry) (*os.File, attrs, error) {
	dir, name := h.root, snd.src.single
	if name == "" {
		var folder string
		var err error
		folder, name = cut(e.path)
		if dir, err = h.in(folder); err != nil {
			return nil, attrs{}, err
		}
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, attrs{}, err
	}
	a, err := regular(f)
	if err != nil {
		f.Close()
		return nil, attrs{}, err
	}
	return f, a, nil
}

func regular(f *os.File) (attrs, error) {
	fi, err := f.Stat()
	if err != nil {
		return attrs{}, err
	}
	if !fi.Mode().IsRegular() {
		return attrs{}, &Error{Code: CodeChanged, Message: "it is not a file any more"}
	}
	return attrsOf(fi), nil
}

func changed(path string) *Error {
	return &Error{Code: CodeChanged, Path: path, Message: "it kept changing while it was read"}
}

// failFrame appends a frame that says why an entry is not sent. Entry -1 is the list itself.
func (snd *sender) failFrame(b []byte, id int, err *Error) []byte {
	f := appendUint(startFrame(nil, frameFail), uint64(id+1))
	f = append(f, err.encode()...)
	if id < 0 {
		snd.mu.Lock()
		snd.note(err)
		snd.mu.Unlock()
	}
	return append(b, seal(f)...)
}

func (snd *sender) buffer(n int) []byte {
	if p, ok := snd.bufs.Get().(*[]byte); ok && cap(*p) >= n {
		return (*p)[:0]
	}
	return make([]byte, 0, max(n, maxBefore+chunkSize))
}

// small submits a batch of small files for one frame.
func (snd *sender) small(ids []int) {
	snd.submit(&job{do: func(h *hands) (_, buf []byte) {
		frame := startFrame(snd.buffer(0), frameSmall)
		var fails []byte
		for _, id := range ids {
			e := snd.entry(id)
			before := len(frame)
			var sum hash
			var err *Error
			if frame, sum, err = snd.record(h, frame, id, e); err != nil {
				frame = frame[:before]
				if errors.Is(err, errGrew) {
					snd.again(id)
					continue
				}
				fails = snd.failFrame(fails, id, err)
				snd.finish(e, hash{}, err)
				continue
			}
			snd.did(e.path, 1, e.size, e.size)
			snd.finish(e, sum, nil)
		}
		if len(frame) == headerSize {
			return fails, frame
		}
		frame = append(seal(frame), fails...)
		return frame, frame
	}})
}

// errGrew says that a file that was listed as a small one no longer is.
var errGrew = &Error{Code: CodeChanged, Message: "it grew"}

func (snd *sender) again(id int) {
	snd.mu.Lock()
	defer snd.mu.Unlock()
	snd.ask(id, true)
}

func (snd *sender) did(path string, files, bytes, sent int64) {
	snd.s.m.did(path, files, bytes, sent)
	snd.mu.Lock()
	defer snd.mu.Unlock()
	snd.sent += sent
}

// record appends one small file to a frame.
func (snd *sender) record(h *hands, frame []byte, id int, e *sendEntry) ([]byte, hash, *Error) {
	start := len(frame)
	for range 2 {
		f, a, err := snd.open(h, e)
		if err != nil {
			return frame, hash{}, errorOf(e.path, err)
		}
		if a.size > smallFile {
			f.Close()
			return frame, hash{}, errGrew
		}
		frame = a.append(appendUint(frame[:start], uint64(id)))
		at := len(frame)
		frame = append(frame, make([]byte, 32+a.size)...)
		content := frame[at+32:]
		_, err = io.ReadFull(f, content)
		after, statErr := regular(f)
		f.Close()
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || statErr != nil || after != a:
			continue
		case err != nil:
			return frame, hash{}, errorOf(e.path, err)
		}
		sum := hashChunk(content)
		copy(frame[at:], sum[:])
		e.attrs = a
		return frame, sum, nil
	}
	return frame, hash{}, changed(e.path)
}

// reading is a file that is sent in chunks.
type reading struct {
	snd    *sender
	id     int
	e      *sendEntry
	f      *os.File
	attrs  attrs
	have   *haves
	hashes []hash
	left   atomic.Int64  // chunks that are not read yet
	read   chan struct{} // closed when none is left
	short  atomic.Bool
	err    atomic.Pointer[Error]
}

// large submits the jobs of one file: its start, its chunks and its end.
func (snd *sender) large(h *hands, id int) {
	e := snd.entry(id)
	f, a, err := snd.open(h, e)
	if err != nil {
		fail := errorOf(e.path, err)
		fail.Path = e.path
		frame := snd.failFrame(nil, id, fail)
		snd.submit(&job{frame: frame})
		snd.finish(e, hash{}, fail)
		return
	}
	r := &reading{snd: snd, id: id, e: e, f: f, attrs: a, have: e.have, hashes: make([]hash, chunks(a.size)), read: make(chan struct{})}
	r.left.Store(int64(len(r.hashes)))
	if r.have == nil {
		r.have = &haves{}
	}
	start := a.append(appendUint(startFrame(nil, frameStart), uint64(id)))
	if !snd.submit(&job{frame: seal(start)}) {
		f.Close()
		return
	}
	for i := range int64(len(r.hashes)) {
		if !snd.submit(&job{do: func(*hands) ([]byte, []byte) { return r.chunk(i) }}) {
			break
		}
	}
	if !snd.submit(&job{do: func(*hands) ([]byte, []byte) { return r.finish(), nil }}) {
		f.Close() // a chunk that is read now fails, which nobody hears of
	}
}

// chunk reads chunk i and makes a frame of it, or of where the receiver has it.
func (r *reading) chunk(i int64) (frame, buf []byte) {
	defer func() {
		if r.left.Add(-1) == 0 {
			close(r.read)
		}
	}()
	n := chunkLen(r.attrs.size, i)
	buf = r.snd.buffer(maxBefore + n)
	content := buf[maxBefore : maxBefore+n]
	if _, err := r.f.ReadAt(content, i*chunkSize); err != nil && n > 0 {
		if errors.Is(err, io.EOF) {
			r.short.Store(true)
		} else {
			r.err.Store(errorOf(r.e.path, err))
		}
		return nil, buf
	}
	sum := hashChunk(content)
	r.hashes[i] = sum
	for _, from := range []byte{fromPart, fromOld} {
		if list := *r.have.at(from); i < int64(len(list)) && list[i] == sum {
			r.snd.did(r.e.path, 0, int64(n), 0)
			b := appendUint(appendUint(startFrame(buf, frameCopy), uint64(r.id)), uint64(i))
			return seal(append(append(b, from), sum[:]...)), buf
		}
	}
	r.snd.did(r.e.path, 0, int64(n), int64(n))
	// The words before the contents end where those begin, so that nothing is moved.
	var words [maxBefore]byte
	w := append(appendUint(appendUint(startFrame(words[:], frameChunk), uint64(r.id)), uint64(i)), sum[:]...)
	putHeader(w, frameChunk, len(w)-headerSize+n)
	frame = buf[maxBefore-len(w) : maxBefore+n]
	copy(frame, w)
	return frame, buf
}

// finish ends the file after its last chunk, or has it read again.
func (r *reading) finish() []byte {
	select {
	case <-r.read:
	case <-r.snd.s.ctx.Done():
		r.f.Close() // some chunks may never be read
		return nil
	}
	after, err := regular(r.f)
	r.f.Close()
	fail := r.err.Load()
	moved := r.short.Load() || err != nil || after != r.attrs
	switch {
	case fail == nil && moved && r.e.tries == 0:
		r.e.tries++
		r.snd.mu.Lock()
		defer r.snd.mu.Unlock()
		// What was sent is in the unfinished file, so that only what changed is sent again.
		r.e.have = &haves{part: r.hashes}
		if r.short.Load() {
			r.e.have = &haves{}
		}
		r.snd.ask(r.id, true)
		return r.end(finishAgain)
	case fail == nil && moved:
		fail = changed(r.e.path)
	}
	if fail != nil {
		r.snd.finish(r.e, hash{}, fail)
		return r.snd.failFrame(nil, r.id, fail)
	}
	r.e.attrs = r.attrs
	r.snd.s.m.did(r.e.path, 1, 0, 0)
	r.snd.finish(r.e, hashFile(r.hashes), nil)
	return r.end(finishDone)
}

func (r *reading) end(status byte) []byte {
	return seal(append(appendUint(startFrame(nil, frameFinish), uint64(r.id)), status))
}
