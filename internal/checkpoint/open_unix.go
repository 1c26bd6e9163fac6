//go:build unix

package checkpoint

import (
	"os"
	"syscall"
)

// openRegular opens a file to read. What has become a fifo since must not hold us up.
func openRegular(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
