package filesync

import "encoding/hex"

// sum is the end of what is sent, with the digest that the receiver must find, too.
func (snd *sender) sum() done {
	snd.mu.Lock()
	defer snd.mu.Unlock()
	t := newTreeHash()
	for _, e := range snd.entries {
		switch {
		case e.state == sendSkipped || e.state == sendFailed:
			t.partial = true
			continue
		case e.kind == kindFile && e.state == sendSame:
			t.partial = true
		}
		t.add(e.path, &e.entry, e.hash)
	}
	sum := t.sum()
	if !t.partial && snd.skipped == 0 && snd.failed == 0 {
		snd.digest = hex.EncodeToString(sum[:])
	}
	return done{digest: sum, skipped: snd.skipped, failed: snd.failed}
}

func (snd *sender) firstFail() error {
	snd.mu.Lock()
	defer snd.mu.Unlock()
	if snd.fail == nil {
		return nil
	}
	return snd.fail
}

func (snd *sender) report() Report {
	p := snd.s.m.get()
	snd.mu.Lock()
	defer snd.mu.Unlock()
	r := Report{
		Files: p.Files, Bytes: p.Bytes, Sent: snd.sent, Same: snd.end.same, Skipped: snd.skipped + snd.end.skipped,
		Failed: snd.failed, Deleted: snd.end.deleted, Digest: snd.digest,
	}
	if r.Skipped > 0 {
		r.Digest = ""
	}
	return r
}
