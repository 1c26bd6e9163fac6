// Command bench prints haggle's figures, each beside a peer or a floor that is measured in the same run:
//
//	name  value unit  beside PEER  ratio  aim  ok|short
//
// A ratio means the same on a fast and on a slow machine; a bare number does not. Bench always exits with 0: it measures,
// tests judge. With names as arguments it measures those figures only, and those whose names begin with one and a dash.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// figure is one thing to measure. aim is the ratio to reach: at most, or at least where atLeast is set; 0 and at least is none.
type figure struct {
	name    string
	unit    string
	peer    string
	aim     float64
	atLeast bool
	measure func(ctx context.Context) (ours, theirs float64, err error)
}

func figures() []figure {
	return slices.Concat([]figure{
		{name: "offers-verified", unit: "offers/s", peer: "bare ed25519 verify", aim: 0.8, atLeast: true, measure: offersVerified},
		{name: "first-byte", unit: "ms", peer: "ctr run", aim: 0.7, measure: firstByte},
		{name: "hardened-start", unit: "ms", peer: "runc run", aim: 1.5, measure: hardenedStart},
		{name: "job-cpu", unit: "ms a round", peer: lossPeer, aim: lossAim, measure: jobCPU},
		{name: "job-memory", unit: "ms a round", peer: lossPeer, aim: lossAim, measure: jobMemory},
		{name: "idle-memory", unit: "MiB PSS", peer: "bare libp2p host with DHT", aim: 3.0, measure: idleMemory},
		{name: "copy-small", unit: "ms", peer: "tar over raw TCP", aim: 2, measure: copySmall},
		{name: "copy-cut", unit: "MiB sent again", peer: "what was missing and a chunk", aim: 1, measure: copyCut},
	}, receiptFigures(), resyncFigures(), copyFigures(), echoFigures(), screenFigures(), tableFigures(), networkFigures())
}

// limit bounds one figure; a figure that takes longer is reported as not measured.
const limit = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, f := range figures() {
		asked := func(name string) bool { return f.name == name || strings.HasPrefix(f.name, name+"-") }
		if len(os.Args) > 1 && !slices.ContainsFunc(os.Args[1:], asked) {
			continue
		}
		fmt.Println(f.line(ctx))
	}
}

func (f figure) line(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ours, theirs, err := f.measure(ctx)
	if _, busy := errors.AsType[*busyError](err); busy {
		return fmt.Sprintf("%-16s not measured: %v; it would be %s", f.name, err, f.compare(ours, theirs))
	}
	if err != nil {
		return fmt.Sprintf("%-16s not measured: %v", f.name, err)
	}
	return fmt.Sprintf("%-16s %s", f.name, f.compare(ours, theirs))
}

// compare puts two values side by side.
func (f figure) compare(ours, theirs float64) string {
	ratio, word, bound := ours/theirs, "short", "at most"
	if f.atLeast {
		bound = "at least"
	}
	if f.atLeast && ratio >= f.aim || !f.atLeast && ratio <= f.aim {
		word = "ok"
	}
	places := 2
	if cents := f.aim * 100; math.Abs(cents-math.Round(cents)) > 1e-6 { // so fine an aim needs more
		places = 4
	}
	text := fmt.Sprintf("%.*f %s  beside %s %.*f  ratio %.*f", places-1, ours, f.unit, f.peer, places-1, theirs, places, ratio)
	if f.aim == 0 && f.atLeast {
		return text
	}
	return fmt.Sprintf("%s  aim %s %.*f  %s", text, bound, places, f.aim, word)
}
