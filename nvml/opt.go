package nvml

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// State says whether a reading can be used and, if not, why.
type State uint8

// The states of a reading. The zero State is NotRead, so that a forgotten field never passes for a measured zero.
const (
	// NotRead means that nobody asked for the value.
	NotRead State = iota
	// OK means that the value was read and is current.
	OK
	// NotSupported means that this card or platform does not tell it.
	NotSupported
	// NoSymbol means that the installed driver library is too old or too new to have the call.
	NoSymbol
	// NoPermission means that the process may not ask.
	NoPermission
	// Failed means that the card was asked and answered with an error.
	Failed
	// Stale means that the last value is known but too old to act on.
	Stale
)

// stateNames holds the wire name of every state, in the order of the constants.
func stateNames() [7]string {
	return [...]string{"not_read", "ok", "not_supported", "no_symbol", "no_permission", "failed", "stale"}
}

// String returns the state's name on the wire, such as "not_supported".
func (s State) String() string {
	names := stateNames()
	if int(s) >= len(names) {
		return fmt.Sprintf("state(%d)", uint8(s))
	}
	return names[s]
}

// MarshalText writes the state's name; a number that is no state is an error.
func (s State) MarshalText() ([]byte, error) {
	names := stateNames()
	if int(s) >= len(names) {
		return nil, fmt.Errorf("unknown state %d", uint8(s))
	}
	return []byte(names[s]), nil
}

// UnmarshalText reads a state's name; any other text is an error.
func (s *State) UnmarshalText(text []byte) error {
	for i, name := range stateNames() {
		if string(text) == name {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("unknown state %.32q", text)
}

// Opt is a reading that may be missing. The zero Opt is "not read". Use Get; look at Value directly only to show the
// last value of a Stale reading.
//
// In JSON a usable value stands for itself (42), a missing one is {"state":"not_supported"} and a stale one
// {"state":"stale","value":42}. A field of type Opt wants the tag option omitzero, which leaves out what was not read.
// T must be a number, a bool or a type that is a string in JSON.
type Opt[T any] struct {
	// Value is the reading; it is meaningful only when State is OK or Stale.
	Value T
	// State says whether Value can be used.
	State State
}

// Some returns a usable value.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, State: OK} }

// None returns a missing value with its reason. The reason OK makes no sense without a value and becomes Failed.
func None[T any](reason State) Opt[T] {
	if reason == OK {
		reason = Failed
	}
	return Opt[T]{State: reason}
}

// Get returns the value and true when it is usable, otherwise the zero T and false.
func (o Opt[T]) Get() (T, bool) {
	if o.State != OK {
		var zero T
		return zero, false
	}
	return o.Value, true
}

// Aged returns o with a usable value marked as stale; anything else is returned as it is.
func (o Opt[T]) Aged() Opt[T] {
	if o.State == OK {
		o.State = Stale
	}
	return o
}

// missing is how a value that cannot be used looks in JSON.
type missing[T any] struct {
	State State `json:"state"`
	Value *T    `json:"value,omitempty"`
}

// MarshalJSON writes the form that the type's comment describes.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	switch o.State {
	case OK:
		return json.Marshal(o.Value)
	case Stale:
		return json.Marshal(missing[T]{State: o.State, Value: &o.Value})
	default:
		return json.Marshal(missing[T]{State: o.State})
	}
}

// UnmarshalJSON reads what MarshalJSON writes and nothing else; null is "not read".
func (o *Opt[T]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*o = Opt[T]{}
		return nil
	}
	if len(data) == 0 || data[0] != '{' {
		var v T
		if err := json.Unmarshal(data, &v); err != nil {
			return err
		}
		*o = Some(v)
		return nil
	}
	var m missing[T]
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return err
	}
	if m.State == OK || (m.State == Stale) != (m.Value != nil) {
		return fmt.Errorf("reading of state %s: only a stale one carries its value here", m.State)
	}
	*o = Opt[T]{State: m.State}
	if m.Value != nil {
		o.Value = *m.Value
	}
	return nil
}
