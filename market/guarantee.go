package market

import "crypto/ed25519"

// Guarantee is a third key's signed promise to the owner of a rig: what a renter's owner does not pay, up to an amount, the
// guarantor does. Its hash names it. Several leases may name one; the rig reserves a part of the amount for each of them, and
// never more than the whole. In a dispute of such a lease the guarantor's word decides. Times are Unix milliseconds.
type Guarantee struct {
	Guarantor Key    `cbor:"1,keyasint"`
	Rig       Key    `cbor:"2,keyasint"` // the owner of the rigs that are promised
	Renter    Key    `cbor:"3,keyasint"` // the owner of the renters that it stands for
	Currency  string `cbor:"4,keyasint"`
	Amount    Micro  `cbor:"5,keyasint"` // over all leases together
	Issued    int64  `cbor:"6,keyasint"`
	Until     int64  `cbor:"7,keyasint"` // leases that are granted before; it stands for them afterwards too
	Nonce     Nonce  `cbor:"8,keyasint"`
}

// SealGuarantee signs a guarantee as its guarantor.
func SealGuarantee(network string, guarantor ed25519.PrivateKey, g Guarantee) Sealed {
	return seal(network, KindGuarantee, RoleGuarantor, guarantor, g)
}

// OpenGuarantee verifies, decodes and validates a sealed guarantee. Whether the guarantor can be trusted is not its affair, nor
// whether it holds for a lease: see Covers.
func OpenGuarantee(network string, raw []byte) (Guarantee, Sealed, error) {
	var g Guarantee
	s, err := DecodeSealed(raw)
	if err != nil {
		return g, s, err
	}
	signer, err := s.open(network, KindGuarantee, RoleGuarantor, &g, decodeStrict)
	switch {
	case err != nil:
		return g, s, err
	case signer != g.Guarantor:
		return g, s, NewError(CodeBadSignature, "kind", string(KindGuarantee), "role", string(RoleGuarantor))
	}
	return g, s, g.validate()
}

func (g Guarantee) validate() error {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", string(KindGuarantee), "why", why) }
	switch {
	case g.Amount <= 0 || g.Amount > maxMoney:
		return bad("its amount is out of range")
	case g.Issued <= 0 || g.Until <= g.Issued || g.Until-g.Issued > 10*maxLeaseTime.Milliseconds():
		return bad("it is valid for no time, or for too long")
	case g.Guarantor == g.Renter || g.Guarantor == g.Rig || g.Renter == g.Rig:
		return bad("guarantor, renter and rig are not three")
	case (Prices{Currency: g.Currency}).Validate() != nil:
		return bad("its currency is not a name")
	}
	return nil
}

// Covers reports whether the guarantee stands for what a renter's owner may owe the owner of a rig, in a currency, by a lease
// that is granted at a wall time. The error has code CodeGuarantee and says why not.
func (g Guarantee) Covers(rigOwner, renterOwner Key, currency string, at int64) error {
	bad := func(why string) error { return NewError(CodeGuarantee, "why", why) }
	switch {
	case g.Rig != rigOwner:
		return bad("it promises another rig's owner")
	case g.Renter != renterOwner:
		return bad("it stands for another renter")
	case g.Currency != currency:
		return bad("it is in another currency")
	case at < g.Issued-MaxClockSkew.Milliseconds() || at >= g.Until:
		return bad("it is not valid now")
	}
	return nil
}
