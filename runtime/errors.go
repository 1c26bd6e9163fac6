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
	// ErrNoDevice: this machine has no such device, or no description of how to pass it on.
	ErrNoDevice = errors.New("no such device")
	// ErrDeviceBusy: another job holds the device.
	ErrDeviceBusy = errors.New("device belongs to another job")
	// ErrPolicy: what the device's description asks for is not given to any job.
	ErrPolicy = errors.New("refused by policy")
	// ErrNoRoom: the machine has no room for the job's disk, or for the image.
	ErrNoRoom = errors.New("no room on the disk")
	// ErrImageTooBig: the image takes more room than any may, packed or unpacked.
	ErrImageTooBig = errors.New("image is too big")
)
