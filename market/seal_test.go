package market_test

import (
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func TestASignatureHoldsForOneNetworkKindAndRoleOnly(t *testing.T) {
	terms := markettest.Terms()
	sealed := market.SealTerms(markettest.Network, markettest.Rig(), terms)
	tests := []struct {
		name   string
		change func(*market.Sealed)
	}{
		{"another network", func(s *market.Sealed) { s.Network = "lab-other" }},
		{"another kind", func(s *market.Sealed) { s.Kind = market.KindReceipt }},
		{"another version", func(s *market.Sealed) { s.Version++ }},
		{"another role", func(s *market.Sealed) { s.Sigs[0].Role = market.RoleRenter }},
		{"another key", func(s *market.Sealed) { s.Sigs[0].Key = market.KeyOf(markettest.Renter()) }},
		{"a changed body", func(s *market.Sealed) { s.Body[5] ^= 1 }},
		{"a changed signature", func(s *market.Sealed) { s.Sigs[0].Bytes[9] ^= 1 }},
		{"a short signature", func(s *market.Sealed) { s.Sigs[0].Bytes = s.Sigs[0].Bytes[:10] }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := market.DecodeSealed(sealed.Encode())
			if err != nil {
				t.Fatal(err)
			}
			test.change(&s)
			if _, _, err := market.OpenGrant(markettest.Network, s.Encode()); err == nil {
				t.Error("the record was opened")
			}
		})
	}
	if _, _, err := market.OpenGrant(markettest.Network, sealed.Encode()); err != nil {
		t.Errorf("the record itself is refused: %v", err)
	}
	if _, _, err := market.OpenLease(markettest.Network, sealed.Encode()); market.CodeOf(err) != market.CodeBadSignature {
		t.Errorf("terms that only the rig signed passed for a lease: %v", err)
	}
}

func TestTheOwnerOfAnOfferIsTheRigOrHasSaidSo(t *testing.T) {
	owner := markettest.Private("owner")
	o := markettest.Offer()
	o.Owner = market.KeyOf(owner)
	open := func(o market.Offer) error {
		_, _, err := market.OpenOffer(markettest.Network, market.SealOffer(markettest.Network, markettest.Rig(), o).Encode())
		return err
	}
	if open(o) == nil {
		t.Error("an owner without a delegate was believed")
	}
	d := market.Delegate{Owner: o.Owner, Program: o.Rig, Roles: []string{market.DelegateRig}, Issued: o.Issued - 1, Expires: o.Issued + 1}
	o.Delegate = market.SealDelegate(markettest.Network, owner, d).Encode()
	if err := open(o); err != nil {
		t.Errorf("a delegate was refused: %v", err)
	}
	d.Roles = []string{market.DelegateAgent}
	o.Delegate = market.SealDelegate(markettest.Network, owner, d).Encode()
	if open(o) == nil {
		t.Error("an agent's delegate let a rig offer")
	}
	d.Roles, d.Expires = []string{market.DelegateRig}, o.Issued
	o.Delegate = market.SealDelegate(markettest.Network, owner, d).Encode()
	if open(o) == nil {
		t.Error("an expired delegate was believed")
	}
}

func TestSimulatedCardsAreRefusedOutsideLabs(t *testing.T) {
	o := markettest.Offer()
	if _, _, err := market.OpenOffer(market.NetworkMain, market.SealOffer(market.NetworkMain, markettest.Rig(), o).Encode()); err == nil {
		t.Error("a simulated card was offered on main")
	}
	o.Simulated = false
	if _, _, err := market.OpenOffer(markettest.Network, market.SealOffer(markettest.Network, markettest.Rig(), o).Encode()); err == nil {
		t.Error("a simulated card without its mark was offered")
	}
}

func TestOffersMayGrowNewKeysAndMoneyRecordsMayNot(t *testing.T) {
	type grown struct {
		market.Offer
		New string `cbor:"99,keyasint"`
	}
	var o market.Offer
	body := market.EncodeAny(grown{markettest.Offer(), "later"})
	if err := market.DecodeStrict(body, &o); err == nil {
		t.Error("a strict decoder took an unknown key")
	}
	type grownReceipt struct {
		market.Receipt
		New string `cbor:"99,keyasint"`
	}
	var r market.Receipt
	if err := market.DecodeStrict(market.EncodeAny(grownReceipt{New: "later"}), &r); market.CodeOf(err) != market.CodeBadEncoding {
		t.Errorf("a receipt with an unknown key: %v", err)
	}
}
