package filesync

import (
	"encoding/hex"
	"errors"
	"os"
	"time"
)

// finish does what can only be done when all files are there: deletions, attributes of folders, and bringing it all to the disk.
func (r *receiver) finish(buf []byte) error {
	d, err := decodeDone(buf)
	if err != nil {
		return err
	}
	r.busy.Wait()
	if r.s.dead() {
		return nil
	}
	if !r.listed || r.open != nil {
		return badFrame("an end before everything came")
	}
	for _, e := range r.list {
		if e.state != recvDone && e.state != recvLast && e.state != recvFailed {
			return badFrame("an end before everything came")
		}
	}
	sum, whole := r.sum()
	if sum != d.digest {
		return &Error{Code: CodeFailed, Message: "what arrived is not what was sent"}
	}
	if err := r.tidy(); err != nil {
		return err
	}
	for _, e := range r.list {
		if e.kind == kindFile && e.same {
			r.rep.Same++
		}
	}
	res := result{same: r.rep.Same, skipped: r.rep.Skipped, deleted: r.rep.Deleted}
	r.rep.Skipped += d.skipped
	if whole && r.rep.Skipped == 0 && r.rep.Failed == 0 {
		r.rep.Digest = hex.EncodeToString(sum[:])
	}
	return r.s.l.send(frameResult, res.encode())
}

func (r *receiver) tidy() error {
	if r.t.single == "" {
		if r.deletes && !r.partial && r.rep.Failed == 0 {
			if err := r.deleteExtras(); err != nil {
				return err
			}
		}
		if err := r.dressFolders(); err != nil {
			return err
		}
	}
	if r.sync {
		if err := syncAll(r.t.root); err != nil {
			return errorOf("", err)
		}
	}
	return nil
}

// dressFolders gives the folders their modes and times, the innermost first.
func (r *receiver) dressFolders() error {
	for i := len(r.list) - 1; i >= 0; i-- {
		e := r.list[i]
		if e.kind != kindFolder || e.skip {
			continue
		}
		dir, name := cut(e.path)
		in, err := r.hands.in(dir)
		if err != nil {
			return errorOf(e.path, err)
		}
		if err := dress(in, name, e.attrs); err != nil {
			return errorOf(e.path, err)
		}
	}
	return nil
}

// dress sets mode and time of a file or folder by its name.
func dress(in *os.Root, name string, a attrs) error {
	if err := in.Chmod(name, os.FileMode(a.mode)); err != nil {
		return err
	}
	t := time.Unix(0, a.mtime)
	return in.Chtimes(name, t, t)
}

// takeFail notes that the sender cannot send an entry, or a part of its tree.
func (r *receiver) takeFail(d *decoder) error {
	id := d.size() - 1
	if d.err != nil {
		return d.err
	}
	err := decodeError(d.b)
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	if id >= 0 {
		ent, err := r.at(id, recvFull, recvReady, recvOpen)
		if err != nil {
			return err
		}
		if ent.file != nil {
			r.abandon(ent)
		}
		ent.state = recvFailed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Code == CodeNotFound {
		return nil // it vanished; the sender counts it
	}
	r.rep.Failed++
	if r.fail == nil {
		r.fail = e
	}
	return nil
}

func (r *receiver) firstFail() error {
	if r.fail == nil {
		return nil
	}
	return r.fail
}

func (r *receiver) report() Report {
	p := r.s.m.get()
	rep := r.rep
	rep.Files, rep.Bytes, rep.Sent = p.Files, p.Bytes, p.Sent
	return rep
}

// sum is the digest of what came, and whether it is the whole tree's.
func (r *receiver) sum() (sum hash, whole bool) {
	t := newTreeHash()
	for _, e := range r.list {
		if e.state == recvFailed || e.skip && !r.t.fresh {
			t.partial = true
			continue
		}
		t.partial = t.partial || e.blind || e.skip
		t.add(e.path, &e.entry, e.hash)
	}
	return t.sum(), !t.partial
}
