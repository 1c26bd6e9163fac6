//go:build linux

package remote

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"

	"haggle/runtime"
)

// class is one class of errors with the code by which it crosses.
type class struct {
	code string
	is   error
}

// classes are all that a caller may branch on.
func classes() []class {
	return []class{
		{"invalid_spec", runtime.ErrInvalidSpec},
		{"image_not_found", runtime.ErrImageNotFound},
		{"bad_archive", runtime.ErrBadArchive},
		{"conflict", runtime.ErrConflict},
		{"not_found", runtime.ErrNotFound},
		{"unavailable", runtime.ErrUnavailable},
		{"unsupported", runtime.ErrUnsupported},
		{"no_device", runtime.ErrNoDevice},
		{"device_busy", runtime.ErrDeviceBusy},
		{"policy", runtime.ErrPolicy},
		{"no_room", runtime.ErrNoRoom},
		{"image_too_big", runtime.ErrImageTooBig},
		{"invalid_argument", os.ErrInvalid},
		{"malformed", errMalformed},
	}
}

// apology is an error on its way.
type apology struct {
	Codes   []string `json:",omitempty"` // of every class that the error is of
	Message string
}

// apologize puts an error into its form for the wire. That a call of the engine was cut short by the helper says nothing of the
// job: to the daemon the helper is away.
func apologize(err error) *apology {
	if err == nil {
		return nil
	}
	a := &apology{Message: strings.ToValidUTF8(clip(err.Error()), "?")}
	for _, c := range classes() {
		if errors.Is(err, c.is) {
			a.Codes = append(a.Codes, c.code)
		}
	}
	if len(a.Codes) == 0 && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		a.Codes = []string{"unavailable"}
	}
	return a
}

// err is the error that an apology stands for; nil of none.
func (a *apology) err() error {
	if a == nil {
		return nil
	}
	e := &remoteError{message: clip(a.Message)}
	for _, code := range a.Codes {
		for _, c := range classes() {
			if c.code == code {
				e.is = append(e.is, c.is)
			}
		}
	}
	return e
}

// status is the HTTP status that goes with an apology. Only people read it.
func (a *apology) status() int {
	switch {
	case len(a.Codes) == 0:
		return http.StatusInternalServerError
	case a.Codes[0] == "not_found":
		return http.StatusNotFound
	case a.Codes[0] == "unavailable":
		return http.StatusServiceUnavailable
	}
	return http.StatusUnprocessableEntity
}

// remoteError is an error of the helper.
type remoteError struct {
	message string
	is      []error
}

func (e *remoteError) Error() string   { return e.message }
func (e *remoteError) Unwrap() []error { return e.is }

func clip(s string) string { return s[:min(len(s), maxMessage)] }
