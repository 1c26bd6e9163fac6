package runtime

import (
	"errors"
	"os"
)

func detachSession() {}

// lockFile fails: loggers belong to containerd, which haggle does not use on Windows.
func lockFile(*os.File) error { return errors.ErrUnsupported }
