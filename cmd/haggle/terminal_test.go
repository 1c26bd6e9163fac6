package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAJobCannotSteerTheTerminal(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain text":                   {"loss 2.3\tacc 0.1\r\nnext ö 漢 ±\n", "loss 2.3\tacc 0.1\r\nnext ö 漢 ±\n"},
		"colours":                      {"\x1b[1;31mred\x1b[0m", "red"},
		"a title":                      {"a\x1b]0;owned\ab", "ab"},
		"a title that ends otherwise":  {"a\x1b]0;owned\x1b\\b", "ab"},
		"a string that never ends":     {"a\x1b]52;c;\nb", "ab"},
		"a device control string":      {"a\x1bPq#0\x1b\\b", "ab"},
		"a cursor saved":               {"a\x1b7b", "ab"},
		"a character set":              {"a\x1b(0b", "ab"},
		"a sequence within a sequence": {"a\x1b[\x1b[2Jb", "ab"},
		"one-character controls":       {"a\u009b2Jb\u0085c", "abc"},
		"bells and backspaces":         {"a\a\b\x7fb\x00", "ab"},
		"an escape within a string":    {"a\x1b]x\x1b[2Jb", "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			var whole, bytewise bytes.Buffer
			if n, err := (&plainWriter{w: &whole}).Write([]byte(c.in)); n != len(c.in) || err != nil {
				t.Fatalf("wrote %d, %v", n, err)
			}
			w := &plainWriter{w: &bytewise}
			for i := range len(c.in) {
				if _, err := w.Write([]byte{c.in[i]}); err != nil {
					t.Fatal(err)
				}
			}
			if whole.String() != c.want || bytewise.String() != c.want {
				t.Errorf("got %q at once and %q bytewise, want %q", whole.String(), bytewise.String(), c.want)
			}
		})
	}
}

func FuzzPlainWriterLetsNoControlThrough(f *testing.F) {
	f.Add([]byte("a\x1b[1mb\xc2\x9b2J\xc2"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		if _, err := (&plainWriter{w: &out}).Write(data); err != nil {
			t.Fatal(err)
		}
		for text := out.String(); text != ""; {
			r, size := utf8.DecodeRuneInString(text)
			if r < 0x20 && !strings.ContainsRune("\n\t\r", r) || r >= 0x7f && r < 0xa0 {
				t.Fatalf("%q lets %U through in %q", data, r, out.String())
			}
			text = text[size:]
		}
	})
}
