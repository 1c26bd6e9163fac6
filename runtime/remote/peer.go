//go:build linux

package remote

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"golang.org/x/sys/unix"
)

// errStranger means that the process at the other end belongs to a user who has no business here.
var errStranger = errors.New("the process at the other end of the socket is of another user")

// checkPeer asks the kernel whose process is at the other end.
func checkPeer(conn *net.UnixConn, allowed ...int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("ask for the peer's user: %w", err)
	}
	var peer *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) { peer, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return fmt.Errorf("ask for the peer's user: %w", err)
	}
	if asked != nil {
		return fmt.Errorf("ask for the peer's user: %w", asked)
	}
	if !slices.Contains(allowed, int(peer.Uid)) {
		return fmt.Errorf("uid %d: %w", peer.Uid, errStranger)
	}
	return nil
}
