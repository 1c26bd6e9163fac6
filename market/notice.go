package market

import "crypto/ed25519"

// Notice is a rig's signed word that it will end a job, and when. Each attempt of a lease gets at most one; there is none where
// the job ends by itself or by the renter's order.
type Notice struct {
	Lease  LeaseID `cbor:"1,keyasint"`
	Seq    uint32  `cbor:"2,keyasint"` // of the attempt of the lease that it ends, from 1
	Reason Reason  `cbor:"3,keyasint"`
	At     int64   `cbor:"4,keyasint"` // wall time of SIGTERM; the rig's clock may have been set since the grant
	KillAt int64   `cbor:"5,keyasint"` // wall time of SIGKILL
}

// maxReason bounds the name of a reason, in bytes: newer programs may know more of them.
const maxReason = 32

// SealNotice signs a notice as its rig.
func SealNotice(network string, rig ed25519.PrivateKey, n Notice) Sealed {
	return seal(network, KindNotice, RoleRig, rig, n)
}

// OpenNotice verifies, decodes and validates a sealed notice of the terms' rig.
func OpenNotice(network string, raw []byte, t Terms) (Notice, Sealed, error) {
	var n Notice
	s, err := DecodeSealed(raw)
	if err != nil {
		return n, s, err
	}
	signer, err := s.open(network, KindNotice, RoleRig, &n, decodeStrict)
	switch {
	case err != nil:
		return n, s, err
	case signer != t.Rig:
		return n, s, NewError(CodeBadSignature, "kind", string(KindNotice), "role", string(RoleRig))
	}
	return n, s, n.validate()
}

func (n Notice) validate() error {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", string(KindNotice), "why", why) }
	switch {
	case n.Seq == 0 || n.Reason == "" || len(n.Reason) > maxReason:
		return bad("its number or its reason is out of bounds")
	case n.At <= 0 || n.KillAt < n.At || n.KillAt-n.At > maxLeaseTime.Milliseconds():
		return bad("a time is out of range")
	}
	return nil
}
