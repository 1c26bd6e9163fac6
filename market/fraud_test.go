package market_test

import (
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

// paper makes a paper of a sealed record.
func paper(s market.Sealed) market.Paper { return market.Paper{Kind: s.Kind, Sealed: s.Encode()} }

// cloned returns evidence whose lists can be changed.
func cloned(e market.Evidence) market.Evidence {
	e.Receipts, e.Rejects, e.Extensions, e.Papers = slices.Clone(e.Receipts), slices.Clone(e.Rejects), slices.Clone(e.Extensions), slices.Clone(e.Papers)
	return e
}

// other returns another receipt with the number of one in the evidence, signed by the rig and these keys.
func other(t *testing.T, e market.Evidence, i int, signers ...ed25519.PrivateKey) market.Sealed {
	t.Helper()
	r, _, err := market.OpenReceipt(network, e.Receipts[i], markettest.PaidTerms())
	if err != nil {
		t.Fatal(err)
	}
	r.WallMs++
	s := market.SealReceipt(network, markettest.Rig(), r)
	for _, key := range signers {
		s = s.Sign(market.RoleRenter, key)
	}
	return s
}

func refusalOf(t *testing.T, raw []byte, by ed25519.PrivateKey) market.Sealed {
	t.Helper()
	r, s, err := market.OpenReceipt(network, raw, markettest.PaidTerms())
	if err != nil {
		t.Fatal(err)
	}
	return market.SealReject(network, by, market.Reject{Lease: r.Lease, Seq: r.Seq, Receipt: s.Hash(), Code: market.CodeReceiptTime, Total: 1})
}

func extensionOf(add market.Micro) market.Sealed {
	x := markettest.PaidTerms().Extend(markettest.PaidLease(), nil, 0, add, markettest.Now)
	return market.SealExtension(network, markettest.Renter(), x)
}

func TestEveryFraudNamesTheKeyThatSignedTwice(t *testing.T) {
	rig, renter, deputy := markettest.Rig(), markettest.Renter(), markettest.Deputy()
	tests := []struct {
		name   string
		add    func(t *testing.T, e *market.Evidence)
		guilty []ed25519.PrivateKey
		kind   market.Kind
	}{
		{"the rig shows a second receipt", func(t *testing.T, e *market.Evidence) {
			e.Papers = append(e.Papers, paper(other(t, *e, 1)))
		}, []ed25519.PrivateKey{rig}, market.KindReceipt},
		{"the same, in the chain", func(t *testing.T, e *market.Evidence) {
			e.Receipts = append(e.Receipts, other(t, *e, 1).Encode())
		}, []ed25519.PrivateKey{rig}, market.KindReceipt},
		{"the same, in place of the receipt that others follow", func(t *testing.T, e *market.Evidence) {
			e.Papers = append(e.Papers, market.Paper{Kind: market.KindReceipt, Sealed: e.Receipts[1]})
			e.Receipts[1] = other(t, *e, 1, renter).Encode()
		}, []ed25519.PrivateKey{rig, renter}, market.KindReceipt},
		{"the renter signs both", func(t *testing.T, e *market.Evidence) {
			e.Papers = append(e.Papers, paper(other(t, *e, 1, renter)))
		}, []ed25519.PrivateKey{rig, renter}, market.KindReceipt},
		{"the rig shows the agent and its deputy two", func(t *testing.T, e *market.Evidence) {
			e.Papers = append(e.Papers, paper(other(t, *e, 1, deputy)))
		}, []ed25519.PrivateKey{rig}, market.KindReceipt},
		{"the deputy signs both", func(t *testing.T, e *market.Evidence) {
			e.Papers = append(e.Papers, paper(other(t, *e, 0, deputy)))
		}, []ed25519.PrivateKey{rig, deputy}, market.KindReceipt},
		{"the renter signs a receipt and refuses it", func(t *testing.T, e *market.Evidence) {
			e.Rejects = append(e.Rejects, refusalOf(t, e.Receipts[1], renter).Encode())
		}, []ed25519.PrivateKey{renter}, market.KindReject},
		{"the same, as a paper", func(t *testing.T, e *market.Evidence) {
			e.Papers = append(e.Papers, paper(refusalOf(t, e.Receipts[0], deputy)))
		}, []ed25519.PrivateKey{deputy}, market.KindReject},
		{"the rig signs two payments of one number", func(_ *testing.T, e *market.Evidence) {
			e.Papers = append(e.Papers, paper(market.SealPayment(network, rig, markettest.Payment(1, 12_000, 1))))
		}, []ed25519.PrivateKey{rig}, market.KindPayment},
		{"the same, of a payment that others followed", func(_ *testing.T, e *market.Evidence) {
			e.Papers = append(e.Papers, paper(market.SealPayment(network, rig, markettest.Payment(0, 0, 1))))
		}, []ed25519.PrivateKey{rig}, market.KindPayment},
		{"the rig consents to two extensions of one number", func(_ *testing.T, e *market.Evidence) {
			e.Extensions = [][]byte{market.Consent(extensionOf(1), rig).Encode()}
			e.Papers = append(e.Papers, paper(market.Consent(extensionOf(2), rig)))
		}, []ed25519.PrivateKey{rig}, market.KindExtend},
		{"the rig takes its outcome back", func(_ *testing.T, e *market.Evidence) {
			o := markettest.PaidOutcome()
			o.Result = market.ResultCompleted
			e.Papers = append(e.Papers, paper(market.SealOutcome(network, rig, o)))
		}, []ed25519.PrivateKey{rig}, market.KindOutcome},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := cloned(markettest.Paid())
			test.add(t, &e)
			for what, data := range map[string][]byte{"the file": e.Encode(), "the redacted file": e.Redact().Encode()} {
				j := market.Judge(data)
				last := j.Checks[len(j.Checks)-1]
				if j.Verdict != market.VerdictFraud || last.OK || last.Detail == "" {
					t.Fatalf("%s: %s, last check %+v", what, j.Verdict, last)
				}
				for i, key := range test.guilty {
					if i >= len(j.Frauds) || j.Frauds[i].Guilty != market.KeyOf(key) || j.Frauds[i].Kind != test.kind || j.Frauds[i].Proof[0].IsZero() {
						t.Errorf("%s: fraud %d is %+v", what, i, j.Frauds)
					}
				}
				if len(j.Frauds) != len(test.guilty) || j.Guilty != j.Frauds[0].Guilty || j.Proof != j.Frauds[0].Proof {
					t.Errorf("%s: %+v", what, j.Frauds)
				}
			}
		})
	}
}

