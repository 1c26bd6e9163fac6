package filesync

import (
	"os"
	"time"
)

// takeFinish ends a file, or begins it again because it changed while the sender read it.
func (r *receiver) takeFinish(d *decoder) error {
	id, status := d.size(), d.byte()
	if err := d.end(); err != nil {
		return err
	}
	e, err := r.at(id, recvOpen)
	if err != nil {
		return err
	}
	w := e.file
	switch status {
	case finishAgain:
		if e.tried {
			return badFrame("a file that changes for ever")
		}
		w.copyOld()
		r.abandon(e)
		e.tried, e.state, e.have = true, recvReady, haves{part: w.hashes}
		return nil
	case finishDone:
	default:
		return badFrame("an unknown end of a file")
	}
	if w.gap || w.next != chunks(w.attrs.size) {
		return badFrame("a file that ends early")
	}
	e.state, e.hash, e.file, r.open = recvLast, hashFile(w.hashes), nil, nil
	e.same = w.sent == 0 && w.attrs.size > 0
	if w.same == w.next && e.old.size == w.attrs.size {
		r.do(w.keepOld)
		return nil
	}
	w.copyOld()
	r.do(w.done)
	return nil
}

// abandon closes a file that is not finished, when nobody writes to it any more.
func (r *receiver) abandon(e *recvEntry) {
	r.busy.Wait()
	if e.file.f != nil {
		e.file.f.Close()
	}
	e.file, r.open = nil, nil
}

// done is called when a chunk is written, and when the last came. Whoever is the last gives the file its name.
func (w *writing) done(h *hands) error {
	if w.left.Add(-1) > 0 {
		return nil
	}
	w.r.s.m.did(w.e.path, 1, 0, 0)
	if w.f == nil {
		return nil
	}
	if err := w.commit(h); err != nil {
		return w.failed(err)
	}
	return nil
}

func (w *writing) commit(h *hands) error {
	err := w.f.Truncate(w.attrs.size)
	if e := w.f.Chmod(os.FileMode(w.attrs.mode)); err == nil && !w.r.names.windows {
		err = e
	}
	if err == nil && w.r.sync {
		err = syncOne(w.f)
	}
	if e := w.f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	dir, name := w.r.name(w.e)
	in, err := h.in(dir)
	if err != nil {
		return err
	}
	t := time.Unix(0, w.attrs.mtime)
	if err := in.Chtimes(partName(name), t, t); err != nil {
		return err
	}
	return w.r.replace(in, partName(name), name)
}

// keepOld leaves the file that is there, which has the right contents.
func (w *writing) keepOld(h *hands) error {
	w.f.Close()
	dir, name := w.r.name(w.e)
	in, err := h.in(dir)
	if err == nil {
		err = in.Remove(partName(name))
	}
	if err == nil {
		err = dress(in, name, w.attrs)
	}
	if err != nil {
		return errorOf(w.e.path, err)
	}
	w.r.s.m.did(w.e.path, 1, 0, 0)
	return nil
}
