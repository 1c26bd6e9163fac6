package market

// Paper is a sealed record of a lease, other than its terms and receipts, as it is kept: a payment, a notice, a refusal, a
// dispute, an outcome. Kind and Seq name it within its lease; what a kind numbers by is its own affair.
type Paper struct {
	Lease  LeaseID
	Kind   Kind
	Seq    uint32
	Sealed []byte
}
