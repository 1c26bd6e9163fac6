package market_test

import (
	"strings"
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func TestEvidenceThatBothSignedIsAgreed(t *testing.T) {
	j := market.Judge(markettest.Evidence().Encode())
	if j.Verdict != market.VerdictAgreed || j.Receipts != 3 || j.Head.Total != 7000 || j.Exit == nil || j.Outcome == nil || j.Outcome.DiskAt == 0 {
		t.Errorf("verdict %s, %d receipts, total %s, checks %v", j.Verdict, j.Receipts, j.Head.Total, j.Checks)
	}
}

func TestEvidenceOfAKeptDiskAndExtensionsIsAgreed(t *testing.T) {
	j := market.Judge(markettest.Kept().Encode())
	if j.Verdict != market.VerdictAgreed || j.Receipts != 3 || j.Head.KeptMs != 3_600_000 || j.Terms.Budget != 2_000_000 || j.Terms.DurationMs != 1_800_000 {
		t.Errorf("verdict %s, %d receipts, head %+v, terms %+v, checks %v", j.Verdict, j.Receipts, j.Head, j.Terms, j.Checks)
	}
}

// Every byte of a file of evidence is covered by a check: whichever one is changed, the file is invalid and the failed
// check is named.
func TestEvidenceWithAnyByteChangedIsInvalid(t *testing.T) {
	t.Parallel()
	anyByteChanged(t, markettest.Evidence().Encode(), 0)
	anyByteChanged(t, markettest.Kept().Encode(), 0)
}

// anyByteChanged changes one bit of each byte from an offset on: the lowest and the highest in turn.
func anyByteChanged(t *testing.T, data []byte, from int) {
	t.Helper()
	for i := from; i < len(data); i++ {
		bit := []byte{0x01, 0x80}[i%2]
		data[i] ^= bit
		j := market.Judge(data)
		data[i] ^= bit
		if j.Verdict != market.VerdictInvalid {
			t.Fatalf("byte %d changed: %s", i, j.Verdict)
		}
		if last := j.Checks[len(j.Checks)-1]; last.OK || last.Detail == "" {
			t.Fatalf("byte %d changed: no check is named as failed", i)
		}
	}
}

func TestEvidenceJudgesWhatItDoesNotHold(t *testing.T) {
	full := markettest.Evidence()
	tests := []struct {
		name    string
		change  func(*market.Evidence)
		verdict market.Verdict
		check   string
	}{
		{"the final receipt is missing", func(e *market.Evidence) { e.Receipts = e.Receipts[:2] }, market.VerdictOpen, ""},
		{"no receipt at all", func(e *market.Evidence) { e.Receipts = nil }, market.VerdictOpen, ""},
		{"a receipt in the middle is missing", func(e *market.Evidence) { e.Receipts = [][]byte{e.Receipts[0], e.Receipts[2]} }, market.VerdictInvalid, "receipt 3 follows"},
		{"the final receipt lacks the renter", func(e *market.Evidence) { e.Receipts[2] = withoutRenter(t, e.Receipts[2]) }, market.VerdictOpen, ""},
		{"the rig signed two receipts of one number", func(e *market.Evidence) { e.Receipts = append(e.Receipts[:2:2], forked(t, *e)) }, market.VerdictFraud, "receipt 2 exists once"},
		{"there is no outcome", func(e *market.Evidence) { e.Outcome = nil }, market.VerdictAgreed, ""},
		{"the outcome is of another rig", func(e *market.Evidence) {
			e.Outcome = market.SealOutcome(markettest.Network, markettest.Renter(), markettest.Outcome(market.LeaseID{})).Encode()
		}, market.VerdictInvalid, "the outcome is signed"},
		{"the outcome is of another lease", func(e *market.Evidence) {
			e.Outcome = market.SealOutcome(markettest.Network, markettest.Rig(), markettest.Outcome(market.LeaseID{9})).Encode()
		}, market.VerdictInvalid, "the outcome is signed"},
		{"the network is another", func(e *market.Evidence) { e.Network = "lab-other" }, market.VerdictInvalid, "the offer is signed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := full
			e.Receipts = append([][]byte(nil), full.Receipts...)
			test.change(&e)
			j := market.Judge(e.Encode())
			last := j.Checks[len(j.Checks)-1]
			if j.Verdict != test.verdict || !strings.HasPrefix(last.Name, test.check) {
				t.Errorf("got %s, last check %+v", j.Verdict, last)
			}
		})
	}
}

func TestEvidenceCountsOnlyExtensionsThatBothSignedAndThatFollow(t *testing.T) {
	full := markettest.Kept()
	lease, err := market.DecodeSealed(full.Lease)
	if err != nil {
		t.Fatal(err)
	}
	first := markettest.Extension(lease.ID(), nil)
	sealed := func(change func(*market.Extension)) []byte {
		e := first
		change(&e)
		return markettest.Consented(e)
	}
	for name, c := range map[string]struct {
		extensions [][]byte
		check      string
	}{
		"none: more was billed than was leased": {nil, "receipt 3 follows"},
		"the second before the first":           {[][]byte{full.Extensions[1], full.Extensions[0]}, "extension 1 follows"},
		"the same twice":                        {[][]byte{full.Extensions[0], full.Extensions[0]}, "extension 2 follows"},
		"without the rig's consent":             {[][]byte{market.SealExtension(markettest.Network, markettest.Renter(), first).Encode()}, "extension 1 is signed"},
		"of another lease":                      {[][]byte{sealed(func(e *market.Extension) { e.Lease[0] ^= 1 })}, "extension 1 follows"},
		"a budget that falls":                   {[][]byte{sealed(func(e *market.Extension) { e.Budget = 1 })}, "extension 1 follows"},
		"signed by the rig alone": {[][]byte{
			market.SealExtension(markettest.Network, markettest.Rig(), first).Encode(),
		}, "extension 1 is signed"},
	} {
		e := full
		e.Extensions = c.extensions
		j := market.Judge(e.Encode())
		if last := j.Checks[len(j.Checks)-1]; j.Verdict != market.VerdictInvalid || !strings.HasPrefix(last.Name, c.check) {
			t.Errorf("%s: %s, last check %+v", name, j.Verdict, last)
		}
	}
}

func withoutRenter(t *testing.T, raw []byte) []byte {
	t.Helper()
	s, err := market.DecodeSealed(raw)
	if err != nil {
		t.Fatal(err)
	}
	s.Sigs = s.Sigs[:1]
	return s.Encode()
}

func forked(t *testing.T, e market.Evidence) []byte {
	t.Helper()
	r, _, err := market.OpenReceipt(e.Network, e.Receipts[1], markettest.Terms())
	if err != nil {
		t.Fatal(err)
	}
	r.WallMs++
	return market.SealReceipt(e.Network, markettest.Rig(), r).Encode()
}
