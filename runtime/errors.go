package runtime

import "errors"

// Error classes. Engines wrap them with the job or the image that they are about.
var (
	// ErrInvalidSpec: the job as described can never start; asking again is useless until it is changed.
	ErrInvalidSpec = errors.New("invalid job")
	// ErrImageNotFound: the engine holds no image of this digest.
	ErrImageNotFound = errors.New("image not found")
	// ErrBadArchive: the bytes are no image archive for this machine.
	ErrBadArchive = errors.New("bad image archive")
	// ErrConflict: the job exists but not as asked: made from another spec, or past the wanted state.
	ErrConflict = errors.New("job is in another state or made from another spec")
	// ErrNotFound: there is no such job, or no such figure of it any more.
	ErrNotFound = errors.New("job not found")
	// ErrUnavailable: the engine does not answer now. The state of jobs is unknown, not bad; try again.
	ErrUnavailable = errors.New("engine unavailable")
	// ErrUnsupported: this engine on this machine cannot do it.
	ErrUnsupported = errors.New("not supported here")
)
