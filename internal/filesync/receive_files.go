package filesync

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"time"
)

// small is one small file of a frame.
type small struct {
	e       *recvEntry
	attrs   attrs
	content []byte
}

// takeSmall has a worker write the files of a frame.
func (r *receiver) takeSmall(d *decoder, buf []byte) (kept bool, err error) {
	var files []small
	for len(d.b) > 0 {
		id, a := d.size(), d.attrs()
		if d.err == nil && a.size > smallFile {
			return false, badFrame("a small file of %d bytes", a.size)
		}
		sum := d.hash()
		content := d.bytes(a.size)
		if d.err != nil {
			return false, d.err
		}
		e, err := r.at(id, recvFull)
		if err != nil {
			return false, err
		}
		if err := r.resize(e, a); err != nil {
			return false, err
		}
		e.state, e.hash = recvLast, sum
		files = append(files, small{e, a, content})
	}
	r.do(func(h *hands) error {
		defer func() { r.bufs <- buf }()
		for _, f := range files {
			if hashChunk(f.content) != f.e.hash {
				return &Error{Code: CodeFailed, Path: f.e.path, Message: "what arrived is not what was sent"}
			}
			if err := r.writeSmall(h, f); err != nil {
				return errorOf(f.e.path, err)
			}
			r.s.m.did(f.e.path, 1, f.attrs.size, f.attrs.size)
		}
		return nil
	})
	return true, nil
}

// resize takes the attributes that a file has now, which may differ from those in the list.
func (r *receiver) resize(e *recvEntry, a attrs) error {
	err := r.grow(a.size - e.size)
	e.attrs = a
	return err
}

func (r *receiver) writeSmall(h *hands, s small) error {
	if s.e.skip {
		return nil
	}
	dir, name := r.name(s.e)
	in, err := h.in(dir)
	if err != nil {
		return err
	}
	part := partName(name)
	f, err := createPart(in, part)
	if err != nil {
		return err
	}
	_, err = f.Write(s.content)
	if e := f.Chmod(os.FileMode(s.attrs.mode)); err == nil && !r.names.windows {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		t := time.Unix(0, s.attrs.mtime)
		err = in.Chtimes(part, t, t)
	}
	if err == nil {
		if r.t.fresh {
			err = in.Rename(part, name)
		} else {
			err = r.replace(in, part, name)
		}
	}
	if err != nil {
		_ = in.Remove(part) // the error that counts is the one before
	}
	return err
}

// createPart makes a new file, in place of whatever has its name.
func createPart(in *os.Root, part string) (*os.File, error) {
	for range 3 {
		f, err := in.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		if err := in.RemoveAll(part); err != nil {
			return nil, err
		}
	}
	return nil, &Error{Code: CodeChanged, Message: "something keeps making a file of its unfinished name"}
}

// writing is a file whose chunks are coming.
type writing struct {
	r      *receiver
	e      *recvEntry
	f      *os.File
	attrs  attrs
	next   int64 // the chunk that comes next
	hashes []hash
	same   int64 // so many first chunks are those of the old file, and are not copied yet
	sent   int64
	gap    bool         // a chunk did not come
	left   atomic.Int64 // chunks to be written, and one until the last came
}

// takeStart opens the unfinished file. One file comes at a time.
func (r *receiver) takeStart(d *decoder) error {
	id, a := d.size(), d.attrs()
	if err := d.end(); err != nil {
		return err
	}
	e, err := r.at(id, recvFull, recvReady)
	if err != nil {
		return err
	}
	if r.open != nil {
		return badFrame("two files at a time")
	}
	if err := r.resize(e, a); err != nil {
		return err
	}
	w := &writing{r: r, e: e, attrs: a}
	w.left.Store(1)
	if !e.skip {
		if err := w.openPart(); err != nil {
			return w.failed(err)
		}
	}
	e.file, e.state, r.open = w, recvOpen, w
	return nil
}

func (w *writing) openPart() error {
	dir, name := w.r.name(w.e)
	in, err := w.r.hands.in(dir)
	if err != nil {
		return err
	}
	part := partName(name)
	if len(w.e.have.part) > 0 {
		w.f, err = openRegular(in, part, os.O_RDWR)
	}
	if w.f == nil {
		w.e.have.part = nil
		w.f, err = createPart(in, part)
	}
	if err != nil {
		return err
	}
	if err := preallocate(w.f, w.attrs.size); err != nil {
		w.f.Close()
		w.f = nil
		_ = in.Remove(part) // the error that counts is the one before
		return err
	}
	return nil
}

