//go:build !linux

package door

import "os"

// nameless makes a file in dir that is gone soon.
func nameless(dir string) (*os.File, error) { return unlinked(dir) }
