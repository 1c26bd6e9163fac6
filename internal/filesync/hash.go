package filesync

import (
	"crypto/sha256"

	"lukechampine.com/blake3"
)

const (
	// chunkSize is the unit in which contents of files are compared and sent.
	chunkSize = 1 << 20
	// smallFile is the most bytes of a file that travels together with others in one frame.
	smallFile = 64 << 10
	// smallBatch is how many bytes of small files are gathered for one frame.
	smallBatch = 256 << 10
)

type hash = [32]byte

// hashChunk is the hash of one chunk. BLAKE3 is the faster one for long chunks and SHA-256 for short ones, where it takes a
// seventh of the time.
func hashChunk(b []byte) hash {
	if len(b) <= smallFile {
		return sha256.Sum256(b)
	}
	return blake3.Sum256(b)
}

// hashFile is the hash of a file's contents: that of its only chunk, or the BLAKE3 of the hashes of its chunks.
func hashFile(chunks []hash) hash {
	if len(chunks) == 1 {
		return chunks[0]
	}
	h := blake3.New(32, nil)
	for i := range chunks {
		_, _ = h.Write(chunks[i][:]) // a hash takes everything
	}
	return hash(h.Sum(nil))
}

// chunks is how many chunks a file of size bytes has. An empty file has one, which is empty.
func chunks(size int64) int64 {
	return max(1, (size+chunkSize-1)/chunkSize)
}

// chunkLen is the length of chunk i of a file of size bytes.
func chunkLen(size, i int64) int {
	return int(min(chunkSize, size-i*chunkSize))
}

// treeHash sums entries in their order.
type treeHash struct {
	h   *blake3.Hasher
	buf []byte
	// partial is set when something is not in the sum, or a file's contents were not read.
	partial bool
}

func newTreeHash() *treeHash { return &treeHash{h: blake3.New(32, nil)} }

func (t *treeHash) add(path string, e *entry, contents hash) {
	b := append(t.buf[:0], e.kind, byte(e.mode>>8), byte(e.mode))
	b = appendString(b, path)
	switch e.kind {
	case kindFile:
		b = appendUint(b, uint64(e.size))
		b = append(b, contents[:]...)
	case kindLink:
		b = appendString(b, e.target)
	}
	t.buf = b
	_, _ = t.h.Write(b) // a hash takes everything
}

func (t *treeHash) sum() hash { return hash(t.h.Sum(nil)) }
