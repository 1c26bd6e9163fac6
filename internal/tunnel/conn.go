// Package tunnel carries streams of bytes between a renter's program and the door of a job, so that they outlive the
// connections below them.
package tunnel

import "io"

// Conn is a stream of bytes both ways. CloseWrite tells the other side that nothing more comes; Close ends both ways.
type Conn = interface {
	io.ReadWriteCloser
	CloseWrite() error
}
