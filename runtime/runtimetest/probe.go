package runtimetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// Program is what a job runs. It must return soon after ctx ends, which is the job's SIGKILL; what it returns
// then does not matter. Otherwise it returns the exit code.
type Program func(ctx context.Context, p *Process) int

// Process is what a Program sees of its machine.
type Process struct {
	Args           []string // with the program's own name first
	Env            []string
	Stdout, Stderr io.Writer
	// Terminate receives SIGTERM. Nobody has to listen.
	Terminate <-chan os.Signal
	// Alloc takes and touches memory. Beyond the job's limit it does not return before the job is dead.
	Alloc func(bytes int64)
	// Disk is where write and cat find their files; nil is the machine.
	Disk *Disk
}

// Probe is the program of the conformance suite. Its first argument is a command:
//
//	print TEXT…      a line of each text on stdout
//	both             "out" on stdout, "err" on stderr
//	exit CODE        ends with the code
//	env              its environment, a line each
//	status           /proc/self/status
//	polite           prints "ready"; at SIGTERM prints "saved" and ends with 143
//	stubborn         prints "ready" and never ends by itself
//	count MS         prints 1, 2, 3… every MS milliseconds
//	alloc MIB        takes memory, then ends with 0
//	flood BYTES      so many bytes on stdout in lines of 100, then ends with 0
//	spin             uses the processor until SIGTERM
//	cat PATH…        the content of each file
//	write PATH TEXT  makes a file
//	stat PATH…       owner, group and permissions of each file in a line
//	open PATH…       opens each file to read and write and prints a line of what came of it
//	mknod PATH N N   makes a character device
//	fetch HOST:PORT  what a TCP server says, to its end
//	fill PATH        writes a file until that fails, prints why, then does as polite
//	door ADDRESS     listens on a unix socket (@NAME: an abstract one), prints "ready" and echoes every path until SIGTERM, see
//	                 answerPath for two questions that it answers; --idle DURATION ends it when no path was open for so long,
//	                 --root DIR is the folder that it takes for /work
func Probe(ctx context.Context, p *Process) int {
	if len(p.Args) < 2 {
		fmt.Fprintln(p.Stderr, "probe: no command")
		return 2
	}
	rest := p.Args[2:]
	switch p.Args[1] {
	case "print":
		fmt.Fprintln(p.Stdout, strings.Join(rest, "\n"))
	case "both":
		fmt.Fprint(p.Stdout, "out")
		fmt.Fprint(p.Stderr, "err")
	case "exit":
		return int(number(rest))
	case "env":
		fmt.Fprintln(p.Stdout, strings.Join(p.Env, "\n"))
	case "status":
		b, err := os.ReadFile("/proc/self/status")
		if err != nil {
			fmt.Fprintln(p.Stderr, err)
			return 1
		}
		_, _ = p.Stdout.Write(b)
	case "fetch":
		return fetch(ctx, p, rest)
	case "cat", "write", "stat", "fill", "open", "mknod":
		return files(ctx, p, p.Args[1], rest)
	case "door":
		return door(ctx, p, rest)
	case "polite":
		return polite(ctx, p)
	case "stubborn":
		fmt.Fprintln(p.Stdout, "ready")
		<-ctx.Done()
	case "count":
		return count(ctx, p, time.Duration(number(rest))*time.Millisecond)
	case "alloc":
		p.Alloc(number(rest) << 20)
	case "flood":
		flood(p.Stdout, number(rest))
	case "spin":
		return spin(ctx, p)
	default:
		fmt.Fprintf(p.Stderr, "probe: unknown command %q\n", p.Args[1])
		return 2
	}
	return 0
}

func number(args []string) int64 {
	if len(args) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func polite(ctx context.Context, p *Process) int {
	fmt.Fprintln(p.Stdout, "ready")
	select {
	case <-ctx.Done():
	case <-p.Terminate:
		fmt.Fprintln(p.Stdout, "saved")
	}
	return 143
}

func count(ctx context.Context, p *Process, pause time.Duration) int {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for i := 1; ; i++ {
		fmt.Fprintln(p.Stdout, i)
		select {
		case <-ctx.Done():
			return 0
		case <-p.Terminate:
			return 0
		case <-tick.C:
		}
	}
}

func flood(w io.Writer, size int64) {
	line := append(bytes.Repeat([]byte("x"), 99), '\n')
	for size > 0 {
		n, err := w.Write(line[:min(size, int64(len(line)))])
		if err != nil {
			return
		}
		size -= int64(n)
	}
}

func spin(ctx context.Context, p *Process) int {
	fmt.Fprintln(p.Stdout, "ready")
	for {
		select {
		case <-ctx.Done():
			return 0
		case <-p.Terminate:
			return 0
		default:
			// In a container this burns the processor; under virtual time it must let the clock go on.
			time.Sleep(time.Microsecond)
		}
	}
}
