// Probe is the conformance program as a binary of its own, which tests put into an image. Its command "logger"
// is the logger that tests of engines use.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"haggle/runtime"
	"haggle/runtime/runtimetest"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "logger" {
		if err := runtime.RunLogger(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	os.Exit(runtimetest.Probe(context.Background(), &runtimetest.Process{
		Args: os.Args, Env: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr, Terminate: terminate, Alloc: alloc,
	}))
}

// alloc touches every page, or the kernel would not count it.
func alloc(bytes int64) {
	b := make([]byte, bytes)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	fmt.Fprintln(os.Stderr, len(b))
}
