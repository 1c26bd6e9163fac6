package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

const (
	bigFile   = 256 << 20
	copyTurns = 5
	// chunk is what filesync sends of a file at a time.
	chunk = 1 << 20
)

// The ways to bring a big file from one process to another.
const (
	byHaggle = "haggle cp"
	byBare   = "a bare libp2p stream"
	byTCP    = "raw TCP"
	bySCP    = "scp"
	byRsync  = "rsync -W over ssh"
)

// copies is what each way cost.
type copies map[string]tally

// copyFigures are those of one big file, up and down; the figures of a direction share their run.
func copyFigures() []figure {
	var list []figure
	for _, name := range []string{"copy-up", "copy-down"} {
		run := shared(func(ctx context.Context) (copies, error) { return bigCopies(ctx, name == "copy-up") })
		list = append(
			list,
			figure{name: name, unit: "MiB/s", peer: byBare, aim: 0.85, atLeast: true, measure: run(rate, byBare)},
			figure{name: name + "-tcp", unit: "MiB/s", peer: byTCP, atLeast: true, measure: run(rate, byTCP)},
			figure{name: name + "-scp", unit: "MiB/s", peer: bySCP, atLeast: true, measure: run(rate, bySCP)},
			figure{name: name + "-cpu", unit: "MiB/CPU-s", peer: bySCP, aim: 1.5, atLeast: true, measure: run(thrift, bySCP)},
			figure{name: name + "-cpu-rsync", unit: "MiB/CPU-s", peer: byRsync, atLeast: true, measure: run(thrift, byRsync)},
			figure{name: name + "-cpu-bare", unit: "MiB/CPU-s", peer: byBare, atLeast: true, measure: run(thrift, byBare)},
		)
	}
	return list
}

// rate and thrift are the bytes of the big file per second and per second of processor time, in MiB.
func rate(t tally) float64   { return bigFile / t.wall().Seconds() / (1 << 20) }
func thrift(t tally) float64 { return bigFile / t.cpu().Seconds() / (1 << 20) }

// shared makes figures of one run, which the first that is asked for does.
func shared(run func(context.Context) (copies, error)) func(value func(tally) float64, peer string) func(context.Context) (float64, float64, error) {
	var once sync.Once
	var all copies
	var err error
	return func(value func(tally) float64, peer string) func(context.Context) (float64, float64, error) {
		return func(ctx context.Context) (float64, float64, error) {
			once.Do(func() { all, err = run(ctx) })
			if err != nil {
				return 0, 0, err
			}
			return value(all[byHaggle]), value(all[peer]), refuseBusy(all[byHaggle], all[peer])
		}
	}
}

// way is one way to bring a file over.
type way struct {
	name    string
	daemons func(context.Context) ([]int, error)
	copy    func(ctx context.Context, to string) ([]*exec.Cmd, error)
	clear   func(ctx context.Context, to string) error // takes the copy away
}

