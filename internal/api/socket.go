package api

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"
)

// ErrInUse means that another program answers on the socket.
var ErrInUse = errors.New("another program answers on this socket")

// errStranger: the peer's user is neither this one nor root.
var errStranger = errors.New("the peer is another user")

// listen takes the socket's path and sets who may use it.
func listen(c Config) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(c.Socket), 0o700); err != nil {
		return nil, err
	}
	if err := clearStale(c.Socket); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.Socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := permit(c); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &doorkeeper{UnixListener: l, anyUser: c.Group != "", log: c.Log}, nil
}

// clearStale removes a socket that nobody answers on. Anything else at the path is left alone: binding will fail on it.
func clearStale(path string) error {
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
	conn, err := net.DialTimeout("unix", path, time.Second) //nolint:noctx // one second on this machine is bound enough
	if err == nil {
		return errors.Join(ErrInUse, conn.Close())
	}
	return os.Remove(path)
}

// permit sets the socket's mode, and its group if there is one. Until then the folder and doorkeeper keep others out.
func permit(c Config) error {
	if c.Group == "" {
		return os.Chmod(c.Socket, 0o600)
	}
	g, err := user.LookupGroup(c.Group)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(g.Gid)
	if err != nil {
		return fmt.Errorf("group %s: %w", c.Group, err)
	}
	if err := os.Chown(c.Socket, -1, gid); err != nil {
		return err
	}
	return os.Chmod(c.Socket, 0o660)
}

// doorkeeper accepts connections of this user and root only. Where a group may use the socket, the file's mode decides alone.
type doorkeeper struct {
	*net.UnixListener
	anyUser bool
	log     *slog.Logger
}

func (d *doorkeeper) Accept() (net.Conn, error) {
	for {
		conn, err := d.AcceptUnix()
		if err != nil || d.anyUser {
			return conn, err
		}
		if err = checkPeer(conn); err == nil {
			return conn, nil
		}
		d.log.Warn("connection refused", "err", errors.Join(err, conn.Close()))
	}
}

// admit decides by the peer's uid.
func admit(peer, mine int) error {
	if peer != mine && peer != 0 {
		return fmt.Errorf("uid %d: %w", peer, errStranger)
	}
	return nil
}
