package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// clockTick is the unit of processor times in /proc.
	clockTick = 10 * time.Millisecond
	// lookTime is how long the machine is watched before a turn, which waits up to calmTime for others to leave the processors.
	lookTime = 200 * time.Millisecond
	calmTime = 3 * time.Second
	// busyShare is how much of the processors others may have before a figure is refused.
	busyShare = 0.2
)

// busyError refuses a figure, which is only good for a look, because others used the machine meanwhile.
type busyError struct{ share float64 }

func (b *busyError) Error() string {
	return fmt.Sprintf("the machine is busy, others had %.0f %% of the processors", 100*b.share)
}

// cost is what a piece of work took: time, and the processor time of all processes of ours that took part.
type cost struct {
	wall, cpu time.Duration
	others    float64 // share of the processors that everybody else had meanwhile, the kernel's own threads included
}

// weigh measures work, which returns its ended commands. daemons are processes that take part and live on; of what they have
// waited for, that counts too.
func weigh(ctx context.Context, daemons []int, work func(context.Context) ([]*exec.Cmd, error)) (cost, error) {
	if err := calm(ctx); err != nil {
		return cost{}, err
	}
	before, err := usedBy(daemons)
	busy, busyErr := busyTime()
	if err := errors.Join(err, busyErr); err != nil {
		return cost{}, err
	}
	begun := time.Now()
	commands, err := work(ctx)
	c := cost{wall: time.Since(begun)}
	if err != nil {
		return c, err
	}
	busyAfter, err := busyTime()
	after, usedErr := usedBy(daemons)
	if err := errors.Join(err, usedErr); err != nil {
		return c, err
	}
	c.cpu = after - before
	for _, command := range commands {
		c.cpu += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	c.others = max(0, (busyAfter-busy-c.cpu).Seconds()) / (c.wall.Seconds() * float64(goruntime.NumCPU()))
	return c, nil
}

// calm brings what was written to the disk, and waits a while until the processors have little to do.
func calm(ctx context.Context) error {
	unix.Sync()
	limit := time.Now().Add(calmTime)
	for time.Now().Before(limit) {
		if share, err := busyShareNow(ctx); err != nil || share < busyShare {
			return err
		}
	}
	return nil
}

// busyShareNow watches the processors for a moment.
func busyShareNow(ctx context.Context) (float64, error) {
	before, err := busyTime()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	pause(ctx, lookTime)
	after, err := busyTime()
	return (after - before).Seconds() / (time.Since(begun).Seconds() * float64(goruntime.NumCPU())), errors.Join(err, ctx.Err())
}

// busyTime is how long the machine's processors have worked since its start, all together.
func busyTime() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	const idle, wait = 4, 5
	if len(fields) < 9 {
		return 0, fmt.Errorf("%q does not tell how busy the processors are", line)
	}
	var sum time.Duration
	for i, word := range fields[:9] { // what follows is counted in what stands before
		if i == 0 || i == idle || i == wait {
			continue
		}
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("how busy the processors are: %w", err)
		}
		sum += time.Duration(n) * clockTick
	}
	return sum, nil
}

// usedBy sums the processor time of processes and of their children that have ended.
func usedBy(pids []int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), ") ") // no name of ours has a bracket
		fields := strings.Fields(rest)
		const first, last = 11, 14 // utime, stime, cutime, cstime
		if len(fields) <= last {
			return 0, fmt.Errorf("process %d does not tell its processor time", pid)
		}
		for _, word := range fields[first : last+1] {
			n, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
			}
			sum += time.Duration(n) * clockTick
		}
	}
	return sum, nil
}

// tally collects the costs of one side.
type tally []cost

func (t tally) wall() time.Duration { return t.median(func(c cost) float64 { return float64(c.wall) }) }

func (t tally) cpu() time.Duration { return t.median(func(c cost) float64 { return float64(c.cpu) }) }

func (t tally) median(of func(cost) float64) time.Duration {
	all := make([]float64, len(t))
	for i, c := range t {
		all[i] = of(c)
	}
	return time.Duration(median(all))
}

// refuseBusy returns an error where the median of the shares of others is too much.
func refuseBusy(all ...tally) error {
	var shares []float64
	for _, t := range all {
		for _, c := range t {
			shares = append(shares, c.others)
		}
	}
	if share := median(shares); share > busyShare {
		return &busyError{share}
	}
	return nil
}
