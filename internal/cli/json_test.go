package cli_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"haggle/internal/cli"
	"haggle/market"
)

func FuzzJSONSteersNoTerminalAndMeansTheSame(f *testing.F) {
	f.Add("plain ö 漢 😀 <&>", true)
	f.Add("\x1b]0;owned\a\u009b2J\u202e\u2028\ufeff\x7f\\u009b\"", false)
	f.Fuzz(func(t *testing.T, text string, indent bool) {
		var out bytes.Buffer
		if err := cli.WriteJSON(&out, map[string]string{"text": text}, indent); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if r != '\n' && market.Printable(string(r)) == "" {
				t.Errorf("%q holds %U", out.String(), r)
			}
		}
		plain, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		var got map[string]string
		if err := json.Unmarshal(plain, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got["text"] != want {
			t.Errorf("%q is read as %q, %v", text, got["text"], err)
		}
	})
}
