package tunnel

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// Kinds of channels that a door knows.
const (
	KindSSH        = "ssh"        // an SSH server inside the job
	KindDial       = "dial"       // a TCP connection to a port inside the job, DialArgs
	KindFiles      = "files"      // files of the job, FilesArgs
	KindCheckpoint = "checkpoint" // the job's saved state, CheckpointArgs
	KindPing       = "ping"       // nonces of PingSize bytes, each of which comes back before the next is read
)

// Codes of an Error.
const (
	CodeUnknownKind = "unknown_kind" // the other side has no handler for the request's kind
	CodeTooMany     = "too_many"     // it serves as many channels as it may
	CodeGone        = "gone"         // it no longer has the channel
	CodeRefused     = "refused"      // it will not do it
	CodeBadRequest  = "bad_request"  // it could not read the request, or a rule of the protocol was broken
	CodeNoSuchPort  = "no_such_port" // nothing listens on the port
	CodeFailed      = "failed"       // anything else
)

// Request is what the dialler wants of the other side.
type Request struct {
	Kind string          `json:"kind"`
	Args json.RawMessage `json:"args,omitempty"` // at most MaxArgs bytes
}

// Error is what the other side said. Its text comes from afar: strip it before a person sees it.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"` // at most 1 KiB
}

// Error returns the message, or the code where there is none.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Message
}

// asError makes an answer for the other side from any error.
func asError(err error) *Error {
	told := &Error{Code: CodeFailed, Message: err.Error()}
	var own *Error
	if errors.As(err, &own) {
		told = &Error{Code: own.Code, Message: own.Message}
	}
	told.Code, told.Message = cut(told.Code, 64), cut(told.Message, maxMessage)
	return told
}

func cut(s string, most int) string {
	if len(s) > most {
		return s[:most]
	}
	return s
}

// Bounds of the protocol.
const (
	// MaxArgs is the most bytes that the arguments of a Request may have.
	MaxArgs = 16 << 10
	// MaxWindow is the widest window: what one side may send before the other has read it.
	MaxWindow = 8 << 20

	minWindow     = 16 << 10
	defaultWindow = 1 << 20
	maxHello      = 32 << 10
	maxFrame      = 128 << 10
	maxError      = 8 << 10 // of an Error as JSON, where a byte may take six
	maxMessage    = 1 << 10
)

// A path begins with one greeting each way: magic, version, length (4 bytes), JSON.
const (
	magic       = "hgt"
	version     = 1
	greetHeader = len(magic) + 1 + 4
)

// hello is the dialler's greeting.
type hello struct {
	ID       string  `json:"id"`               // 16 random bytes, hexadecimal
	Resume   bool    `json:"resume,omitempty"` // the channel exists
	Try      uint64  `json:"try"`              // counts the dialler's attempts; only a newer one takes a channel over
	Request  Request `json:"request"`
	Window   uint64  `json:"window"`   // asked for both ways
	Received uint64  `json:"received"` // where the other side goes on
	Limit    uint64  `json:"limit"`    // where it must wait
}

// answer is the other side's greeting: where to go on, or why not.
type answer struct {
	Received uint64 `json:"received"`
	Limit    uint64 `json:"limit"`
	Error    *Error `json:"error,omitempty"`
}

func (h hello) check() error {
	if id, err := hex.DecodeString(h.ID); err != nil || len(id) != 16 {
		return errors.New("the id of a channel has 16 bytes in hexadecimal")
	}
	if h.Try == 0 {
		return errors.New("attempts are counted from one")
	}
	if h.Resume {
		return nil
	}
	if len(h.Request.Kind) > 64 || len(h.Request.Args) > MaxArgs {
		return errors.New("the request is too long")
	}
	if h.Received != 0 {
		return errors.New("a new channel has received nothing")
	}
	return nil
}

// appendGreeting appends v as a greeting to b.
func appendGreeting(b []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode greeting: %w", err)
	}
	if len(text) > maxHello {
		return nil, fmt.Errorf("a greeting of %d bytes is longer than %d", len(text), maxHello)
	}
	b = append(b, magic...)
	b = append(b, version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	return append(b, text...), nil
}

