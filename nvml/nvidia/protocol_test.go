package nvidia

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/nvml"
)

func TestFramesSurviveTheWire(t *testing.T) {
	in := reply{
		ID: 7, Info: &nvml.DriverInfo{Version: "550.163.01", CUDA: nvml.Some(12040), Library: DefaultLibrary},
		List:   &listing{UUIDs: []string{"GPU-1"}, Silent: 1},
		Card:   &nvml.Card{UUID: "GPU-1", MemoryBytes: 1, ECC: nvml.None[bool](nvml.NotSupported)},
		Sample: &nvml.Sample{UUID: "GPU-1", ThrottleReasons: nvml.Some(nvml.ThrottleIdle), ClockMHz: nvml.None[int](nvml.NoSymbol)},
		Event:  &nvml.HealthEvent{UUID: "GPU-1", Kind: nvml.EventXid, Code: 79, NeedsReset: nvml.Some(true)},
	}
	b, err := frame(in)
	if err != nil {
		t.Fatal(err)
	}
	var out reply
	if err := readFrame(bytes.NewReader(b), &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("reply (-sent +read):\n%s", diff)
	}
}

func TestBadFramesAreRefused(t *testing.T) {
	sized := func(n uint32, body string) string { return string(binary.BigEndian.AppendUint32(nil, n)) + body }
	for name, text := range map[string]string{
		"an empty frame":   sized(0, ""),
		"a huge frame":     sized(maxFrame+1, strings.Repeat(" ", maxFrame)+"1"),
		"a short frame":    sized(10, "{}"),
		"no JSON":          sized(1, "{"),
		"an unknown field": sized(9, `{"ip":"x"}`),
		"two values":       sized(4, "{}{}"),
	} {
		var r reply
		if err := readFrame(strings.NewReader(text), &r); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v, want a bad frame", name, err)
		}
	}
	var r reply
	if err := readFrame(strings.NewReader(""), &r); !errors.Is(err, io.EOF) || errors.Is(err, errFrame) {
		t.Errorf("the end of the stream: %v", err)
	}
	if _, err := frame(reply{Text: strings.Repeat("x", maxFrame)}); !errors.Is(err, errFrame) {
		t.Errorf("writing a huge frame: %v, want a bad frame", err)
	}
}

func TestAnswersThatNoCardGivesAreRefused(t *testing.T) {
	many := make([]string, maxCards+1)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	for name, r := range map[string]reply{
		"too many cards":       {List: &listing{UUIDs: many}},
		"fewer than no cards":  {List: &listing{Silent: -1}},
		"a card twice":         {List: &listing{UUIDs: []string{"a", "a"}}},
		"a card without name":  {List: &listing{UUIDs: []string{""}}},
		"a terminal escape":    {List: &listing{UUIDs: []string{"\x1b[2J"}}},
		"a card of no memory":  {Card: &nvml.Card{UUID: "GPU-1", Vendor: nvml.VendorNVIDIA, Model: "x", RawName: "x", PCIBusID: "x"}},
		"a sample of no card":  {Sample: &nvml.Sample{}},
		"a limit below zero":   {MilliWatt: -1},
		"a limit beyond all":   {MilliWatt: maxLimit + 1},
		"an event of our own":  {Event: &nvml.HealthEvent{UUID: "GPU-1", Kind: nvml.EventLost}},
		"an event below zero":  {Event: &nvml.HealthEvent{UUID: "GPU-1", Kind: nvml.EventXid, Code: -1}},
		"an event, odd advice": {Event: &nvml.HealthEvent{UUID: "GPU-1", Kind: nvml.EventXid, NeedsReset: nvml.Opt[bool]{State: 99}}},
	} {
		if r.check() == nil {
			t.Errorf("%s passes", name)
		}
	}
}

func FuzzReply(f *testing.F) {
	for _, text := range []string{
		`{"id":0}`, `{"id":3,"code":"lost"}`, `{"id":1,"list":{"uuids":["GPU-1"],"silent":0}}`,
		`{"id":1,"sample":{"uuid":"GPU-1","at_ns":0,"util_permille":5}}`,
		`{"id":0,"event":{"uuid":"GPU-1","kind":"xid","code":79,"at_ns":0,"needs_reset":true}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		framed := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
		var r reply
		if readFrame(bytes.NewReader(framed), &r) != nil || r.check() != nil {
			return
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%q was read as %+v, which does not write: %v", body, r, err)
		}
		var again reply
		if err := json.Unmarshal(text, &again); err != nil || again.check() != nil {
			t.Fatalf("%s does not read again: %v", text, err)
		}
	})
}

func FuzzShotReply(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"code":"no_card"}`, `{"bytes":5}`, `{"sliced":true,"lacks":["x"],"notes":["y"]}`,
		`{"specs":[{"kind":"nvidia.com/gpu","devices":[{"name":"GPU-1","containerEdits":{}}]}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		framed := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
		var r shotReply
		if readSized(bytes.NewReader(framed), &r, maxShot) != nil || r.check() != nil {
			return
		}
		for _, s := range r.Specs {
			_ = checkSpec(s)
		}
		if r.Code != "" && r.refused() == nil {
			t.Fatalf("the code %q is no error", r.Code)
		}
	})
}

func TestAReaderThatFallsBehindIsToldSo(t *testing.T) {
	var f feed
	events, err := f.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range eventBacklog + 1 {
		f.publish(nvml.HealthEvent{UUID: "GPU-1", Kind: nvml.EventLost})
	}
	n := 0
	for range events {
		n++
	}
	if n != eventBacklog {
		t.Errorf("%d events came before the channel was closed, want %d", n, eventBacklog)
	}
	for range maxReaders {
		if _, err := f.open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.open(t.Context()); err == nil {
		t.Error("there is no end of readers")
	}
}

func TestTheTailOfAChildsLastWordsIsKept(t *testing.T) {
	var last tail
	for _, text := range []string{"begin", strings.Repeat("x", maxStderr), "end"} {
		if n, err := last.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("write: %d, %v", n, err)
		}
	}
	if s := last.String(); len(s) != maxStderr || !strings.HasSuffix(s, "xend") {
		t.Errorf("%d bytes that end in %q", len(s), s[len(s)-8:])
	}
}
