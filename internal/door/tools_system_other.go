//go:build !unix

package door

import (
	"errors"
	"io/fs"
)

func crossDevice() error { return errors.ErrUnsupported }

func owner(fs.FileInfo) string { return "-" }

func id(t *tool) { t.check(errors.ErrUnsupported) }

func uname(t *tool) { t.check(errors.ErrUnsupported) }

func kill(t *tool) { t.check(errors.ErrUnsupported) }

func ps(t *tool) { t.check(errors.ErrUnsupported) }