// readGreeting reads a greeting into v; it takes no byte that follows.
func readGreeting(r io.Reader, v any) error {
	var head [greetHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("read greeting: %w", err)
	}
	if string(head[:len(magic)]) != magic {
		return errors.New("the other side does not speak the tunnel protocol")
	}
	if head[len(magic)] != version {
		return fmt.Errorf("the other side speaks version %d of the tunnel protocol, not %d", head[len(magic)], version)
	}
	n := binary.BigEndian.Uint32(head[len(magic)+1:])
	if n > maxHello {
		return fmt.Errorf("a greeting of %d bytes is longer than %d", n, maxHello)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return fmt.Errorf("read greeting: %w", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("read greeting: %w", err)
	}
	return nil
}

// After the greetings frames go both ways: kind (1 byte), length (3 bytes), payload.
const (
	frameData  = 1 // bytes; their offset follows from the ones before
	frameAck   = 2 // received and limit (8 bytes each); at least one every keepalive
	frameFin   = 3 // no data follows; an Error as payload says why. Counts as one byte
	frameStop  = 4 // after fin: nothing more is read, the channel is closed. Counts as one byte
	frameReset = 5 // the channel is over; an Error as payload
)

const (
	frameHeader = 4
	ackLength   = 16
)

func appendHeader(b []byte, kind byte, n int) []byte {
	return append(b, kind, byte(n>>16), byte(n>>8), byte(n))
}

func appendAck(b []byte, received, limit uint64) []byte {
	b = appendHeader(b, frameAck, ackLength)
	b = binary.BigEndian.AppendUint64(b, received)
	return binary.BigEndian.AppendUint64(b, limit)
}

// appendError appends a fin or reset with its reason; nil is no reason.
func appendError(b []byte, kind byte, why *Error) []byte {
	if why == nil {
		return appendHeader(b, kind, 0)
	}
	text, err := json.Marshal(why)
	if err != nil || len(text) > maxError {
		text = []byte(`{"code":"failed"}`)
	}
	return append(appendHeader(b, kind, len(text)), text...)
}

// readHeader reads a frame's header and checks its length.
func readHeader(r *bufio.Reader) (kind byte, n int, err error) {
	head, err := r.Peek(frameHeader)
	if err != nil {
		return 0, 0, err
	}
	kind, n = head[0], int(head[1])<<16|int(head[2])<<8|int(head[3])
	_, _ = r.Discard(frameHeader)
	ok := false
	switch kind {
	case frameData:
		ok = n > 0 && n <= maxFrame
	case frameAck:
		ok = n == ackLength
	case frameFin, frameReset:
		ok = n <= maxError
	case frameStop:
		ok = n == 0
	}
	if !ok {
		return 0, 0, violation(fmt.Sprintf("a frame of kind %d and %d bytes", kind, n))
	}
	return kind, n, nil
}

// readAck reads an ack's payload.
func readAck(r *bufio.Reader) (received, limit uint64, err error) {
	body, err := r.Peek(ackLength)
	if err != nil {
		return 0, 0, err
	}
	received, limit = binary.BigEndian.Uint64(body), binary.BigEndian.Uint64(body[8:])
	_, _ = r.Discard(ackLength)
	return received, limit, nil
}

// readError reads the payload of a fin or reset; nil where there is none.
func readError(r *bufio.Reader, n int) (*Error, error) {
	if n == 0 {
		return nil, nil
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	why := new(Error)
	if err := json.Unmarshal(text, why); err != nil {
		return nil, violation("a reason that is no JSON")
	}
	return asError(why), nil
}

// violation is the error for a peer that broke the protocol.
func violation(what string) *Error {
	return &Error{Code: CodeBadRequest, Message: "the tunnel protocol was broken: " + what}
}

// window returns the window that both sides use where the dialler asked for n bytes: a power of two within the bounds.
func window(n uint64) uint64 {
	n = min(max(n, minWindow), MaxWindow)
	return 1 << bits.Len64(n-1)
}
