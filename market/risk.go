package market

// Risk is what one side of a lease can lose by the other's fault at a moment, by its three limits. Times are milliseconds.
type Risk struct {
	UnsignedMs   int64 // running time that nobody countersigned, while the renter answers
	UnattendedMs int64 // running time that nobody countersigned, while the renter's agent is away
	Unpaid       Micro // use that is not paid
	Lose         Micro // the most that this side can lose now
}

// RiskOfRig returns what the rig can lose now: what was used and is not paid.
func (l Lease) RiskOfRig() Risk {
	unpaid := max(0, l.Total()-l.Paid)
	return Risk{
		UnsignedMs:   max(0, l.Meter.BilledMs-l.Head.BilledMs-l.AwayMs),
		UnattendedMs: l.AwayMs,
		Unpaid:       unpaid, Lose: unpaid,
	}
}

// RiskOfRenter returns what the renter can lose now: what it has sent ahead and not used by its own count. used is the total that
// it signed, or that its own measure comes to, whichever is less; total is what the rig says.
func RiskOfRenter(sent, used, total Micro) Risk {
	return Risk{Unpaid: max(0, total-sent), Lose: max(0, sent-used)}
}
