// Haggle stands in for the program that lies beside haggled and runs inside jobs: its doors are those that the suite of engines
// knows how to ask.
package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"haggle/runtime/inside"
	"haggle/runtime/runtimetest"
)

func main() {
	args := os.Args[min(2, len(os.Args)):] // behind "haggle inside"
	if len(args) == 0 || args[0] != "door" {
		os.Exit(inside.Main(args, os.Stdout))
	}
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	os.Exit(runtimetest.Probe(context.Background(), &runtimetest.Process{
		Args: slices.Concat(os.Args[:1], args), Env: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr, Terminate: terminate,
	}))
}
