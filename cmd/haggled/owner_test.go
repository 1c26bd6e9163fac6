//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haggle/internal/view"
)

func TestTheOwnerTrustsListsAndRemovesAKey(t *testing.T) {
	s := newShell(t)
	key := ada().String()
	s.run(0, "trust")
	s.wants(s.talk, "no owner is trusted", "`haggled trust KEY` adds one")
	s.run(0, "trust", key, "--name", "Ada", "--credit", "20", "--guarantor")
	s.wants(s.talk, key+" may rent here on credit: at most 20.00 USD")
	s.run(0, "trust")
	s.wants(s.out, "KEY", key, "Ada", "1.25 USD", "at most 20.00 USD", "guarantor")
	s.run(0, "trust", "--json")
	var list []view.Owner
	if err := json.Unmarshal([]byte(s.out), &list); err != nil || len(list) != 1 || list[0].Key != key {
		t.Errorf("the list is %s, %v", s.out, err)
	}
	s.run(0, "status")
	s.wants(s.out, "1 trusted owner; `haggled trust` lists it")
	s.run(0, "trust", key, "--remove")
	s.wants(s.talk, key+" is not trusted any more; leases that are signed go on")
	s.run(3, "trust", key, "--remove")
	s.wants(s.talk, "is not among the trusted owners")
}

func TestTrustTakesNothingButAKey(t *testing.T) {
	s := newShell(t)
	s.run(2, "trust", "nobody")
	s.wants(s.talk, "nobody is not a key")
	s.run(2, "trust", "--remove")
	s.run(2, "trust", "--name", "Ada")
	s.run(2, "trust", ada().String(), "--remove", "--name", "Ada")
	s.run(2, "trust", ada().String(), "more")
}

func TestTheOwnerReadsItsBooksAndConfirmsMoney(t *testing.T) {
	s := newShell(t)
	s.run(0, "ledger")
	s.wants(s.out, "OWED", ada().String(), "1.25")
	s.run(0, "invoice", "Ada", "--format", "csv")
	s.wants(s.out, "slots", "1.25")
	s.run(2, "invoice", "Ada", "--format", "pdf")
	s.run(0, "history", ada().String())
	s.wants(s.out, "3")
	s.run(0, "confirm", "cafecafe", "--amount", "1.25", "--reference", "cash")
	s.wants(s.out, "1.25 USD paid in all")
	s.run(2, "confirm", "cafecafe", "--amount", "much")
	s.run(3, "confirm", "cafecafe")
	s.wants(s.talk, "nothing is open to be confirmed")
	s.run(0, "status")
	s.wants(s.out, "hand (`haggled confirm` says that it came)", "up to 5.00 USD for each trusted owner; 1.25 USD are owed now", "RISK")
}

func TestTakebackShowsWhatItMeansAndAsks(t *testing.T) {
	s := newShell(t)
	withheld := func(want bool) {
		t.Helper()
		s.run(0, "cards")
		if strings.Contains(s.out, "withheld") != want {
			t.Errorf("withheld: want %t\n%s", want, s.out)
		}
	}
	for _, no := range []string{"\n", "n\n", "yessir\n"} {
		s.answer = no
		s.run(1, "takeback", "0")
		s.wants(s.out, "cafecafe, running", ada().String(), "2m: the job can save its work until", "0.42 USD, and it stays owed",
			"1.58 USD at most, had the lease run to its end; 0.008333 of it for the notice, which is not billed")
		s.wants(s.talk, "take card 0 back? [y/N]", "nothing was done")
		withheld(false)
	}
	s.answer = "y\n"
	s.run(0, "takeback", "GPU-5f")
	s.wants(s.talk, "lease cafecafe is told to end; card 0 is yours when it has, by", "`haggled giveback 0` offers it again")
	withheld(true)
	s.wants(s.out, "card 0  taken back by the owner; `haggled giveback 0` offers it again", "card 1  no description of it was found", "300 W")
	s.run(0, "giveback", "0")
	withheld(false)
}

func TestTakebackWithoutATerminalNeedsYes(t *testing.T) {
	s := newShell(t)
	s.run(2, "takeback", "0")
	s.wants(s.talk, "there is no terminal to ask on", "--yes")
	s.run(2, "takeback", "0", "--json")
	s.run(0, "takeback", "1", "--dry-run")
	s.wants(s.out, "none: the card is free")
	s.run(0, "takeback", "0", "--dry-run", "--json")
	s.wants(s.out, `"done": false`, `"notice_ms": 120000`)
	s.run(0, "takeback", "0", "--yes", "--json")
	s.wants(s.out, `"done": true`)
	s.run(0, "takeback", "1", "--yes")
	s.wants(s.talk, "card 1 is yours; `haggled giveback 1` offers it again")
	s.run(3, "takeback", "9", "--yes")
	s.wants(s.talk, "there is no card 9 in this rig")
	s.run(3, "giveback", "9")
	s.run(2, "takeback")
}

func TestStatusSaysWhatShutsJobsIn(t *testing.T) {
	s := newShell(t)
	s.run(0, "status")
	s.wants(s.out, "nobody: no owner is trusted yet", "runc: 2 of 3 protections hold, as tried out from inside a job", "weak       user-namespace",
		"warning    the protection user-namespace does not hold", "stopping, ends by", "disk full", "1.2 GB in, 999 B out")
}

func TestCompletionKnowsCardsAndOwners(t *testing.T) {
	s := newShell(t)
	s.run(0, "trust", ada().String(), "--name", "Ada")
	s.run(0, "__complete", "takeback", "")
	s.wants(s.out, "0\tRTX_4090 GPU-5f1a", "1\tRTX_4090 GPU-77b0")
	s.run(0, "__complete", "trust", "--remove", "")
	s.wants(s.out, ada().String()+"\tAda")
}

func TestTheOwnerDisputesABillAndHandsInADecision(t *testing.T) {
	s := newShell(t)
	s.run(0, "dispute", "cafe", "--list")
	s.wants(s.talk, "nobody has said that the bill of lease cafe0000 is wrong")
	s.run(2, "dispute", "cafe")
	s.wants(s.talk, "say what is wrong with the bill")
	s.run(2, "dispute", "cafe", "--total", "5")
	s.wants(s.talk, "its budget of 2.00 at most")
	s.run(2, "dispute", "cafe", "--words", "a\x1b[2J")
	s.run(0, "dispute", "cafe", "--words", "its own log bears the receipt out")
	s.wants(s.out, "rig", "1.25 USD", "bill", "its own log bears the receipt out")
	s.run(0, "dispute", "cafecafe", "--total", "1")
	s.wants(s.talk, "it is told when the two are connected next")
	s.run(1, "dispute", "cafe", "--decision", "nowhere")
	s.run(2, "dispute", "cafe", "--decision", "nowhere", "--total", "1")
	file := filepath.Join(t.TempDir(), "decision")
	if err := os.WriteFile(file, []byte("sealed"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(0, "dispute", "cafe", "--decision", file)
	s.wants(s.out, "lease cafe0000 costs 1.00 USD, by the guarantor's decision")
	if err := os.WriteFile(file, make([]byte, 17<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(2, "dispute", "cafe", "--decision", file)
	s.wants(s.talk, "it is too large")
}