// failed removes the unfinished file where the disk is full, since it is what filled it.
func (w *writing) failed(err error) error {
	e := errorOf(w.e.path, err)
	if e.Code == CodeNoSpace {
		dir, name := w.r.name(w.e)
		if in, err := w.r.t.root.OpenRoot(orDot(dir)); err == nil {
			_ = in.Remove(partName(name)) // the error that counts is the one before
			in.Close()
		}
	}
	return e
}

// chunk checks that a chunk is the next one of the open file.
func (r *receiver) chunk(id, i int64) (*writing, error) {
	e, err := r.at(id, recvOpen)
	if err != nil {
		return nil, err
	}
	w := e.file
	if i < w.next || i >= chunks(w.attrs.size) {
		return nil, badFrame("chunk %d out of turn", i)
	}
	if i > w.next {
		w.gap = true // the sender could not read one; its finish says so
	}
	w.next = i + 1
	return w, nil
}

// note keeps the hash of the chunk that came, as long as all came.
func (w *writing) note(sum hash) {
	if !w.gap {
		w.hashes = append(w.hashes, sum)
	}
}

func (r *receiver) takeChunk(d *decoder, buf []byte) (kept bool, err error) {
	id, i, sum := d.size(), d.size(), d.hash()
	if d.err != nil {
		return false, d.err
	}
	w, err := r.chunk(id, i)
	if err != nil {
		return false, err
	}
	content := d.b
	if len(content) != chunkLen(w.attrs.size, i) {
		return false, badFrame("a chunk of %d bytes", len(content))
	}
	w.note(sum)
	w.sent += int64(len(content))
	w.copyOld()
	w.left.Add(1)
	r.do(func(h *hands) error {
		defer func() { r.bufs <- buf }()
		if hashChunk(content) != sum {
			return &Error{Code: CodeFailed, Path: w.e.path, Message: "what arrived is not what was sent"}
		}
		if w.f != nil {
			if _, err := w.f.WriteAt(content, i*chunkSize); err != nil {
				return w.failed(err)
			}
		}
		n := int64(len(content))
		r.s.m.did(w.e.path, 0, n, n)
		return w.done(h)
	})
	return true, nil
}

// takeCopy notes a chunk that is here already.
func (r *receiver) takeCopy(d *decoder) error {
	id, i, from, sum := d.size(), d.size(), d.byte(), d.hash()
	if err := d.end(); err != nil {
		return err
	}
	w, err := r.chunk(id, i)
	if err != nil {
		return err
	}
	if from > fromOld || w.e.skip {
		return badFrame("a copy of nothing")
	}
	list := *w.e.have.at(from)
	if i >= int64(len(list)) || list[i] != sum {
		return badFrame("a copy of a chunk that is not here")
	}
	w.note(sum)
	r.s.m.did(w.e.path, 0, int64(chunkLen(w.attrs.size, i)), 0)
	if from == fromOld && w.same == i && !w.gap {
		w.same++ // when all are, the old file stays
		return nil
	}
	w.copyOld()
	if from == fromOld {
		w.copyChunk(i, sum)
	}
	return nil
}

// copyOld copies the chunks that were put off.
func (w *writing) copyOld() {
	n := w.same
	w.same = -1
	for i := range n {
		w.copyChunk(i, w.hashes[i])
	}
}

// copyChunk has a worker copy one chunk of the old file.
func (w *writing) copyChunk(i int64, sum hash) {
	w.left.Add(1)
	w.r.do(func(h *hands) error {
		buf := <-w.r.bufs
		defer func() { w.r.bufs <- buf }()
		if cap(buf) < chunkSize {
			buf = make([]byte, 0, maxPayload)
		}
		dir, name := w.r.name(w.e)
		in, err := h.in(dir)
		if err != nil {
			return errorOf(w.e.path, err)
		}
		old, err := openRegular(in, name, os.O_RDONLY)
		if err != nil {
			return errorOf(w.e.path, err)
		}
		defer old.Close()
		content := buf[:chunkLen(w.attrs.size, i)]
		if _, err := old.ReadAt(content, i*chunkSize); err != nil || hashChunk(content) != sum {
			return &Error{Code: CodeChanged, Path: w.e.path, Message: "the file that is replaced changed meanwhile"}
		}
		if _, err := w.f.WriteAt(content, i*chunkSize); err != nil {
			return w.failed(err)
		}
		return w.done(h)
	})
}
