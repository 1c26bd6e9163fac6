package tunnel

import (
	"context"
	"errors"
	"io"
)

// Relay copies bytes between two streams until both directions have ended, one fails, or ctx ends; then it closes both. An end
// in one direction is passed on, and the other goes on. The error is what broke it; nil after a clean end.
func Relay(ctx context.Context, a, b Conn) error {
	stop := context.AfterFunc(ctx, func() { _, _ = a.Close(), b.Close() })
	defer stop()
	ends := make(chan error, 2)
	pass := func(to, from Conn) {
		err := move(to, from)
		if err == nil {
			err = to.CloseWrite()
		}
		if err != nil {
			_, _ = a.Close(), b.Close()
		}
		ends <- err
	}
	go pass(a, b)
	go pass(b, a)
	first, second := <-ends, <-ends
	_, _ = a.Close(), b.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(first, second)
}

// move copies to the end; a channel lends its own buffer.
func move(to, from Conn) (err error) {
	if c, ok := from.(*Channel); ok {
		_, err = c.WriteTo(to)
	} else if c, ok := to.(*Channel); ok {
		_, err = c.ReadFrom(from)
	} else {
		_, err = io.CopyBuffer(onlyWriter{to}, onlyReader{from}, make([]byte, relayBuffer))
	}
	return err
}

// relayBuffer is what one direction of a relay holds: two packets of the widest stream.
const relayBuffer = 128 << 10

// The wrappers hide ReadFrom and WriteTo, which would bring buffers of their own.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)
