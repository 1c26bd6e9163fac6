//go:build !windows

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// sizeChanges tells when the terminal has another size, until stop.
func sizeChanges() (changes <-chan os.Signal, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	return signals, func() { signal.Stop(signals); close(signals) }
}

// colours makes a terminal understand escape sequences; every terminal here does.
func colours(*os.File) (undo func()) { return func() {} }
