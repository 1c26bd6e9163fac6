package market

// Exported to the tests of this package only.
var (
	CheckCanonical = checkCanonical
	EncodeAny      = encode
	DecodeStrict   = decodeStrict
	Verifies       = verifies
)
