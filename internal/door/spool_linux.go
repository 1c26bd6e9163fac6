package door

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// nameless makes a file in dir that is gone with the door, also when the door is killed.
func nameless(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) {
		return unlinked(dir)
	}
	return f, err
}