// bigCopies has all ways take turns.
func bigCopies(ctx context.Context, up bool) (copies, error) {
	l, err := startInside(ctx)
	if err != nil {
		return nil, err
	}
	defer l.stop()
	server, err := l.startSSH(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(l.work, "big")
	if err := randomFile(file, bigFile); err != nil {
		return nil, err
	}
	ours := l.haggleWay(file, up)
	if !up {
		if _, err := l.output(ctx, "cp", file, at("big")); err != nil {
			return nil, err
		}
	}
	all := copies{}
	for n := range copyTurns + 1 {
		for _, w := range []way{ours, l.streamWay(byBare, l.bare, file), l.streamWay(byTCP, l.load, file), server.way(bySCP, file, up), server.way(byRsync, file, up)} {
			c, err := l.turn(ctx, w, fmt.Sprint("copy-", n))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			if n > 0 { // the first turn warms all
				all[w.name] = append(all[w.name], c)
			}
		}
	}
	return all, nil
}

// turn has one way copy once.
func (l *insideLab) turn(ctx context.Context, w way, name string) (cost, error) {
	to := filepath.Join(l.work, name)
	daemons, err := w.daemons(ctx)
	if err != nil {
		return cost{}, err
	}
	c, err := weigh(ctx, daemons, func(ctx context.Context) ([]*exec.Cmd, error) { return w.copy(ctx, to) })
	if err != nil {
		return c, err // its files go with the measurement's folder
	}
	return c, w.clear(ctx, to)
}

// haggleWay is ours: the renter's command, its agent, the rig and the door take part.
func (l *insideLab) haggleWay(file string, up bool) way {
	w := way{name: byHaggle, daemons: l.daemons}
	w.copy = func(ctx context.Context, to string) ([]*exec.Cmd, error) {
		args := []string{"cp", at("big"), to}
		if up {
			args = []string{"cp", file, at(filepath.Base(to))}
		}
		c := l.command(ctx, haggle, args...)
		return []*exec.Cmd{c}, quietly(c)
	}
	w.clear = clearFile
	if up {
		w.clear = func(ctx context.Context, to string) error {
			_, err := l.exec(ctx, "rm", filepath.Base(to))
			return err
		}
	}
	return w
}

// streamWay is one program that listens and writes a file, and one that reads a file and dials.
func (l *insideLab) streamWay(name, program, file string) way {
	return way{name: name, clear: clearFile, daemons: nobody, copy: func(ctx context.Context, to string) (_ []*exec.Cmd, err error) {
		out, err := os.Create(to)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
		in, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, in.Close()) }()
		return pipe(ctx, program, in, out)
	}}
}

// pipe brings in to out over a connection between two processes of a program.
func pipe(ctx context.Context, program string, in io.Reader, out io.Writer) ([]*exec.Cmd, error) {
	listener := exec.CommandContext(ctx, program, "listen")
	listener.Stdout = out
	said, err := listener.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := listener.Start(); err != nil {
		return nil, err
	}
	address, err := firstLine(said)
	dialler := exec.CommandContext(ctx, program, "dial", address)
	dialler.Stdin = in
	if err == nil {
		err = quietly(dialler)
	}
	if err != nil {
		_ = listener.Process.Kill()
	}
	rest, readErr := io.ReadAll(said)
	if err := errors.Join(err, readErr, listener.Wait()); err != nil {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(rest))
	}
	return []*exec.Cmd{dialler, listener}, nil
}

// firstLine reads a line that a program says at its start, and nothing behind it.
func firstLine(r io.Reader) (string, error) {
	var line []byte
	b := make([]byte, 1)
	for {
		if _, err := io.ReadFull(r, b); err != nil || b[0] == '\n' {
			return string(line), err
		}
		line = append(line, b[0])
	}
}

// way is a program that goes over ssh.
func (s *sshServer) way(name, file string, up bool) way {
	w := way{name: name, clear: clearFile, daemons: func(context.Context) ([]int, error) { return []int{s.command.Process.Pid}, nil }}
	w.copy = func(ctx context.Context, to string) ([]*exec.Cmd, error) {
		from, to := "peer:"+file, to
		if up {
			from, to = file, "peer:"+to
		}
		c := exec.CommandContext(ctx, "scp", "-q", "-F", s.config, from, to)
		if name == byRsync {
			c = exec.CommandContext(ctx, "rsync", "-W", "-e", "ssh -F "+s.config, from, to)
		}
		return []*exec.Cmd{c}, errors.Join(quietly(c), s.idle(ctx))
	}
	return w
}

func nobody(context.Context) ([]int, error) { return nil, nil }

func clearFile(_ context.Context, to string) error {
	info, err := os.Stat(to)
	if err != nil {
		return err
	}
	if info.Size() != bigFile {
		return fmt.Errorf("%d bytes of %s have arrived", info.Size(), filepath.Base(to))
	}
	return os.Remove(to)
}

// quietly runs a command; what it says is part of the error.
func quietly(c *exec.Cmd) error {
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// randomFile writes bytes that nothing makes smaller.
func randomFile(path string, size int64) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.CopyN(f, rand.Reader, size)
	return err
}
