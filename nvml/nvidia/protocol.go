package nvidia

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"haggle/nvml"
)

// The bounds of the talk between parent and child.
const (
	protocolVersion = 1
	maxFrame        = 64 << 10 // bytes of JSON in one frame
	maxCards        = 64       // cards of one rig
	maxDenied       = 256      // symbols that may be denied
	maxText         = 256      // bytes of a sentence about an error
	maxLimit        = 1 << 31  // milliwatts that anybody may ask for
)

// The questions.
const (
	opOpen   = "open"   // load the library; always the first, and only once
	opList   = "list"   // which cards are there
	opCard   = "card"   // what is the card
	opSample = "sample" // how does the card fare
	opPower  = "power"  // bound the card's power
)

// The answers that are none.
const (
	codeNoDriver = "no_driver" // there is nothing to ask
	codeNoCard   = "no_card"   // no card has the UUID
	codeLost     = "lost"      // the card was there
	codeHung     = "hung"      // the card has not yet answered an earlier question
	codeFailed   = "failed"    // anything else

	codeUnsupported = "unsupported"   // the card or its driver cannot do it
	codePermission  = "no_permission" // only root may
)

// request is a question of the parent.
type request struct {
	ID   uint64   `json:"id"`
	Op   string   `json:"op"`
	UUID string   `json:"uuid,omitempty"`
	Open *opening `json:"open,omitempty"`
	// MilliWatt is the limit that opPower asks for; 0 is the card's own.
	MilliWatt int64 `json:"milliwatt,omitempty"`
	// Specs and Scrub say more about the questions of a child that answers only one.
	Specs *specsOrder `json:"specs,omitempty"`
	Scrub *scrubOrder `json:"scrub,omitempty"`
}

// opening tells a new child how to behave.
type opening struct {
	Version int           `json:"version"`
	Library string        `json:"library"`
	Deny    []string      `json:"deny,omitempty"` // symbols that must not be called
	Beat    time.Duration `json:"beat_ns"`        // how often to give a sign of life
	Grace   time.Duration `json:"grace_ns"`       // how long to wait for cards before the first answer
}

// reply is an answer of the child. One with the id 0 was not asked for: an event, or nothing but a sign of life.
type reply struct {
	ID     uint64            `json:"id"`
	Code   string            `json:"code,omitempty"`
	Text   string            `json:"text,omitempty"`
	Info   *nvml.DriverInfo  `json:"info,omitempty"`
	List   *listing          `json:"list,omitempty"`
	Card   *nvml.Card        `json:"card,omitempty"`
	Sample *nvml.Sample      `json:"sample,omitempty"`
	Event  *nvml.HealthEvent `json:"event,omitempty"`
	// MilliWatt is the limit that now holds.
	MilliWatt int64 `json:"milliwatt,omitempty"`
}

// listing is which cards there are.
type listing struct {
	// UUIDs are those of the cards that told it, in the library's order.
	UUIDs []string `json:"uuids"`
	// Silent is how many more cards there are that have not told who they are.
	Silent int `json:"silent"`
}

// errFrame means that what came is no frame of this protocol. Nothing after it can be trusted.
var errFrame = errors.New("bad frame")

// readFrame reads one frame into v. At the end of the stream it returns io.EOF.
func readFrame(r io.Reader, v any) error { return readSized(r, v, maxFrame) }

// readSized reads a frame that may hold so many bytes.
func readSized(r io.Reader, v any, limit uint32) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size == 0 || size > limit {
		return fmt.Errorf("%w: %d bytes", errFrame, size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: more than one value", errFrame)
	}
	return nil
}

// frame returns v as one frame.
func frame(v any) ([]byte, error) { return sized(v, maxFrame) }

// sized returns v as one frame of at most so many bytes.
func sized(v any, limit int) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(body) > limit {
		return nil, fmt.Errorf("%w: %d bytes", errFrame, len(body))
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body))), body...), nil
}

// check refuses an answer whose content no card can give.
func (r *reply) check() error {
	if r.Card != nil {
		if err := r.Card.Validate(); err != nil {
			return err
		}
		if r.Card.Vendor != nvml.VendorNVIDIA {
			return fmt.Errorf("card %s of the vendor %s", r.Card.UUID, r.Card.Vendor)
		}
	}
	if r.MilliWatt < 0 || r.MilliWatt > maxLimit {
		return fmt.Errorf("a power limit of %d mW", r.MilliWatt)
	}
	if r.Sample != nil {
		if err := r.Sample.Validate(); err != nil {
			return err
		}
	}
	if l := r.List; l != nil {
		if len(l.UUIDs) > maxCards || l.Silent < 0 || l.Silent > maxCards {
			return fmt.Errorf("list of %d cards and %d silent ones", len(l.UUIDs), l.Silent)
		}
		for i, id := range l.UUIDs {
			if id != printable(id, maxUUID) || id == "" || slices.Contains(l.UUIDs[:i], id) {
				return fmt.Errorf("card %d has the UUID %.96q", i, id)
			}
		}
	}
	if e := r.Event; e != nil && (e.Kind != nvml.EventXid || e.Code < 0 || e.NeedsReset.State > nvml.Stale) {
		return fmt.Errorf("event %.96q %d", e.Kind, e.Code)
	}
	return nil
}

// maxUUID is the longest UUID of a card, in bytes: what nvml.Card allows.
const maxUUID = 96

// printable cuts a text to so many bytes and replaces what is not printable ASCII.
func printable(s string, limit int) string {
	b := []byte(s[:min(len(s), limit)])
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}
