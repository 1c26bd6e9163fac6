//go:build !linux

package api

import "net"

// checkPeer trusts the socket's mode and its folder's on systems without SO_PEERCRED.
func checkPeer(*net.UnixConn) error { return nil }
