package market

import (
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// codec is the one place that knows the CBOR library. Records are maps with small integer keys in the deterministic form
// of RFC 8949 section 4.2.1; strict decoders refuse keys that they do not know.
type codec struct {
	enc    cbor.EncMode
	strict cbor.DecMode
	open   cbor.DecMode
}

// records is made once and never written to again.
var records = newCodec()

func newCodec() codec {
	deterministic := cbor.CoreDetEncOptions()
	deterministic.NilContainers = cbor.NilContainerAsEmpty // a list is empty or not: never null
	enc, encErr := deterministic.EncMode()
	options := cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		MaxNestedLevels:  maxDepth,
		MaxArrayElements: maxItems,
		MaxMapPairs:      maxItems,
		UTF8:             cbor.UTF8RejectInvalid,
	}
	open, openErr := options.DecMode()
	options.ExtraReturnErrors = cbor.ExtraDecErrorUnknownField
	strict, strictErr := options.DecMode()
	if err := errors.Join(encErr, openErr, strictErr); err != nil {
		panic(err) // the options above are constants: this cannot happen
	}
	return codec{enc: enc, strict: strict, open: open}
}

// encode writes a record's body. The types of this package always encode.
func encode(v any) []byte {
	data, err := records.enc.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // a type that cannot be encoded is a bug of this package
	}
	return data
}

// decodeStrict reads a money record: canonical bytes, known keys only.
func decodeStrict(data []byte, into any) error { return decode(records.strict, data, into) }

// decodeOpen reads a record that newer programs may extend: canonical bytes, unknown keys passed over.
func decodeOpen(data []byte, into any) error { return decode(records.open, data, into) }

func decode(mode cbor.DecMode, data []byte, into any) error {
	if err := checkCanonical(data); err != nil {
		return err
	}
	if err := mode.Unmarshal(data, into); err != nil {
		return NewError(CodeBadEncoding, "why", err.Error())
	}
	return nil
}

// Fixed-size byte strings are written and read with their exact length: the library would pad or cut.

func marshalFixed(b []byte) ([]byte, error) { return records.enc.Marshal(b) }

func unmarshalFixed(into, data []byte) error {
	var b []byte
	if err := records.strict.Unmarshal(data, &b); err != nil {
		return err
	}
	if len(b) != len(into) {
		return fmt.Errorf("%d bytes where %d are due", len(b), len(into))
	}
	copy(into, b)
	return nil
}

// MarshalCBOR writes the key as a byte string.
func (k Key) MarshalCBOR() ([]byte, error) { return marshalFixed(k[:]) }

// UnmarshalCBOR reads a byte string of exactly the key's size.
func (k *Key) UnmarshalCBOR(data []byte) error { return unmarshalFixed(k[:], data) }

// MarshalCBOR writes the hash as a byte string.
func (h Hash) MarshalCBOR() ([]byte, error) { return marshalFixed(h[:]) }

// UnmarshalCBOR reads a byte string of exactly the hash's size.
func (h *Hash) UnmarshalCBOR(data []byte) error { return unmarshalFixed(h[:], data) }

// MarshalCBOR writes the id as a byte string.
func (l LeaseID) MarshalCBOR() ([]byte, error) { return marshalFixed(l[:]) }

// UnmarshalCBOR reads a byte string of exactly the id's size.
func (l *LeaseID) UnmarshalCBOR(data []byte) error { return unmarshalFixed(l[:], data) }

// MarshalCBOR writes the nonce as a byte string.
func (n Nonce) MarshalCBOR() ([]byte, error) { return marshalFixed(n[:]) }

// UnmarshalCBOR reads a byte string of exactly the nonce's size.
func (n *Nonce) UnmarshalCBOR(data []byte) error { return unmarshalFixed(n[:], data) }
