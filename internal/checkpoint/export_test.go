package checkpoint

import (
	"context"
	"io"
	"os"
)

// Unpack is Restore of what is packed and encrypted no more.
func Unpack(ctx context.Context, r io.Reader, root *os.Root, limits Limits) (Restored, error) {
	return unpack(ctx, r, root, limits)
}
