package filesync

import "context"

// scan lists the tree.
func (snd *sender) scan() error {
	frame := startFrame(nil, frameList)
	first := 0
	var files, bytes int64
	flush := func() error {
		if len(frame) == headerSize {
			return nil
		}
		if !snd.submit(&job{frame: seal(frame)}) {
			return context.Cause(snd.s.ctx)
		}
		snd.announce(first)
		frame = startFrame(nil, frameList)
		return nil
	}
	sc := scanner{ignore: snd.ignore, workers: snd.workers}
	sc.emit = func(e *entry) error {
		snd.mu.Lock()
		if len(frame) == headerSize {
			first = len(snd.entries)
		}
		snd.entries = append(snd.entries, &sendEntry{entry: *e})
		snd.mu.Unlock()
		frame = e.append(frame)
		if e.kind == kindFile {
			files++
			bytes += e.size
			snd.s.m.found(1, e.size)
		}
		if len(frame) > 16<<10 {
			return flush()
		}
		return nil
	}
	err := sc.run(snd.s.ctx, snd.src)
	if err == nil {
		err = flush()
	}
	if err != nil {
		return err
	}
	snd.s.m.scanned()
	end := listEnd{incomplete: sc.firstErr != nil, entries: sc.count, files: files, bytes: bytes, skipped: sc.skipped}
	snd.submit(&job{frame: seal(append(startFrame(nil, frameListEnd), end.encode()...))})
	if sc.firstErr != nil {
		frame := snd.failFrame(nil, -1, errorOf("", sc.firstErr))
		snd.submit(&job{frame: frame})
	}
	snd.mu.Lock()
	defer snd.mu.Unlock()
	snd.skipped += sc.skipped
	snd.listed = true
	snd.wake.Broadcast()
	return nil
}

// announce queues the files of a list that was just submitted, where the receiver has nothing.
func (snd *sender) announce(first int) {
	if !snd.fresh {
		return
	}
	snd.mu.Lock()
	defer snd.mu.Unlock()
	for i := first; i < len(snd.entries); i++ {
		e := snd.entries[i]
		if e.kind != kindFile {
			e.state = sendSame
			continue
		}
		e.state = sendAsked
		snd.wanted = append(snd.wanted, want{id: i, delta: e.size > smallFile})
		snd.pending++
	}
	snd.answers = len(snd.entries)
	snd.wake.Broadcast()
}
