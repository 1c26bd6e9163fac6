package door

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"haggle/internal/filesync"
	"haggle/internal/tunnel"
)

// dialTime is how long a port may take to answer.
const dialTime = 10 * time.Second

// serveDial is the kind dial: a stream to a port that something in the job listens on.
func (d *Door) serveDial(ctx context.Context, args json.RawMessage, c *tunnel.Channel) error {
	var to tunnel.DialArgs
	if err := decode(args, &to); err != nil {
		return err
	}
	if to.Port == 0 || len(to.Host) > 253 {
		return refuse("bad_request", "a port from 1 to 65535 is needed")
	}
	conn, err := dialPort(ctx, to.Host, to.Port)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			return refuse("no_such_port", "nothing listens on port %d of the job", to.Port)
		}
		return refuse("failed", "port %d of the job: %s", to.Port, short(err))
	}
	return tunnel.Relay(ctx, c, conn)
}

// dialPort dials from inside the job; no host is the job itself.
func dialPort(ctx context.Context, host string, port uint16) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	hosts := []string{host}
	if host == "" || host == "localhost" {
		hosts = []string{"127.0.0.1", "::1"}
	}
	var dialer net.Dialer
	var first error
	for _, h := range hosts {
		c, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(h, strconv.Itoa(int(port))))
		if err == nil {
			return c.(*net.TCPConn), nil // without delay: Go sets TCP_NODELAY
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// serveFiles is the kind files: the far half of a copy.
func (d *Door) serveFiles(ctx context.Context, args json.RawMessage, c *tunnel.Channel) error {
	var a tunnel.FilesArgs
	if err := decode(args, &a); err != nil {
		return err
	}
	return filesync.Serve(ctx, c, d.filesAt(a.Base))
}

// filesAt says where copies go. Where the job has no file system of its own, /work is a folder beside the job's others, and no
// path leads further.
func (d *Door) filesAt(base string) filesync.ServeConfig {
	if d.cfg.Root != "" && filepath.Base(d.cfg.Root) == "work" {
		if base == "" {
			base = "/work"
		}
		return filesync.ServeConfig{Root: filepath.Dir(d.cfg.Root), Base: base}
	}
	return filesync.ServeConfig{Base: d.place(base)}
}
