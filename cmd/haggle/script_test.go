package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"haggle/market"
	"haggle/market/markettest"
)

// flip changes one bit of one byte of a file: flip FILE OFFSET. A negative offset counts from the end.
func flip(ts *testscript.TestScript, _ bool, args []string) {
	data := []byte(ts.ReadFile(args[0]))
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	if at < 0 {
		at += len(data)
	}
	data[at] ^= 1
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o600))
}

// waitFor waits until a file has a text: waitfor FILE TEXT.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(10 * time.Second)
	for ; ; <-tick.C {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.Contains(string(data), args[1]) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s has no %q after 10 s: %q", args[0], args[1], data)
		}
	}
}

// unfinished is evidence of a lease without its final receipt.
func unfinished() []byte {
	e := markettest.Evidence()
	e.Receipts = e.Receipts[:len(e.Receipts)-1]
	return e.Encode()
}

// forked is evidence of a rig that signed two receipts with the number 1.
func forked() []byte {
	e := markettest.Evidence()
	lease := market.SealTerms(markettest.Network, markettest.Rig(), markettest.Terms()).ID()
	other := markettest.Receipt(lease, market.Head{}, 11_000, market.ReceiptInterval)
	e.Receipts = append(e.Receipts[:1:1], market.SealReceipt(markettest.Network, markettest.Rig(), other).Encode())
	return e.Encode()
}

// refused is evidence of a lease whose second receipt does not add up: the renter refused it, and a guarantor decided.
func refused() []byte {
	e := markettest.Paid()
	first := markettest.PaidReceipt(market.Head{}, 10_000, market.ReceiptInterval)
	first.Paid = 12_000
	second := markettest.PaidReceipt(market.HeadOf(first, market.HashOf(first.Body())), 20_000, market.ReceiptInterval)
	second.Bill.Total += 500
	sealed := market.SealReceipt(markettest.Network, markettest.Rig(), second)
	e.Receipts = append(e.Receipts[:1:1], sealed.Encode())
	no := market.Reject{Lease: second.Lease, Seq: 2, Receipt: sealed.Hash(), Code: market.CodeReceiptMath, ElapsedMs: 20_000, Total: 2000}
	e.Rejects, e.Outcome = [][]byte{market.SealReject(markettest.Network, markettest.Renter(), no).Encode()}, nil
	decided := market.Dispute{
		Lease: second.Lease, By: market.RoleGuarantor, Seq: 2, Receipt: sealed.Hash(), Code: market.CodeReceiptMath, Total: 80_000, Words: "it ran\x1b[2J", Wall: markettest.Now,
	}
	e.Papers = append(e.Papers, market.Paper{Kind: market.KindDispute, Sealed: market.SealDispute(markettest.Network, markettest.Guarantor(), decided).Encode()})
	return e.Encode()
}

// code runs a command and wants its exit code: code N COMMAND…
func code(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}
