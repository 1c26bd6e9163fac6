package p2p

import (
	"errors"
	"io"
	"time"
)

// Conn is a stream of bytes both ways. CloseWrite tells the other side that nothing more comes; Close ends both ways.
type Conn = interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Raw turns the conversation into plain bytes, from behind the last frame that was received and sent. Both sides must have
// agreed on it, and nothing may Send or Receive from now on. The bytes have no deadlines and no bound: whoever reads them
// sets the pace. Closing it closes the stream.
func (s *Stream) Raw() Conn {
	// A dead connection fails with the first read or write.
	_ = s.wire.SetReadDeadline(time.Time{})
	_ = s.wire.SetWriteDeadline(time.Time{})
	return &raw{s}
}

type raw struct{ s *Stream }

func (r *raw) Read(p []byte) (int, error)  { return r.s.wire.Read(p) }
func (r *raw) Write(p []byte) (int, error) { return r.s.wire.Write(p) }

// Close ends both directions: what was written still arrives, and a Read or Write that waits here gives up.
func (r *raw) Close() error {
	err := r.s.Close()
	_ = r.s.wire.SetReadDeadline(time.Unix(1, 0)) // a dead connection fails by itself
	_ = r.s.wire.SetWriteDeadline(time.Unix(1, 0))
	return err
}

func (r *raw) CloseWrite() error {
	half, ok := r.s.wire.(interface{ CloseWrite() error })
	if !ok {
		return errors.New("close half of a stream: the connection below cannot")
	}
	return half.CloseWrite()
}
