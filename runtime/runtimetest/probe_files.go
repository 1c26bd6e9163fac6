package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// files runs the commands of Probe that are about files. The first failure ends them with code 1.
func files(ctx context.Context, p *Process, command string, args []string) int {
	var err error
	switch {
	case command == "write" && len(args) == 2:
		err = p.Disk.write(args[0], []byte(args[1]))
	case command == "fill" && len(args) == 1:
		if err = fill(args[0]); err != nil {
			fmt.Fprintln(p.Stdout, err)
		}
		return polite(ctx, p)
	case command == "mknod" && len(args) == 3:
		err = mknod(args[0], int(number(args[1:])), int(number(args[2:])))
	case command == "open":
		for _, path := range args {
			fmt.Fprintln(p.Stdout, path, open(path))
		}
	case command == "cat":
		for _, path := range args {
			if err = cat(p, path); err != nil {
				break
			}
		}
	case command == "stat":
		for _, path := range args {
			if err = describe(p.Stdout, path); err != nil {
				break
			}
		}
	default:
		err = fmt.Errorf("probe: %s with %d arguments", command, len(args))
	}
	if err != nil {
		fmt.Fprintln(p.Stderr, err)
		return 1
	}
	return 0
}

// fill returns the error that ends it. It keeps no file open.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for size := len(block); ; {
		if _, err = f.Write(block[:size]); err == nil {
			continue
		}
		if size /= 2; size == 0 {
			return err
		}
	}
}

// open says what came of opening a file.
func open(path string) string {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		var reason *os.PathError
		if errors.As(err, &reason) {
			err = reason.Err
		}
		return err.Error()
	}
	_ = f.Close() // only whether it opens is asked
	return "opened"
}

func cat(p *Process, path string) error {
	if p.Disk != nil {
		data, err := p.Disk.read(path)
		_, _ = p.Stdout.Write(data)
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(p.Stdout, f)
	return err
}

// fetch prints what a server says.
func fetch(ctx context.Context, p *Process, args []string) int {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", strings.Join(args, ""))
	if err == nil {
		defer conn.Close()
		_, err = io.Copy(p.Stdout, conn)
	}
	if err != nil {
		fmt.Fprintln(p.Stderr, err)
		return 1
	}
	return 0
}
