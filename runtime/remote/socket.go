//go:build linux

package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// ErrInUse means that another program answers on the socket.
var ErrInUse = errors.New("another program answers on this socket")

// listen takes the socket's path for one user and for root. The folder must be there, and nobody else's.
func listen(ctx context.Context, c Config) (net.Listener, error) {
	if err := clearStale(ctx, c.Socket); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.Socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// Until now the socket is of this user alone, whatever its mode: peers are asked who they are.
	if err := errors.Join(os.Chmod(c.Socket, 0o660), os.Lchown(c.Socket, -1, c.GID)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	allowed := []int{0, os.Getuid(), c.UID}
	d := &doorkeeper{UnixListener: l, places: make(chan struct{}, c.Limits.Connections), log: c.Log}
	d.check = func(conn *net.UnixConn) error { return checkPeer(conn, allowed...) }
	if c.without(ProtectPeer) {
		d.check = func(*net.UnixConn) error { return nil }
	}
	return d, nil
}

// clearStale removes a socket that nobody answers on. Anything else at the path is left alone: binding will fail on it.
func clearStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err == nil {
		return errors.Join(ErrInUse, conn.Close())
	}
	return os.Remove(path)
}

// doorkeeper lets in a bounded number of connections of the right users.
type doorkeeper struct {
	*net.UnixListener
	check  func(*net.UnixConn) error
	places chan struct{}
	log    *slog.Logger
}

// Accept implements net.Listener.
func (d *doorkeeper) Accept() (net.Conn, error) {
	for {
		conn, err := d.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if err := d.check(conn); err != nil {
			d.log.Warn("connection refused", "err", errors.Join(err, conn.Close()))
			continue
		}
		select {
		case d.places <- struct{}{}:
			return &visitor{UnixConn: conn, leave: sync.OnceFunc(func() { <-d.places })}, nil
		default:
			d.log.Warn("connection refused", "err", errors.Join(fmt.Errorf("%d are open", cap(d.places)), conn.Close()))
		}
	}
}

// visitor is a connection that was let in.
type visitor struct {
	*net.UnixConn
	leave func()
}

// Close implements net.Conn.
func (v *visitor) Close() error {
	defer v.leave()
	return v.UnixConn.Close()
}
