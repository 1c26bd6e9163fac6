package runtime_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"haggle/runtime"
)

func TestALogGivesBackBothStreams(t *testing.T) {
	var file, out, errs bytes.Buffer
	w := runtime.NewLogWriter(&file, 1<<20)
	long := strings.Repeat("x", 3*runtime.MaxLogPayload+5)
	for _, p := range []struct {
		to io.Writer
		s  string
	}{{w.Stdout(), "one"}, {w.Stderr(), "bad"}, {w.Stdout(), long}, {w.Stderr(), ""}} {
		if n, err := io.WriteString(p.to, p.s); err != nil || n != len(p.s) {
			t.Fatalf("wrote %d: %v", n, err)
		}
	}
	whole := int64(file.Len())
	if offset, ended, err := runtime.Demux(bytes.NewReader(file.Bytes()), io.Discard, io.Discard); offset != whole || ended || err != nil {
		t.Errorf("before the end: %d %v %v", offset, ended, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Stdout().Write([]byte("late")); err == nil {
		t.Error("a write after the end succeeded")
	}
	if _, ended, err := runtime.Demux(&file, &out, &errs); !ended || err != nil {
		t.Errorf("ended %v: %v", ended, err)
	}
	if out.String() != "one"+long || errs.String() != "bad" {
		t.Errorf("got %d bytes out, %q errors", out.Len(), errs.String())
	}
}

func TestALogIsCutAtItsLimitAndSaysSo(t *testing.T) {
	var file, out, errs bytes.Buffer
	w := runtime.NewLogWriter(&file, 100)
	for range 50 {
		if n, err := w.Stdout().Write([]byte("0123456789")); n != 10 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if file.Len() > 200 {
		t.Errorf("the file has %d bytes", file.Len())
	}
	if _, ended, err := runtime.Demux(&file, &out, &errs); !ended || err != nil {
		t.Errorf("ended %v: %v", ended, err)
	}
	if !strings.HasPrefix(out.String(), "01234567890123") || strings.Count(errs.String(), "log is full") != 1 {
		t.Errorf("out %q, errors %q", out.String(), errs.String())
	}
}

// smallDisk takes so many bytes; what is over is refused, as a full disk does, the front of a write included.
type smallDisk struct {
	bytes.Buffer
	room int
}

func (d *smallDisk) Write(p []byte) (int, error) {
	n, _ := d.Buffer.Write(p[:min(len(p), d.room)])
	if d.room -= n; n < len(p) {
		return n, errors.New("no space left")
	}
	return n, nil
}

func TestALogGoesOnWhenThereIsRoomAgainAndSaysWhatIsMissing(t *testing.T) {
	for room := range 60 {
		disk := &smallDisk{room: room}
		w := runtime.NewLogWriter(disk, 1<<20)
		for _, line := range []string{"one\n", "two\n", "three\n", "four\n"} {
			if n, err := w.Stdout().Write([]byte(line)); n != len(line) || err != nil {
				t.Fatalf("room %d: a job's output is held up: %d, %v", room, n, err)
			}
		}
		disk.room = 1 << 10
		_, _ = w.Stdout().Write([]byte("five\n"))
		if err := w.Close(); err != nil {
			t.Fatalf("room %d: %v", room, err)
		}
		var out, errs bytes.Buffer
		if _, ended, err := runtime.Demux(&disk.Buffer, &out, &errs); !ended || err != nil {
			t.Fatalf("room %d: ended %v: %v", room, ended, err)
		}
		whole := "one\ntwo\nthree\nfour\nfive\n"
		missing := len(whole) - out.Len()
		kept := strings.HasPrefix(whole, strings.TrimSuffix(out.String(), "five\n")) && strings.HasSuffix(out.String(), "five\n")
		told := missing == 0 && errs.Len() == 0 || strings.Contains(errs.String(), "haggle: "+strconv.Itoa(missing)+" bytes of output are missing")
		if !kept || !told {
			t.Errorf("room %d: out %q, errors %q", room, out.String(), errs.String())
		}
	}
}

func TestAnEndMarkThatFoundNoRoomIsWrittenLater(t *testing.T) {
	for room := range 8 {
		disk := &smallDisk{room: room}
		w := runtime.NewLogWriter(disk, 1<<20)
		if err := w.Close(); err == nil {
			t.Fatalf("room %d: the fault is hidden", room)
		}
		disk.room = 1 << 10
		if err := errors.Join(w.Close(), w.Close()); err != nil {
			t.Fatal(err)
		}
		if offset, ended, err := runtime.Demux(&disk.Buffer, io.Discard, io.Discard); offset != 8 || !ended || err != nil || disk.Len() != 0 {
			t.Errorf("room %d: offset %d ended %v: %v, %d bytes follow", room, offset, ended, err, disk.Len())
		}
	}
}

func TestDemuxRefusesHostileBytes(t *testing.T) {
	record := func(stream byte, size uint32, payload string) string {
		h := make([]byte, 8)
		h[0] = stream
		binary.BigEndian.PutUint32(h[4:], size)
		return string(h) + payload
	}
	for name, c := range map[string]struct {
		in   string
		want error
	}{
		"an unknown stream":           {record(3, 1, "x"), runtime.ErrBadLog},
		"a payload over the bound":    {record(1, runtime.MaxLogPayload+1, ""), runtime.ErrBadLog},
		"the largest length":          {record(2, 1<<32-1, ""), runtime.ErrBadLog},
		"an end mark with a payload":  {record(0, 1, "x"), runtime.ErrBadLog},
		"bytes where zeros belong":    {"\x01\x00\x01\x00\x00\x00\x00\x00", runtime.ErrBadLog},
		"a header that stops short":   {"\x01\x00\x00", io.ErrUnexpectedEOF},
		"a payload that stops short":  {record(1, 5, "abc"), io.ErrUnexpectedEOF},
		"a payload that is not there": {record(1, 5, ""), io.ErrUnexpectedEOF},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			good := record(1, 2, "ok")
			offset, ended, err := runtime.Demux(strings.NewReader(good+c.in), io.Discard, io.Discard)
			if !errors.Is(err, c.want) || ended || offset != int64(len(good)) {
				t.Errorf("offset %d ended %v: %v", offset, ended, err)
			}
		})
	}
}

func FuzzDemuxTakesWholeRecordsOnly(f *testing.F) {
	var b bytes.Buffer
	w := runtime.NewLogWriter(&b, 1<<10)
	_, _ = w.Stdout().Write([]byte("hello"))
	_, _ = w.Stderr().Write([]byte("world"))
	_ = w.Close()
	f.Add(b.Bytes())
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0x80, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var out, errs bytes.Buffer
		offset, ended, err := runtime.Demux(bytes.NewReader(data), &out, &errs)
		if offset < 0 || offset > int64(len(data)) || int64(out.Len()+errs.Len()) > offset {
			t.Fatalf("offset %d of %d, %d+%d bytes out", offset, len(data), out.Len(), errs.Len())
		}
		if ended && err != nil {
			t.Fatalf("ended with %v", err)
		}
		// What was taken is a log of its own.
		again, _, err := runtime.Demux(bytes.NewReader(data[:offset]), io.Discard, io.Discard)
		if again != offset || err != nil {
			t.Fatalf("the front of %d bytes gives %d: %v", offset, again, err)
		}
	})
}
