package main

import (
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// sizeChanges tells now and then to look at the terminal's size, for Windows tells nobody.
func sizeChanges() (changes <-chan time.Time, stop func()) {
	tick := time.NewTicker(500 * time.Millisecond)
	out, done := make(chan time.Time), make(chan struct{})
	go func() {
		defer close(out)
		for {
			select {
			case <-done:
				return
			case t := <-tick.C:
				select {
				case out <- t:
				case <-done:
					return
				}
			}
		}
	}()
	return out, func() { tick.Stop(); close(done) }
}

// colours makes a terminal understand escape sequences until undo.
func colours(f *os.File) (undo func()) {
	var mode uint32
	h := windows.Handle(f.Fd())
	if windows.GetConsoleMode(h, &mode) != nil {
		return func() {}
	}
	if windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) != nil {
		return func() {}
	}
	return func() { _ = windows.SetConsoleMode(h, mode) } // what cannot be put back stays
}
