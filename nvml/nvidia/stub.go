//go:build !linux || !cgo

package nvidia

import (
	"fmt"
	"io"

	"haggle/nvml"
)

const supported = false

// RunChild returns nvml.ErrNoDriver: this program was built without what it takes to load the driver's library.
func RunChild(io.Reader, io.Writer) error {
	return fmt.Errorf("this program was built without NVML: %w", nvml.ErrNoDriver)
}
