package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"haggle/internal/pay"
)

// Faults, for tests of those who run this program. None touches describe.
const (
	faultHang = "hang" // never answers, and takes nothing
	faultDie  = "die"  // takes the money and ends without an answer
	faultLie  = "lie"  // says that it is settled, and takes nothing
	faultLate = "late" // the money takes its time
)

const diedOfFault = 3 // exit code

// chooseFault lets the file fault-SIDE in the bank's folder overrule the setting, so that a fault can come and go.
func (b *bank) chooseFault(side pay.Side) error {
	text, err := os.ReadFile(filepath.Join(b.dir, "fault-"+string(side)))
	switch {
	case err == nil:
		b.fault = strings.TrimSpace(string(text))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if !slices.Contains([]string{"", faultHang, faultDie, faultLie, faultLate}, b.fault) {
		return fmt.Errorf("there is no fault %q", b.fault)
	}
	return nil
}

// misbehave does what a fault asks for, if it is one of those that end in silence.
func (b *bank) misbehave() {
	switch b.fault {
	case faultHang:
		time.Sleep(24 * time.Hour)
	case faultDie:
		os.Exit(diedOfFault)
	}
}
