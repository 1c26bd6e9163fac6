package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/view"
)

// copyCut kills the agent, which copies, when half of a big file is in the job, and copies again. ours is what was sent the second
// time, theirs what was missing and one chunk. MiB.
func copyCut(ctx context.Context) (ours, theirs float64, err error) {
	l, err := startInside(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer l.stop()
	file := filepath.Join(l.work, "big")
	if err := randomFile(file, bigFile); err != nil {
		return 0, 0, err
	}
	if err := l.cutCopy(ctx, file, bigFile/2); err != nil {
		return 0, 0, err
	}
	missing, err := l.missing(ctx, file)
	if err != nil {
		return 0, 0, err
	}
	out, err := l.output(ctx, "cp", "--json", file, at("big"))
	if err != nil {
		return 0, 0, err
	}
	var report view.CopyReport
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return 0, 0, fmt.Errorf("the report of the copy: %w", err)
	}
	if err := l.sameInside(ctx, file, "big"); err != nil {
		return 0, 0, err
	}
	return float64(report.Sent) / (1 << 20), float64(missing+chunk) / (1 << 20), nil
}

// cutCopy copies a file into the job and kills the agent once so many bytes were sent.
func (l *insideLab) cutCopy(ctx context.Context, file string, enough int64) error {
	pid, err := l.agentPID(ctx)
	if err != nil {
		return err
	}
	paths, err := config.AgentPaths(l.home)
	if err != nil {
		return err
	}
	agent := api.DialAgent(paths.Socket)
	defer agent.Close()
	var killed atomic.Bool
	_, err = agent.Copy(ctx, jobName, view.CopyRequest{Push: true, From: file, To: "big"}, func(p view.Progress) {
		if p.Sent >= enough && !killed.Swap(true) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // if not, the copy ends well
		}
	})
	if err == nil {
		return errors.New("the copy was done before it could be cut")
	}
	if !killed.Load() {
		return err
	}
	return nil
}

// missing counts the bytes of a file that its unfinished copy in the job does not have.
func (l *insideLab) missing(ctx context.Context, file string) (int64, error) {
	if err := atRest(ctx); err != nil { // what has arrived is written
		return 0, err
	}
	list, err := l.exec(ctx, "ls", "-A")
	if err != nil {
		return 0, err
	}
	part := ""
	for name := range strings.Lines(list) {
		if name = strings.TrimSpace(name); strings.HasPrefix(name, ".big") {
			part = name
		}
	}
	if part == "" {
		return 0, errors.New("nothing of the cut copy is left in the job")
	}
	// An unfinished file is no part of a tree for haggle cp, so that it is fetched through another program.
	copied := filepath.Join(l.work, "part")
	if err := l.fetch(ctx, part, copied); err != nil {
		return 0, err
	}
	return differing(file, copied)
}

// fetch brings a file out of the job through a command there.
func (l *insideLab) fetch(ctx context.Context, from, to string) (err error) {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var said bytes.Buffer
	c := l.command(ctx, haggle, "exec", jobName, "--", "cat", from)
	c.Stdout, c.Stderr = f, &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("fetch %s: %w: %s", from, err, said.Bytes())
	}
	return nil
}

// sameInside wants a file to be the same in the job.
func (l *insideLab) sameInside(ctx context.Context, file, inside string) error {
	copied := filepath.Join(l.work, "whole")
	if err := l.fetch(ctx, inside, copied); err != nil {
		return err
	}
	if n, err := differing(file, copied); err != nil || n > 0 {
		return fmt.Errorf("%d bytes in the job differ: %w", n, err)
	}
	return nil
}

// differing counts the bytes of a file that another does not have in the same place, by pages.
func differing(file, other string) (n int64, err error) {
	a, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	b, err := os.Open(other)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	var one, two [4096]byte
	for {
		k, err := io.ReadFull(a, one[:])
		if err == io.EOF {
			return n, nil
		}
		m, _ := io.ReadFull(b, two[:]) // the other may be shorter
		if !bytes.Equal(one[:k], two[:m]) {
			n += int64(k)
		}
		if err != nil {
			return n, nil
		}
	}
}
