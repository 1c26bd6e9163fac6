package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	echoPort  = "7007"
	echoSize  = 64
	echoBlock = 500 // echoes of one side in a row
	echoTurns = 40
	// echoRoom is how much longer an echo may take through a forward than over a bare stream.
	echoRoom = 60
)

// echoRelays is how many processes stand between the two ends of a forward: the command, the agent, the rig and the door.
const echoRelays = 4

// echoTimes are the medians of an echo on three ways, in microseconds.
type echoTimes struct{ forward, bare, relays float64 }

// echoFigures compare the time of an echo through a forward, by a program in a job, with that of one over a bare libp2p stream to
// another process and the room that a forward has; and with that through as many plain relays as there are processes on the way,
// which neither encrypt nor survive anything. They share a run.
func echoFigures() []figure {
	times := sync.OnceValues(func() (echoTimes, error) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		return measureEchoes(ctx)
	})
	return []figure{
		{
			name: "forward-echo", unit: "µs", peer: fmt.Sprintf("a bare libp2p stream and %d µs", echoRoom), aim: 1,
			measure: func(context.Context) (float64, float64, error) {
				t, err := times()
				return t.forward, t.bare + echoRoom, err
			},
		},
		{
			name: "forward-echo-relays", unit: "µs", peer: fmt.Sprintf("%d plain relays", echoRelays), atLeast: true,
			measure: func(context.Context) (float64, float64, error) {
				t, err := times()
				return t.forward, t.relays, err
			},
		},
	}
}

func measureEchoes(ctx context.Context) (t echoTimes, err error) {
	l, err := startInside(ctx)
	if err != nil {
		return t, err
	}
	defer l.stop()
	address, err := l.forward(ctx)
	if err != nil {
		return t, err
	}
	forward, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return t, err
	}
	defer forward.Close()
	bare, err := l.bareEcho(ctx)
	if err != nil {
		return t, err
	}
	defer bare.Close()
	relays, err := l.relayEcho(ctx)
	if err != nil {
		return t, err
	}
	defer relays.Close()
	ways := []io.ReadWriter{forward, bare, relays}
	all := make([][]float64, len(ways))
	var shares []float64
	if err := calm(ctx); err != nil {
		return t, err
	}
	for n := range echoTurns + 1 {
		share, err := busyShareNow(ctx) // while nothing of ours works
		if err != nil {
			return t, err
		}
		shares = append(shares, share)
		for i, way := range ways {
			took, err := echoes(way)
			if err != nil {
				return t, fmt.Errorf("on way %d: %w", i, err)
			}
			if n > 0 { // the first block warms all
				all[i] = append(all[i], took...)
			}
		}
	}
	if share := median(shares); share > busyShare {
		err = &busyError{share}
	}
	return echoTimes{median(all[0]), median(all[1]), median(all[2])}, err
}

// relayEcho opens a connection through plain relays to a process that echoes.
func (l *insideLab) relayEcho(ctx context.Context) (net.Conn, error) {
	address, err := l.beginLoad(ctx, "echo", "0")
	for range echoRelays {
		if err == nil {
			address, err = l.beginLoad(ctx, "relay", address)
		}
	}
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// beginLoad starts a server of ours and returns the address that it says. It is ended with the lab.
func (l *insideLab) beginLoad(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(context.WithoutCancel(ctx), l.load, args...)
	said, err := c.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := c.Start(); err != nil {
		return "", err
	}
	l.undo = append(l.undo, func() error {
		err := c.Process.Kill()
		_ = c.Wait() // it was killed
		return err
	})
	return firstLine(said)
}

// echoes sends and receives a block of echoes and returns the microseconds of each.
func echoes(c io.ReadWriter) ([]float64, error) {
	buf := make([]byte, echoSize)
	var all []float64
	for range echoBlock {
		begun := time.Now()
		if _, err := c.Write(buf); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			return nil, err
		}
		all = append(all, float64(time.Since(begun).Nanoseconds())/1000)
	}
	return all, nil
}

// forward starts a program in the job that echoes, and a forward to it, and returns its address.
func (l *insideLab) forward(ctx context.Context) (string, error) {
	if _, err := l.output(ctx, "cp", l.load, at("load")); err != nil {
		return "", err
	}
	if _, err := l.begin(ctx, "exec", jobName, "--", "/work/load", "echo", echoPort); err != nil {
		return "", err
	}
	text, err := l.begin(ctx, "forward", "--json", jobName, echoPort)
	if err != nil {
		return "", err
	}
	var list []struct {
		Local string `json:"local"`
	}
	if err := json.NewDecoder(text).Decode(&list); err != nil || len(list) != 1 {
		return "", fmt.Errorf("the forward does not tell its address: %w", err)
	}
	return list[0].Local, nil
}

// begin starts haggle and waits for the first that it prints. It is ended with the lab.
func (l *insideLab) begin(ctx context.Context, args ...string) (io.Reader, error) {
	c := l.command(context.WithoutCancel(ctx), haggle, args...)
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	l.undo = append(l.undo, func() error {
		err := c.Process.Kill()
		_ = c.Wait() // it was killed
		return err
	})
	first := make([]byte, 4096)
	n, err := out.Read(first)
	if err != nil {
		return nil, fmt.Errorf("haggle %s ends at once: %w", args[0], err)
	}
	return io.MultiReader(bytes.NewReader(first[:n]), out), nil
}

// bareEcho opens a stream to a process that echoes on it.
func (l *insideLab) bareEcho(ctx context.Context) (io.ReadWriteCloser, error) {
	server := exec.CommandContext(context.WithoutCancel(ctx), l.bare, "echo")
	in, err := server.StdinPipe()
	if err != nil {
		return nil, err
	}
	said, err := server.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	l.undo = append(l.undo, func() error { return errors.Join(in.Close(), server.Wait()) })
	address, err := firstLine(said)
	if err != nil {
		return nil, err
	}
	info, err := peer.AddrInfoFromString(address)
	if err != nil {
		return nil, err
	}
	h, err := libp2p.New(libp2p.NoListenAddrs)
	if err != nil {
		return nil, err
	}
	l.undo = append(l.undo, h.Close)
	if err := h.Connect(ctx, *info); err != nil {
		return nil, err
	}
	s, err := h.NewStream(ctx, info.ID, "/bare/1")
	if err != nil {
		return nil, err
	}
	_, err = s.Write([]byte{0}) // only now the other side hears of the stream
	if err == nil {
		_, err = io.ReadFull(s, make([]byte, 1))
	}
	return s, err
}
