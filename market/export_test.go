package market

// Exported to the tests of this package only.
var (
	CheckCanonical = checkCanonical
	EncodeAny      = encode
	DecodeStrict   = decodeStrict
	Verifies       = verifies
	SealAny        = seal
)

// ShowField writes the value that a slot of a row has in a field, for tests.
func ShowField(t interface{ Fatal(...any) }, name string, r Row, slot int) string {
	about, err := subjectNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return about.read(&r, &r.Offer.Slots[slot]).show(about.kind)
}

// CompareRows orders two rows by an order, for tests of it.
func CompareRows(t interface{ Fatal(...any) }, by string, a, b Ranked) int {
	o, err := parseOrder(by)
	if err != nil {
		t.Fatal(err)
	}
	k, l := o.entry(&a), o.entry(&b)
	return o.compare(&k, &l)
}
