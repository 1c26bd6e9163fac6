package market

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestWhatIsPackedIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p packer
		words := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 1, 40), 1, 8).Draw(t, "words")
		var forms []string
		var records [][]byte
		for range rapid.IntRange(1, 12).Draw(t, "records") {
			record := slices.Concat(rapid.SliceOfN(rapid.SampledFrom(words), 0, 60).Draw(t, "record")...)
			record = append(record, bytes.Repeat([]byte{7}, rapid.SampledFrom([]int{0, 3, 18, 19, 20, 273, 274, 275, 2000}).Draw(t, "run"))...)
			record = record[:min(len(record), MaxOffer)]
			form, _ := p.pack(Key{byte(len(records))}, record)
			records, forms = append(records, record), append(forms, string(form))
			if rapid.Bool().Draw(t, "learn") {
				p.learn(record)
			}
		}
		for i := range records {
			if got := p.unpack(Key{byte(i)}, forms[i]); !bytes.Equal(got, records[i]) {
				t.Fatalf("record %d of %d bytes came back as %d", i, len(records[i]), len(got))
			}
		}
	})
}
