package market

import "crypto/ed25519"

// maxDisputeWords bounds what a dispute says in words, in bytes.
const maxDisputeWords = 500

// Dispute is one party's signed word that a lease's bill is wrong, with the total that it holds right. The guarantor's, where the
// lease names a guarantee, is the verdict.
type Dispute struct {
	Lease   LeaseID `cbor:"1,keyasint"`
	By      Role    `cbor:"2,keyasint"` // as whom it is signed: rig, renter or guarantor
	Seq     uint32  `cbor:"3,keyasint"` // of the receipt that it is about; 0 where there is none
	Receipt Hash    `cbor:"4,keyasint"` // of that receipt; zero where there is none
	Code    Code    `cbor:"5,keyasint"`
	Total   Micro   `cbor:"6,keyasint"`           // that the signer holds right
	Words   string  `cbor:"7,keyasint,omitempty"` // for people, at most 500 bytes
	Wall    int64   `cbor:"8,keyasint"`           // the signer's clock; information, no rule reads it
}

// SealDispute signs a dispute in the role that it names.
func SealDispute(network string, key ed25519.PrivateKey, d Dispute) Sealed {
	return seal(network, KindDispute, d.By, key, d)
}

// OpenDispute verifies, decodes and validates a sealed dispute of the terms' rig or renter, or of the guarantor of the
// guarantee that they name: the zero key where nobody is.
func OpenDispute(network string, raw []byte, t Terms, guarantor Key) (Dispute, Sealed, error) {
	var d Dispute
	s, err := DecodeSealed(raw)
	if err != nil {
		return d, s, err
	}
	role := s.Sigs[0].Role
	signer, err := s.open(network, KindDispute, role, &d, decodeStrict)
	if err != nil {
		return d, s, err
	}
	may := map[Role]Key{RoleRig: t.Rig, RoleRenter: t.Renter, RoleGuarantor: guarantor}
	if want := may[role]; len(s.Sigs) != 1 || d.By != role || signer != want || want.IsZero() {
		return d, s, NewError(CodeBadSignature, "kind", string(KindDispute), "role", string(role))
	}
	return d, s, d.validate()
}

func (d Dispute) validate() error {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", string(KindDispute), "why", why) }
	switch {
	case d.Total < 0 || d.Total > maxMoney:
		return bad("its total is out of range")
	case d.Code == "" || len(d.Code) > maxReason || len(d.Words) > maxDisputeWords:
		return bad("its code or its words are out of bounds")
	case (d.Seq == 0) != d.Receipt.IsZero():
		return bad("it names a receipt by half")
	case d.Wall <= 0:
		return bad("its time is out of range")
	}
	return nil
}
