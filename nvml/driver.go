package nvml

import (
	"context"
	"errors"
)

// What a caller of a Driver may branch on.
var (
	// ErrNoDriver means that no driver is installed or loaded; there are no cards to speak of.
	ErrNoDriver = errors.New("no graphics driver")
	// ErrNoCard means that no card has the given UUID.
	ErrNoCard = errors.New("no such card")
	// ErrLost means that the card was there and no longer answers, for example because it fell off the bus.
	ErrLost = errors.New("card lost")
	// ErrTimeout means that the card did not answer before the context's deadline, and then comes with the context's
	// error, or before a deadline of the driver's own.
	ErrTimeout = errors.New("card did not answer in time")
	// ErrUnsupported means that this card, its driver or this process cannot do it.
	ErrUnsupported = errors.New("not supported")
	// ErrClosed means that the driver was closed.
	ErrClosed = errors.New("driver closed")
)

// DriverInfo says which software speaks for the cards.
type DriverInfo struct {
	// Version is the driver's version, such as "550.163.01"; "simulated" for simulated cards.
	Version string `json:"version"`
	// CUDA is the newest CUDA that the driver runs, 1000 times the major plus 10 times the minor version: 12040.
	CUDA Opt[int] `json:"cuda,omitzero"`
	// Library names what answered, such as "libnvidia-ml.so.1".
	Library string `json:"library"`
}

// Driver reads cards. All methods may be called at the same time. Every call ends when its context does, even if the
// card hangs; it then returns the context's error, together with ErrTimeout when a deadline passed. After Close every
// call returns ErrClosed. Package nvmltest tests these promises.
type Driver interface {
	// Info describes the driver.
	Info(ctx context.Context) (DriverInfo, error)
	// Cards lists the cards that answer, each with a UUID of its own, always in the same order. A card that is lost
	// is left out. The slice belongs to the caller.
	Cards(ctx context.Context) ([]Card, error)
	// Sample reads one card. It returns ErrNoCard for a UUID that never was there and ErrLost for one that vanished.
	Sample(ctx context.Context, uuid string) (Sample, error)
	// Events returns what happens from now on. The channel is closed when the context ends or the driver is closed,
	// and also when its reader falls too far behind: the reader has then missed something, must take the cards'
	// health for unknown, and may ask again.
	Events(ctx context.Context) (<-chan HealthEvent, error)
	// Close frees the driver and ends calls that are waiting. Closing twice is harmless.
	Close() error
}
