package filesync

import (
	"crypto/sha256"
	"math/bits"

	"lukechampine.com/blake3"
	"lukechampine.com/blake3/guts"
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
	return hashInOne(b)
}

// hashInOne is BLAKE3 on one goroutine. The library starts one for every 16 KiB and waits for them all; here many chunks are
// hashed at a time, and each must not wait for the others.
func hashInOne(b []byte) hash {
	const block = guts.MaxSIMD * guts.ChunkSize
	var lefts [64][8]uint32 // roots of whole subtrees, by height above a block, where done has a bit
	var done uint64         // blocks
	for ; len(b) > block; b = b[block:] {
		v := guts.ChainingValue(guts.CompressBuffer((*[block]byte)(b), block, &guts.IV, done*guts.MaxSIMD, 0))
		height := 0
		for ; done&(1<<height) != 0; height++ {
			v = guts.ChainingValue(guts.ParentNode(lefts[height], v, &guts.IV, 0))
		}
		lefts[height] = v
		done++
	}
	var last [block]byte
	n := guts.CompressBuffer(&last, copy(last[:], b), &guts.IV, done*guts.MaxSIMD, 0)
	for height := range bits.Len64(done) {
		if done&(1<<height) != 0 {
			n = guts.ParentNode(lefts[height], guts.ChainingValue(n), &guts.IV, 0)
		}
	}
	n.Flags |= guts.FlagRoot
	words := guts.WordsToBytes(guts.CompressNode(n))
	return hash(words[:32])
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
