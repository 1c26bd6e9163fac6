//go:build linux

// Command load does the same work inside a job and outside, in turns, for bench to compare the times. As "load logger ID" it
// is also the logger of the engine that runs the job; as "load listen", "load dial ADDRESS", "load echo PORT" and "load relay
// ADDRESS" it is the plain TCP that copies and forwards are compared with.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	goruntime "runtime"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "logger" {
		return runtime.RunLogger(args[1])
	}
	if len(args) == 1 && args[0] == "ready" {
		_, err := fmt.Println("ready")
		return err
	}
	ctx := context.Background()
	switch {
	case len(args) == 0:
		return errors.New("usage: load cpu|memory SIDE START PAIRS")
	case len(args) == 1 && args[0] == "listen":
		return listen(ctx)
	case len(args) == 2 && args[0] == "dial":
		return dial(ctx, args[1])
	case len(args) == 2 && args[0] == "echo":
		return echo(ctx, args[1])
	case len(args) == 2 && args[0] == "relay":
		return relay(ctx, args[1])
	}
	work, ok := map[string]work{"cpu": &compute{}, "memory": &copying{}}[args[0]]
	if !ok {
		return fmt.Errorf("there is no work %q", args[0])
	}
	// Both sides take turns on one processor, and nothing but the work runs there.
	debug.SetGCPercent(-1)
	goruntime.LockOSThread()
	if err := pin(); err != nil {
		return err
	}
	return turns(work, args[1:])
}

// work is what is measured. prepare is not timed and takes at most pause.
type work interface {
	pause() time.Duration
	prepare() error
	round(n int)
}

const (
	// slot is how long a turn is, of which the work takes a third where nothing else runs.
	slot = 15 * time.Millisecond
	// batch is how many pairs of turns share what prepare makes.
	batch = 16
)

// turns does one round of work in each turn of its side (0 or 1), and prints how many nanoseconds it took and how often
// another program had the processor meanwhile. A pair is one turn of each side; who goes first changes from pair to pair. The wall clock, which both sides share, says whose turn it is: the
// first batch begins at START, in milliseconds.
func turns(w work, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%d arguments in place of SIDE START PAIRS", len(args))
	}
	side, err := strconv.Atoi(args[0])
	start, err2 := strconv.ParseInt(args[1], 10, 64)
	pairs, err3 := strconv.Atoi(args[2])
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	begin := time.UnixMilli(start)
	if time.Now().After(begin) {
		return fmt.Errorf("the first turn was %v ago", time.Since(begin))
	}
	for n := range pairs {
		if n%batch == 0 {
			time.Sleep(time.Until(begin))
			if err := w.prepare(); err != nil {
				return err
			}
			begin = begin.Add(w.pause())
		}
		half := (side + n) % 2
		time.Sleep(time.Until(begin.Add(time.Duration(half) * slot)))
		before, err := interruptions()
		if err != nil {
			return err
		}
		since := time.Now()
		w.round(n % batch)
		took := time.Since(since)
		after, err := interruptions()
		if err != nil {
			return err
		}
		fmt.Println(took.Nanoseconds(), after-before)
		begin = begin.Add(2 * slot)
	}
	return nil
}

// interruptions counts how often this thread lost its processor to another.
func interruptions() (int64, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0, fmt.Errorf("ask for interruptions: %w", err)
	}
	return u.Nivcsw, nil
}

// pin keeps this thread on the last processor that it may use.
func pin() error {
	var may, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return fmt.Errorf("ask for processors: %w", err)
	}
	last := 0
	for cpu := range 8 * 128 {
		if may.IsSet(cpu) {
			last = cpu
		}
	}
	one.Set(last)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("stay on processor %d: %w", last, err)
	}
	return nil
}

// compute hashes and calculates.
type compute struct {
	block [64 << 10]byte
	x     float64
}

func (*compute) pause() time.Duration { return 0 }
func (*compute) prepare() error       { return nil }

func (c *compute) round(int) {
	for range 20 {
		sum := sha256.Sum256(c.block[:])
		copy(c.block[:], sum[:])
		for i := range 20_000 {
			c.x = math.Sqrt(c.x*1.000001 + float64(i&7))
		}
	}
}

// copying copies from one area of memory to another, in each round a piece that no cache holds: all pieces together are larger
// than the caches of today's machines. The areas are new for each batch, because where they lie makes a difference and must
// not be a property of one side.
type copying struct{ areas []byte }

const (
	piece = 16 << 20
	area  = batch * piece
)

func (*copying) pause() time.Duration { return 600 * time.Millisecond }

func (c *copying) prepare() (err error) {
	if c.areas != nil {
		if err := unix.Munmap(c.areas); err != nil {
			return fmt.Errorf("give memory back: %w", err)
		}
	}
	c.areas, err = unix.Mmap(-1, 0, 2*area, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("take memory: %w", err)
	}
	return nil
}

func (c *copying) round(n int) {
	from := n * piece
	copy(c.areas[from:from+piece], c.areas[area+from:area+from+piece])
}
