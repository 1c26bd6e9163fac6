package market_test

import (
	"bytes"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"haggle/market"
)

func TestCanonicalFormIsTheOnlyFormThatIsRead(t *testing.T) {
	tests := []struct {
		name string
		data []byte
		ok   bool
	}{
		{"a map with ascending keys", []byte{0xa2, 1, 2, 3, 4}, true},
		{"nested arrays and strings", []byte{0x82, 0x61, 'a', 0x41, 1}, true},
		{"booleans", []byte{0x82, 0xf4, 0xf5}, true},
		{"nothing at all", nil, false},
		{"keys out of order", []byte{0xa2, 3, 4, 1, 2}, false},
		{"a key twice", []byte{0xa2, 1, 2, 1, 3}, false},
		{"an integer in two bytes where one is enough", []byte{0x18, 0x05}, false},
		{"an integer in eight bytes where four are enough", []byte{0x1b, 0, 0, 0, 0, 1, 0, 0, 0}, false},
		{"a length in two bytes where one is enough", []byte{0x58, 0x01, 0xff}, false},
		{"an indefinite array", []byte{0x9f, 1, 0xff}, false},
		{"a float", []byte{0xf9, 0x3c, 0x00}, false},
		{"null", []byte{0xf6}, false},
		{"a tag", []byte{0xc1, 1}, false},
		{"bytes after the end", []byte{1, 1}, false},
		{"a string longer than the data", []byte{0x5a, 0xff, 0xff, 0xff, 0xff}, false},
		{"an array longer than the data", []byte{0x9a, 0xff, 0xff, 0xff, 0xff}, false},
		{"deep nesting", bytes.Repeat([]byte{0x81}, 100), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := market.CheckCanonical(test.data); (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FuzzCanonical compares the one-pass check with the slow way: decode with the library, encode again, compare.
func FuzzCanonical(f *testing.F) {
	f.Add([]byte{0xa2, 1, 2, 3, 4})
	f.Add([]byte{0x82, 0xf4, 0x42, 1, 2})
	f.Add(market.EncodeAny(map[int]any{1: "x", 2: []int{1, 2, 300}}))
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if market.CheckCanonical(data) != nil {
			return
		}
		var v any
		if err := cbor.Unmarshal(data, &v); err != nil {
			return // out of the library's own bounds, or text that is not UTF-8: the typed decoder refuses it later
		}
		again, err := enc.Marshal(v)
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%x was taken for canonical, but encodes as %x (%v)", data, again, err)
		}
	})
}
