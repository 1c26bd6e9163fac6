//go:build linux

package main

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
)

// notifyReady tells systemd, where it started this program, that the program has all that it needs to begin.
func (*program) notifyReady(log *slog.Logger) {
	if err := notify(os.Getenv("NOTIFY_SOCKET"), "READY=1"); err != nil {
		log.Warn("systemd is not told", "err", err)
	}
}

// notify sends a state to the socket that systemd gives to a service; none is no error. A name that begins with @ is abstract.
func notify(socket, state string) (err error) {
	if socket == "" {
		return nil
	}
	if abstract, ok := strings.CutPrefix(socket, "@"); ok {
		socket = "\x00" + abstract
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	_, err = conn.Write([]byte(state))
	return err
}
