package nvml

import (
	"fmt"
	"time"
)

// EventKind says what happened to a card.
type EventKind string

// The kinds of events.
const (
	// EventXid is an error that NVIDIA's kernel driver reported; Code is its number.
	EventXid EventKind = "xid"
	// EventECC means new memory errors that could not be corrected; Code is how many.
	EventECC EventKind = "ecc"
	// EventLost means that the card vanished; Code is 0.
	EventLost EventKind = "lost"
	// EventHang means that a call missed its deadline; Code is how many did so in a row.
	EventHang EventKind = "hang"
)

// HealthEvent is something that happened to a card.
type HealthEvent struct {
	// UUID names the card.
	UUID string `json:"uuid"`
	// Kind says what happened and what Code means.
	Kind EventKind `json:"kind"`
	// Code is described at each kind.
	Code int `json:"code"`
	// At is the time since the driver was opened, by the driver's own monotonic clock.
	At time.Duration `json:"at_ns"`
	// NeedsReset is the driver's own opinion of whether the card needs a reset, where it has one.
	NeedsReset Opt[bool] `json:"needs_reset,omitzero"`
}

// String returns a short text for logs, such as "xid 79 on GPU-1f3a".
func (e HealthEvent) String() string {
	if e.Kind == EventLost {
		return fmt.Sprintf("lost on %s", e.UUID)
	}
	return fmt.Sprintf("%s %d on %s", e.Kind, e.Code, e.UUID)
}
