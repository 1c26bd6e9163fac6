package api

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checkPeer asks the kernel whose process is at the other end.
func checkPeer(conn *net.UnixConn) error {
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
	return admit(int(peer.Uid), os.Getuid())
}
