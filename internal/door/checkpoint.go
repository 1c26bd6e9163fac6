package door

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"

	"filippo.io/age"

	"haggle/internal/checkpoint"
	"haggle/internal/tunnel"
)

// defaultCheckpoint is where jobs leave their state.
const defaultCheckpoint = "/work/ckpt"

// RestoreCheckpoint writes the files of a checkpoint's stream into the local folder dir, which should be fresh. See
// checkpoint.Restore for what a hostile stream can do: nothing outside dir.
func RestoreCheckpoint(ctx context.Context, r io.Reader, key age.Identity, dir string) error {
	_, err := checkpoint.Restore(ctx, r, key, dir, checkpoint.Limits{})
	return err
}

// serveCheckpoint is the kind checkpoint: one line of JSON, checkpoint.Header, and then the stream, where it follows. The end
// of the channel without an error means that the stream is whole.
func (d *Door) serveCheckpoint(ctx context.Context, args json.RawMessage, c *tunnel.Channel) error {
	var a tunnel.CheckpointArgs
	if err := decode(args, &a); err != nil {
		return err
	}
	dir, to, err := d.checkpointOf(a.Dir, a.Recipients)
	if err != nil {
		return err
	}
	state, err := checkpoint.Survey(ctx, dir)
	if err != nil {
		return failed(err)
	}
	state.Follows = state.Files > 0 && state.Digest != a.Known
	w := bufio.NewWriterSize(c, 64<<10)
	if err := json.NewEncoder(w).Encode(state.Header); err != nil {
		return err
	}
	if state.Follows {
		if err := checkpoint.Write(ctx, w, dir, state, to); err != nil {
			return failed(err)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return c.CloseWrite()
}

// checkpointOf checks what a request says about a checkpoint.
func (d *Door) checkpointOf(dir string, recipients []string) (string, []age.Recipient, error) {
	if dir == "" {
		dir = defaultCheckpoint
	}
	if !path.IsAbs(dir) || strings.Contains(dir, "\x00") {
		return "", nil, refuse("bad_request", "the checkpoint folder must be an absolute path")
	}
	to, err := checkpoint.Recipients(recipients)
	if err != nil {
		return "", nil, refuse("bad_request", "%v", err)
	}
	return d.place(dir), to, nil
}

// failed is what the renter's side is told of an error.
func failed(err error) error {
	var known *tunnel.Error
	if errors.As(err, &known) {
		return err
	}
	return refuse("failed", "%v", err)
}
