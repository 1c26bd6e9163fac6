package filesync

import (
	"math/rand/v2"
	"testing"

	"lukechampine.com/blake3"
)

func TestAHashOnOneGoroutineIsBLAKE3(t *testing.T) {
	random := rand.NewChaCha8([32]byte{7})
	b := make([]byte, 3<<20)
	if _, err := random.Read(b); err != nil {
		t.Fatal(err)
	}
	sizes := []int{0, 1, 63, 64, 65, 1023, 1024, 1025, 16383, 16384, 16385, 17408, 32768, 32769, 65537, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3 << 20}
	for range 200 {
		sizes = append(sizes, int(random.Uint64()%uint64(len(b))))
	}
	for _, n := range sizes {
		if got, want := hashInOne(b[:n]), blake3.Sum256(b[:n]); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
}

func BenchmarkHashOfAChunk(b *testing.B) {
	chunk := make([]byte, chunkSize)
	b.SetBytes(chunkSize)
	b.ReportAllocs()
	for range b.N {
		hashChunk(chunk)
	}
}
