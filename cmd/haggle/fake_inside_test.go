package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"haggle/internal/tunnel"
	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

// Tunnel leads to a real door, a process of its own that outlives this agent for a while.
func (a *fakeAgent) Tunnel(ctx context.Context, id string) (tunnel.Conn, error) {
	l, err := a.Lease(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case l.State == "ended":
		return nil, market.NewError(market.CodeNoDoor, "state", l.State)
	}
	socket := filepath.Join(a.home, "door")
	a.doors.Lock()
	defer a.doors.Unlock()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		if err := startDoor(filepath.Join(a.home, "work"), socket); err != nil {
			return nil, err
		}
		conn, err = new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// startDoor starts a door that leaves when nobody used it for a while.
func startDoor(root, socket string) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), "haggle-door", "--idle", "3s", "--root", root, socket)
	cmd.SysProcAttr = detached()
	cmd.Env = append(os.Environ(), "SHELL=/bin/sh")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("the door said %q: %w", line, err)
	}
	return nil
}

// Copy writes down what it was asked, and tells a progress of half of it.
func (a *fakeAgent) Copy(ctx context.Context, id string, r view.CopyRequest, progress func(view.Progress)) (view.CopyReport, error) {
	if _, err := a.Lease(ctx, id); err != nil {
		return view.CopyReport{}, err
	}
	if strings.Contains(r.From, "nosuch") {
		return view.CopyReport{}, market.NewError(market.CodeFileNotFound, "path", "nosuch")
	}
	progress(view.Progress{Files: 4, FilesDone: 2, Bytes: 4000, BytesDone: 2000, Sent: 1000})
	if strings.Contains(r.From, "forever") {
		a.mark("copying")
		<-ctx.Done()
		a.mark("cancelled")
		return view.CopyReport{}, ctx.Err()
	}
	return view.CopyReport{Files: 4, Bytes: 4000, Sent: 3000, Same: 1}, a.note("copy", "%+v", r)
}

// note writes down what was asked, for a script to look at.
func (a *fakeAgent) note(name, format string, args ...any) error {
	return os.WriteFile(filepath.Join(a.home, name), fmt.Appendf(nil, format+"\n", args...), 0o600)
}

func (a *fakeAgent) Keep(ctx context.Context, id string) (view.Lease, error) {
	l, err := a.Lease(ctx, id)
	if err != nil {
		return l, err
	}
	exit := int64(143)
	a.state(func(l *view.Lease) {
		l.State, l.Exit, l.DiskMB, l.DiskUsed, l.KeptMs = "paused", &exit, 10_000, 3_200_000_000, 3_600_000
	})
	return a.Lease(ctx, id)
}

func (a *fakeAgent) Resume(ctx context.Context, id string) (view.Lease, error) {
	l, err := a.Lease(ctx, id)
	switch {
	case err != nil:
		return l, err
	case l.State != "paused":
		return l, market.NewError(market.CodeNotPaused, "state", l.State)
	}
	a.state(func(l *view.Lease) { l.State, l.Exit, l.Attempt = "preparing", nil, 1 })
	return a.Lease(ctx, id)
}

func (a *fakeAgent) Remove(ctx context.Context, id string) (view.Lease, error) {
	l, err := a.Lease(ctx, id)
	switch {
	case err != nil:
		return l, err
	case l.State != "paused":
		return l, market.NewError(market.CodeNotPaused, "state", l.State)
	}
	a.over("renter", 143, "final")
	return a.Lease(ctx, id)
}

func (a *fakeAgent) Extend(ctx context.Context, id string, r view.ExtendRequest) (view.Lease, error) {
	l, err := a.Lease(ctx, id)
	switch {
	case err != nil:
		return l, err
	case r.DurationMs > 24*3_600_000:
		return l, market.NewError(market.CodePriceRose, "now", "0.40", "lease", "0.36")
	}
	a.state(func(l *view.Lease) {
		l.Duration += r.DurationMs
		l.Budget = view.MoneyOf(market.Micro(l.Budget.Micro+max(r.BudgetMicro, 720_000)), "USD")
	})
	return a.Lease(ctx, id)
}

func (a *fakeAgent) Rename(ctx context.Context, id string, r view.NameRequest) (view.Lease, error) {
	l, err := a.Lease(ctx, id)
	switch {
	case err != nil:
		return l, err
	case r.Name == "taken":
		return l, market.NewError(market.CodeNameTaken, "name", r.Name, "lease", "00000000")
	}
	a.state(func(l *view.Lease) { l.Name, l.Labels = r.Name, r.Labels })
	return a.Lease(ctx, id)
}

func (a *fakeAgent) Checkpoints(ctx context.Context, id string) ([]view.CheckpointInfo, error) {
	l, err := a.Lease(ctx, id)
	return l.Checkpoints, err
}

func (a *fakeAgent) CheckpointNow(ctx context.Context, id string) (view.CheckpointInfo, error) {
	if _, err := a.Lease(ctx, id); err != nil {
		return view.CheckpointInfo{}, err
	}
	one := view.CheckpointInfo{Seq: 7, AtMs: markettest.Now, Bytes: 12_345_678, Where: "renter"}
	a.state(func(l *view.Lease) { l.Checkpoints = append(l.Checkpoints, one) })
	return one, nil
}

// collect is the end of a job whose files are brought home after it.
func (a *fakeAgent) collect() {
	a.state(func(l *view.Lease) {
		l.State = "preparing"
		l.Uploading = &view.Progress{What: "files", Bytes: 2000, BytesDone: 1000}
	})
	if err := wait("the script has seen it", func() bool {
		_, err := os.Stat(filepath.Join(a.home, "sent"))
		return err == nil
	}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	a.state(func(l *view.Lease) { l.Uploading = nil; l.State = "running" })
	code := int64(0)
	if slices.Contains(a.job.args, "--exit") {
		code = 3
	}
	a.over("completed", code, "final")
	a.state(func(l *view.Lease) {
		c := &l.Collects[0]
		if c.Done = true; slices.Contains(a.job.args, "--fail") {
			c.Error = "there is no out"
			return
		}
		c.Files, c.Bytes = 3, 9
	})
}

// wait is for tests that look at what another process does.
func wait(what string, ok func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			return fmt.Errorf("waited too long: %s", what)
		}
	}
	return nil
}
