package filesync

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// name is where the entry is written, below the target.
func (r *receiver) name(e *recvEntry) (dir, name string) {
	if r.t.single != "" {
		return "", r.t.single
	}
	return cut(e.path)
}

// prepare makes what has no contents, and says what is missing of what has.
func (r *receiver) prepare(e *recvEntry) (answer byte, err error) {
	if e.skip {
		if e.kind == kindFile && r.t.fresh {
			e.state = recvFull // it comes without being asked for, and is dropped
		}
		return answerSkip, nil
	}
	if e.kind == kindFile && r.t.fresh {
		e.state = recvFull
		return answerFull, nil
	}
	dir, name := r.name(e)
	in, err := r.hands.in(dir)
	if err != nil {
		return 0, errorOf(e.path, err)
	}
	switch e.kind {
	case kindFolder:
		err = r.makeFolder(in, name)
	case kindLink:
		err = r.makeLink(in, name, e)
	default:
		return r.missing(in, name, e)
	}
	if err != nil {
		return 0, errorOf(e.path, err)
	}
	if e.skip {
		return answerSkip, nil
	}
	return answerNone, nil
}

// makeFolder makes a folder that this process can write to. Something else of that name gives way.
func (r *receiver) makeFolder(in *os.Root, name string) error {
	err := in.Mkdir(name, 0o700)
	if err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	fi, err := in.Lstat(name)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		if fi.Mode().Perm()&0o700 != 0o700 {
			return in.Chmod(name, fi.Mode().Perm()|0o700)
		}
		return nil
	}
	if err := in.Remove(name); err != nil {
		return err
	}
	return in.Mkdir(name, 0o700)
}

// makeLink makes a symlink, under another name first, so that what is there gives way at once.
func (r *receiver) makeLink(in *os.Root, name string, e *recvEntry) error {
	target := fromSlashed(e.target)
	if old, err := in.Readlink(name); err == nil && old == target {
		return nil
	}
	part := partName(name)
	err := in.Symlink(target, part)
	if errors.Is(err, fs.ErrExist) {
		if err = in.RemoveAll(part); err == nil {
			err = in.Symlink(target, part)
		}
	}
	if err != nil && r.names.windows {
		e.skip = true // where symlinks need a privilege that this process has not
		r.rep.Skipped++
		return nil
	}
	if err != nil {
		return err
	}
	return r.replace(in, part, name)
}

// replace gives the file part its name. A folder of that name gives way if it is empty, or if extras are to be deleted.
func (r *receiver) replace(in *os.Root, part, name string) error {
	if fi, err := in.Lstat(name); err == nil && fi.IsDir() {
		remove := in.Remove
		if r.deletes {
			remove = in.RemoveAll
		}
		if err := remove(name); err != nil {
			return err
		}
	}
	return in.Rename(part, name)
}

// missing says what of a file's contents is missing.
func (r *receiver) missing(in *os.Root, name string, e *recvEntry) (byte, error) {
	e.state = recvFull
	fi, err := in.Lstat(name)
	if err == nil && fi.Mode().IsRegular() {
		e.old = attrsOf(fi)
		quick := e.old
		if r.names.windows {
			quick.mode = e.mode
		}
		if quick == e.attrs && !r.checksum {
			e.state, e.same, e.blind = recvDone, true, true
			r.s.m.did("", 1, e.size, 0)
			return answerNone, nil
		}
		if e.old.size == e.size || e.size > smallFile {
			e.state = recvDelta
			return answerDelta, nil
		}
	}
	if e.size > smallFile {
		if fi, err := in.Lstat(partName(name)); err == nil && fi.Mode().IsRegular() {
			e.state = recvDelta
			return answerDelta, nil
		}
	}
	return answerFull, nil
}

// hashesPerFrame is how many hashes are told at a time.
const hashesPerFrame = 4096

// compare tells the sender the hashes of what is here of a file.
func (r *receiver) compare(h *hands, id int, e *recvEntry) error {
	dir, name := r.name(e)
	in, err := h.in(dir)
	if err != nil {
		return errorOf(e.path, err)
	}
	buf := <-r.bufs
	defer func() { r.bufs <- buf }()
	if cap(buf) < chunkSize {
		buf = make([]byte, 0, maxPayload)
	}
	for from, n := range []string{partName(name), name} {
		if err := r.tell(in, n, id, e, byte(from), buf[:chunkSize]); err != nil {
			return err
		}
	}
	// The sender must not be able to answer before this.
	e.ready.Store(true)
	return r.s.l.send(frameHaveEnd, appendUint(nil, uint64(id)))
}

// tell hashes one file in chunks and tells the hashes. What cannot be read is as if it were not there.
func (r *receiver) tell(in *os.Root, name string, id int, e *recvEntry, from byte, buf []byte) error {
	f, err := openRegular(in, name, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	list := e.have.at(from)
	told := 0
	flush := func() error {
		b := append(appendUint(nil, uint64(id)), from)
		b = appendUint(b, uint64(told))
		for _, h := range (*list)[told:] {
			b = append(b, h[:]...)
		}
		told = len(*list)
		return r.s.l.send(frameHave, b)
	}
	for i := range chunks(e.size) {
		n, err := f.ReadAt(buf[:chunkLen(e.size, i)], i*chunkSize)
		if err != nil && !errors.Is(err, io.EOF) || n == 0 && i > 0 || r.s.dead() {
			break
		}
		*list = append(*list, hashChunk(buf[:n]))
		if len(*list)-told == hashesPerFrame {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(*list) > told {
		return flush()
	}
	return nil
}

// openRegular opens a file that is one, and not what a symlink leads to.
func openRegular(in *os.Root, name string, flag int) (*os.File, error) {
	before, err := in.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	f, err := in.OpenFile(name, flag|openFlags, 0)
	if err != nil {
		return nil, err
	}
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) {
		f.Close()
		return nil, fs.ErrInvalid
	}
	return f, nil
}
