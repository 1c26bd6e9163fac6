package market_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"haggle/market"
)

// TestOtherPeoplesVectorsAgreeOnSignatures runs the ed25519 vectors of Project Wycheproof: malleable, cut and padded signatures,
// values out of range, and good ones.
func TestOtherPeoplesVectorsAgreeOnSignatures(t *testing.T) {
	data, err := os.ReadFile("testdata/wycheproof/eddsa_test.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		NumberOfTests int
		TestGroups    []struct {
			Key   struct{ Pk string }
			Tests []struct {
				TcID              int `json:"tcId"`
				Comment, Msg, Sig string
				Result            string
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	bytes := func(digits string) []byte {
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ran := 0
	for _, group := range file.TestGroups {
		key := market.Key(bytes(group.Key.Pk))
		for _, v := range group.Tests {
			ran++
			if got := market.Verifies(key, bytes(v.Msg), bytes(v.Sig)); got != (v.Result == "valid") {
				t.Errorf("vector %d (%s) is %s, and we say %t", v.TcID, v.Comment, v.Result, got)
			}
		}
	}
	if ran != file.NumberOfTests || ran < 100 {
		t.Errorf("%d of %d vectors ran", ran, file.NumberOfTests)
	}
}
