package market

// EncodeState writes a state for storage: a struct with integer keys, in the same deterministic form as records. States
// are never signed and never sent; only this program's own versions read them.
func EncodeState(v any) []byte { return encode(v) }

// DecodeState reads what EncodeState wrote. Keys of newer versions are refused: a state that is half understood is not
// understood. The error has code CodeBadEncoding.
func DecodeState(data []byte, into any) error { return decodeStrict(data, into) }