// What one party alone could have written accuses nobody.
func TestNoFraudIsProvenByWhatOthersSigned(t *testing.T) {
	rig, renter, deputy, stranger := markettest.Rig(), markettest.Renter(), markettest.Deputy(), markettest.Private("stranger")
	tests := []struct {
		name string
		add  func(t *testing.T, e *market.Evidence)
	}{
		{"a receipt that a stranger signed", func(t *testing.T, e *market.Evidence) {
			s := other(t, *e, 1)
			e.Papers = append(e.Papers, paper(market.Sealed{Network: s.Network, Kind: s.Kind, Version: s.Version, Body: s.Body}.Sign(market.RoleRig, stranger)))
		}},
		{"a receipt with the rig's signature of another", func(t *testing.T, e *market.Evidence) {
			s, _ := market.DecodeSealed(e.Receipts[1])
			forged := other(t, *e, 1)
			forged.Sigs = s.Sigs
			e.Papers = append(e.Papers, paper(forged))
		}},
		{"a receipt of another lease", func(t *testing.T, e *market.Evidence) {
			r := markettest.PaidReceipt(market.Head{}, 10_000, market.ReceiptInterval)
			r.Lease[0] ^= 1
			e.Papers = append(e.Papers, paper(market.SealReceipt(network, rig, r)))
		}},
		{"a receipt of another network", func(t *testing.T, e *market.Evidence) {
			r := markettest.PaidReceipt(market.Head{}, 20_000, market.ReceiptInterval)
			e.Papers = append(e.Papers, paper(market.SealReceipt("lab-other", rig, r)))
		}},
		{"a refusal by the deputy of what the renter signed", func(t *testing.T, e *market.Evidence) {
			e.Papers = append(e.Papers, paper(refusalOf(t, e.Receipts[1], deputy)))
		}},
		{"a second proposal of the renter", func(_ *testing.T, e *market.Evidence) {
			e.Extensions = [][]byte{market.Consent(extensionOf(1), rig).Encode()}
			e.Papers = append(e.Papers, paper(extensionOf(2)))
		}},
		{"an extension of another lease", func(_ *testing.T, e *market.Evidence) {
			x := markettest.PaidTerms().Extend(market.LeaseID{9}, nil, 0, 1, markettest.Now)
			e.Extensions = [][]byte{market.Consent(extensionOf(1), rig).Encode(), market.Consent(market.SealExtension(network, renter, x), rig).Encode()}
		}},
		{"the same payment twice", func(_ *testing.T, e *market.Evidence) {
			e.Papers = append(e.Papers, e.Papers[1])
		}},
		{"an outcome that said less", func(_ *testing.T, e *market.Evidence) {
			o := markettest.PaidOutcome()
			o.At, o.DiskAt, o.Result, o.Chain = o.At-5, 0, "", nil
			e.Papers = append(e.Papers, paper(market.SealOutcome(network, rig, o)))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := cloned(markettest.Paid())
			test.add(t, &e)
			if j := market.Judge(e.Encode()); j.Verdict == market.VerdictFraud || len(j.Frauds) > 0 || !j.Guilty.IsZero() {
				t.Errorf("%s: %+v", j.Verdict, j.Frauds)
			}
		})
	}
}

func TestManyForksAreToldOnce(t *testing.T) {
	e := cloned(markettest.Paid())
	for i := range 100 {
		r := markettest.PaidReceipt(market.Head{}, 10_000, market.ReceiptInterval)
		r.Seq, r.WallMs = uint32(1+i%40), int64(i)
		e.Papers = append(e.Papers, paper(market.SealReceipt(network, markettest.Rig(), r)))
	}
	j := market.Judge(e.Encode())
	if j.Verdict != market.VerdictFraud || len(j.Frauds) != 16 || !strings.HasPrefix(j.Checks[len(j.Checks)-1].Name, "receipt ") {
		t.Errorf("%s with %d frauds", j.Verdict, len(j.Frauds))
	}
}
