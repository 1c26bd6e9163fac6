package p2p_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/iotest"

	"haggle/market"
	"haggle/p2p"
)

func FuzzReadFrame(f *testing.F) {
	frame, err := p2p.EncodeFrame(market.OfferMessage{Offer: []byte("an offer")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(frame)
	f.Add(frame[:len(frame)-1])
	f.Add([]byte{0x80, 0x80, 0x04, 1, 2, 3})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		rest := bytes.NewReader(data)
		body, err := p2p.ReadFrame(rest)
		if err != nil {
			return
		}
		if len(body) == 0 || len(body) > market.MaxFrame {
			t.Fatalf("a frame of %d bytes was let in", len(body))
		}
		read := data[:len(data)-rest.Len()]
		if again := append(binary.AppendUvarint(nil, uint64(len(body))), body...); !bytes.Equal(again, read) {
			t.Fatalf("frame %x was read as %x", read, again)
		}
		if _, err := market.DecodeMessage(body); err != nil && market.CodeOf(err) == market.CodeInternal {
			t.Fatalf("not a coded error: %v", err)
		}
	})
}

func TestAFrameIsReadAsItWasWritten(t *testing.T) {
	want := market.ChunkMessage{Data: bytes.Repeat([]byte{7}, market.MaxChunk)}
	frame, err := p2p.EncodeFrame(want)
	if err != nil {
		t.Fatal(err)
	}
	body, err := p2p.ReadFrame(iotest.OneByteReader(bytes.NewReader(frame)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := market.DecodeMessage(body)
	if err != nil {
		t.Fatal(err)
	}
	if chunk, ok := got.(market.ChunkMessage); !ok || !bytes.Equal(chunk.Data, want.Data) {
		t.Fatalf("got %T", got)
	}
}

func TestBadFramesAreRefusedByCode(t *testing.T) {
	for name, c := range map[string]struct {
		bytes string
		want  market.Code
	}{
		"one byte over the limit":      {"\x81\x80\x04", market.CodeTooLarge},
		"a length without end":         {"\xff\xff\xff\xff", market.CodeTooLarge},
		"an empty frame":               {"\x00", market.CodeBadEncoding},
		"a length with needless bytes": {"\x85\x00hello", market.CodeBadEncoding},
		"a length cut short":           {"\x85", market.CodeBadEncoding},
		"a body cut short":             {"\x05hell", market.CodeBadEncoding},
		"a body that never came":       {"\x80\x80\x04", market.CodeBadEncoding},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := p2p.ReadFrame(strings.NewReader(c.bytes)); market.CodeOf(err) != c.want {
				t.Errorf("got %v, want code %s", err, c.want)
			}
		})
	}
	if _, err := p2p.ReadFrame(strings.NewReader("")); !errors.Is(err, io.EOF) {
		t.Errorf("the end between frames is %v, want io.EOF", err)
	}
}

func TestAnOversizedFrameIsRefusedBeforeItsBodyIsRead(t *testing.T) {
	r := strings.NewReader("\x81\x80\x04" + strings.Repeat("x", market.MaxFrame+1))
	if _, err := p2p.ReadFrame(r); market.CodeOf(err) != market.CodeTooLarge {
		t.Fatal(err)
	}
	if r.Len() != market.MaxFrame+1 {
		t.Errorf("%d bytes of the body were read", market.MaxFrame+1-r.Len())
	}
}

func TestMemoryFollowsWhatArrivedAndNotTheClaimedLength(t *testing.T) {
	claim := []byte{0x80, 0x80, 0x04} // 64 KiB, of which nothing comes
	const frames = 1000
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	for range frames {
		_, _ = p2p.ReadFrame(bytes.NewReader(claim)) // its error is another test's matter
	}
	goruntime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / frames; got > 4<<10 {
		t.Errorf("%d bytes were set aside for a frame of which nothing came", got)
	}
}
