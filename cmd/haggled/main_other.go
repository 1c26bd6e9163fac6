//go:build !linux

// Command haggled runs a rig on Linux. Elsewhere it only says why it does not.
package main

import (
	"fmt"
	"os"
	goruntime "runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "haggled: a rig needs Linux, this is %s (hint: cards can be passed to containers and metered there only; "+
		"to rent cards from here use haggle, to see a market use `haggle lab up --engine process`)\n", goruntime.GOOS)
	os.Exit(2)
}
