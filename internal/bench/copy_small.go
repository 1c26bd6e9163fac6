package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	smallFolders = 100
	smallEach    = 100 // files in each folder
	smallSize    = 4 << 10
	smallTurns   = 5
)

// copySmall compares the time to copy many small files into a job with that of tar at both ends of a TCP connection.
// Milliseconds, medians.
func copySmall(ctx context.Context) (ours, theirs float64, err error) {
	l, err := startInside(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer l.stop()
	tree := filepath.Join(l.work, "tree")
	if err := makeTree(tree); err != nil {
		return 0, 0, err
	}
	var mine, peers tally
	for n := range smallTurns + 1 {
		name := fmt.Sprint("tree-", n)
		daemons, err := l.daemons(ctx)
		if err != nil {
			return 0, 0, err
		}
		took, err := weigh(ctx, daemons, func(ctx context.Context) ([]*exec.Cmd, error) {
			c := l.command(ctx, haggle, "cp", tree+"/", at(name+"/"))
			return []*exec.Cmd{c}, quietly(c)
		})
		if err != nil {
			return 0, 0, err
		}
		if _, err := l.exec(ctx, "rm", "-r", name); err != nil {
			return 0, 0, err
		}
		to := filepath.Join(l.work, name)
		peer, err := weigh(ctx, nil, func(ctx context.Context) ([]*exec.Cmd, error) { return l.tarOver(ctx, tree, to) })
		if err := errors.Join(err, os.RemoveAll(to)); err != nil {
			return 0, 0, err
		}
		if n > 0 { // the first pair warms both
			mine, peers = append(mine, took), append(peers, peer)
		}
	}
	return milliseconds(mine), milliseconds(peers), refuseBusy(mine, peers)
}

func milliseconds(t tally) float64 { return t.wall().Seconds() * 1000 }

// tarOver is tar, a TCP connection, and tar.
func (l *insideLab) tarOver(ctx context.Context, tree, to string) ([]*exec.Cmd, error) {
	if err := os.Mkdir(to, 0o755); err != nil {
		return nil, err
	}
	pack := exec.CommandContext(ctx, "tar", "-C", tree, "-cf", "-", ".")
	unpack := exec.CommandContext(ctx, "tar", "-C", to, "-xf", "-")
	fromPack, packed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	toUnpack, unpacked, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, fromPack.Close(), packed.Close())
	}
	pack.Stdout, unpack.Stdin = packed, toUnpack
	if err := errors.Join(pack.Start(), unpack.Start()); err != nil {
		return nil, err
	}
	err = errors.Join(packed.Close(), toUnpack.Close())
	ends, pipeErr := pipe(ctx, l.load, fromPack, unpacked)
	err = errors.Join(err, pipeErr, fromPack.Close(), unpacked.Close())
	return append(ends, pack, unpack), errors.Join(err, pack.Wait(), unpack.Wait())
}

// makeTree makes the small files, each with other contents.
func makeTree(root string) error {
	content := bytes.Repeat([]byte("haggle. "), smallSize/8)
	for d := range smallFolders {
		dir := filepath.Join(root, fmt.Sprintf("folder-%02d", d))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for f := range smallEach {
			copy(content, fmt.Sprintf("%08d", d*smallEach+f))
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%02d", f)), content, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
