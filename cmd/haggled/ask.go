//go:build linux

package main

import (
	"bufio"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"haggle/internal/cli"
)

// completionTime bounds how long a shell waits for the words that fit.
const completionTime = 2 * time.Second

// person is who sits in front of the program and answers questions.
type person interface {
	// there reports whether anybody does.
	there() bool
	io.Reader
}

// keyboard is the person at a terminal. It is there where both its ends are terminals.
type keyboard struct{ in, out *os.File }

func (k keyboard) Read(p []byte) (int, error) { return k.in.Read(p) }

func (k keyboard) there() bool {
	for _, end := range []*os.File{k.in, k.out} {
		if _, err := unix.IoctlGetTermios(int(end.Fd()), unix.TCGETS); err != nil {
			return false
		}
	}
	return true
}

// confirm asks a question whose answer is no unless somebody says yes. Where nobody can be asked, the command is refused: what
// is to be done without a question must be said by --yes.
func (p *program) confirm(command, question string) (bool, error) {
	who := p.person
	if who == nil {
		who = keyboard{os.Stdin, os.Stderr}
	}
	if !who.there() {
		return false, cli.Usage(command+" asks before it does anything, and there is no terminal to ask on",
			"look with --dry-run, and say --yes if that is what you want")
	}
	if _, err := io.WriteString(p.Err, question+" [y/N] "); err != nil {
		return false, err
	}
	answer, err := bufio.NewReader(io.LimitReader(who, 1<<10)).ReadString('\n')
	if err != nil && answer == "" {
		return false, nil // the end of the input is no yes
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}
