package door

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"haggle/internal/tunnel"
)

// servePing is the kind ping, by which a renter sees for itself that its job answers: each nonce comes back as it is. One that is cut
// short is refused.
func (d *Door) servePing(_ context.Context, _ json.RawMessage, c *tunnel.Channel) error {
	var nonce [tunnel.PingSize]byte
	for {
		switch _, err := io.ReadFull(c, nonce[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return refuse("bad_request", "a ping has %d bytes", tunnel.PingSize)
		case err != nil:
			return err
		}
		if _, err := c.Write(nonce[:]); err != nil {
			return err
		}
	}
}
