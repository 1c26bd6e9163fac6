package filesync

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Code names why a copy failed.
type Code string

// The codes of Error.
const (
	// CodeNotFound: there is no such file or folder.
	CodeNotFound Code = "not_found"
	// CodeNoSpace: the receiving disk, or a quota on it, is full.
	CodeNoSpace Code = "no_space"
	// CodePermission: the system does not allow it.
	CodePermission Code = "permission"
	// CodeBadPath: a path that leads out of its folder, or that a copy cannot have.
	CodeBadPath Code = "bad_path"
	// CodeTooLarge: more bytes, entries or levels than are accepted.
	CodeTooLarge Code = "too_large"
	// CodeChanged: a file kept changing while it was copied.
	CodeChanged Code = "changed"
	// CodeFailed: anything else.
	CodeFailed Code = "failed"
)

// Error says why a copy failed, at either side. Path is in words of the side where it happened, and may be empty. What came
// from the far side is bounded in length, and must be stripped before it is shown.
type Error struct {
	Code    Code
	Path    string
	Message string
}

// Error returns the path and the message.
func (e *Error) Error() string {
	if e.Path == "" {
		return "copy files: " + e.Message
	}
	return fmt.Sprintf("copy files: %s: %s", e.Path, e.Message)
}

func known(c Code) bool {
	switch c {
	case CodeNotFound, CodeNoSpace, CodePermission, CodeBadPath, CodeTooLarge, CodeChanged, CodeFailed:
		return true
	}
	return false
}

// errorOf makes an error of the file system into one with a code. An *Error without a path gets this one.
func errorOf(path string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Path == "" {
			return &Error{Code: e.Code, Path: path, Message: e.Message}
		}
		return e
	}
	code := CodeFailed
	switch {
	case isNoSpace(err):
		code = CodeNoSpace
	case errors.Is(err, fs.ErrNotExist):
		code = CodeNotFound
	case errors.Is(err, fs.ErrPermission):
		code = CodePermission
	}
	msg := err.Error()
	// The path of the process that failed is not the other side's business: the path of the copy is beside it.
	var pe *os.PathError
	var le *os.LinkError
	var se *os.SyscallError
	switch {
	case errors.As(err, &pe):
		msg = pe.Err.Error()
	case errors.As(err, &le):
		msg = le.Err.Error()
	case errors.As(err, &se):
		msg = se.Err.Error()
	}
	return &Error{Code: code, Path: path, Message: msg}
}

func badFrame(format string, args ...any) *Error {
	return &Error{Code: CodeFailed, Message: "the other side broke the protocol: " + fmt.Sprintf(format, args...)}
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
