package filesync

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
)

// digestTree reads a whole tree.
func digestTree(ctx context.Context, root string, ignore bool) (string, error) {
	src, err := openLocalSource(root)
	if err != nil {
		return "", err
	}
	defer src.close()
	t := newTreeHash()
	snd := sender{src: src}
	h := &hands{root: src.root}
	defer h.close()
	buf := make([]byte, chunkSize)
	s := scanner{ignore: ignore, workers: workers(0)}
	s.emit = func(e *entry) error {
		var sum hash
		if e.kind == kindFile {
			var err error
			if sum, err = snd.contents(ctx, h, e, buf); err != nil {
				return errorOf(e.path, err)
			}
		}
		t.add(e.path, e, sum)
		return nil
	}
	if err := s.run(ctx, src); err != nil {
		return "", err
	}
	if s.firstErr != nil {
		return "", s.firstErr
	}
	sum := t.sum()
	return hex.EncodeToString(sum[:]), nil
}

// contents hashes one file.
func (snd *sender) contents(ctx context.Context, h *hands, e *entry, buf []byte) (hash, error) {
	f, a, err := snd.open(h, &sendEntry{entry: *e})
	if err != nil {
		return hash{}, err
	}
	defer f.Close()
	e.attrs = a
	var hashes []hash
	for i := range chunks(a.size) {
		if ctx.Err() != nil {
			return hash{}, context.Cause(ctx)
		}
		content := buf[:chunkLen(a.size, i)]
		if _, err := f.ReadAt(content, i*chunkSize); err != nil && (!errors.Is(err, io.EOF) || len(content) > 0) {
			return hash{}, err
		}
		hashes = append(hashes, hashChunk(content))
	}
	return hashFile(hashes), nil
}
