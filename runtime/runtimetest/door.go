package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"haggle/runtime"
)

// firstRead is how much of a path's beginning is looked at for a question, in bytes.
const firstRead = 4096

// answerPath is what a door for tests does with a path, the nth of this door. What comes first may be one whole question:
//
//	count        is answered by the number of paths so far, this one included
//	read PATH    is answered by the content of a file, or by "error: " and why not
//
// Everything else is echoed, and so is the end of it. The caller closes the path.
func answerPath(c runtime.Conn, nth int, read func(path string) ([]byte, error)) error {
	first := make([]byte, firstRead)
	n, err := c.Read(first)
	first = first[:n]
	question, whole := bytes.CutSuffix(first, []byte("\n"))
	file, isRead := strings.CutPrefix(string(question), "read ")
	switch {
	case whole && string(question) == "count":
		first = fmt.Appendf(nil, "%d\n", nth)
	case whole && isRead:
		var fault error
		if first, fault = read(file); fault != nil {
			first = fmt.Appendf(nil, "error: %v", fault)
		}
	case errors.Is(err, io.EOF) && n == 0:
		return c.CloseWrite()
	case err != nil:
		return err
	default:
		if _, err := c.Write(first); err != nil {
			return err
		}
		if _, err := io.Copy(c, c); err != nil {
			return err
		}
		return c.CloseWrite()
	}
	if _, err := c.Write(first); err != nil {
		return err
	}
	return c.CloseWrite()
}

// door is the command of Probe that stands in for the real door. Flags may come after the address, too.
func door(ctx context.Context, p *Process, args []string) int {
	flags := flag.NewFlagSet("door", flag.ContinueOnError)
	flags.SetOutput(p.Stderr)
	idle := flags.Duration("idle", 0, "end when no path has been open for so long")
	root := flags.String("root", "", "the folder that is /work")
	err := flags.Parse(args)
	address := flags.Arg(0)
	if err == nil && address != "" {
		err = flags.Parse(flags.Args()[1:])
	}
	if err != nil || address == "" || flags.NArg() > 0 {
		fmt.Fprintln(p.Stderr, "probe: door [--idle DURATION] [--root DIR] ADDRESS", err)
		return 2
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", address)
	if err != nil {
		fmt.Fprintln(p.Stderr, err)
		return 1
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-p.Terminate:
		case <-ctx.Done():
		case <-ended:
		}
		_ = l.Close() // Accept says so
	}()
	d := &doorman{root: *root, idle: *idle}
	d.timer = time.AfterFunc(time.Hour, func() { _ = l.Close() })
	defer d.timer.Stop()
	d.rest()
	fmt.Fprintln(p.Stdout, "ready")
	for {
		conn, err := l.Accept()
		if err != nil {
			return 0
		}
		nth := d.begin()
		go d.serve(conn.(*net.UnixConn), nth)
	}
}

// doorman counts the paths of a door.
type doorman struct {
	root  string
	idle  time.Duration
	timer *time.Timer

	mu          sync.Mutex
	open, total int
}

// rest starts the time without a path.
func (d *doorman) rest() {
	if d.idle > 0 {
		d.timer.Reset(d.idle)
		return
	}
	d.timer.Stop()
}

func (d *doorman) begin() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer.Stop()
	d.open++
	d.total++
	return d.total
}

func (d *doorman) serve(c *net.UnixConn, nth int) {
	_, _ = answerPath(c, nth, d.read), c.Close() // the other side sees what became of it
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open--; d.open == 0 {
		d.rest()
	}
}

// read reads a file of the job, where /work may be a folder elsewhere.
func (d *doorman) read(path string) ([]byte, error) {
	if below, ok := strings.CutPrefix(path, runtime.WorkDir+"/"); ok && d.root != "" {
		path = filepath.Join(d.root, filepath.FromSlash(below))
	}
	return os.ReadFile(path)
}
