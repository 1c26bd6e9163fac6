package view

import (
	"strings"

	"haggle/market"
)

// Codes of complaints and decisions that name none.
const (
	codeBill    = "bill"
	codeDecided = "decided"
)

// DisputeRequest says that a lease's bill is wrong, and what is right.
type DisputeRequest struct {
	TotalMicro *int64 `json:"total_micro,omitempty" minimum:"0" doc:"what the lease should have cost, in millionths; absent: what both signed or, of a rig, what it counted"`
	Code       string `json:"code,omitempty" maxLength:"32" doc:"what is wrong, as a word for programs, such as receipt_time; empty: bill, or decided"`
	Words      string `json:"words,omitempty" maxLength:"500" doc:"what is wrong, for people"`
}

// DecideRequest asks a guarantor's program to decide what a lease costs.
type DecideRequest struct {
	Evidence []byte `json:"evidence" doc:"of the lease; it may be redacted"`
	DisputeRequest
}

// Decision is a guarantor's signed decision.
type Decision struct {
	Sealed []byte `json:"decision" maxLength:"16384" doc:"the bytes of a dispute/1 that the guarantor signed"`
}

// Dispute is one signed complaint about a lease's bill, or the guarantor's decision.
type Dispute struct {
	By      string `json:"by" doc:"rig, renter or guarantor, whose word decides"`
	Receipt uint32 `json:"receipt,omitempty" doc:"number of the receipt that it is about"`
	Code    string `json:"code"`
	Total   Money  `json:"total" doc:"that the signer holds right"`
	Words   string `json:"words,omitempty"`
	At      int64  `json:"at_ms" doc:"Unix milliseconds, by the signer's clock"`
}

// Disputes is all that was said of a lease's bill.
type Disputes struct {
	Lease   string    `json:"lease"`
	List    []Dispute `json:"disputes" doc:"in the order in which they came"`
	Decided *Money    `json:"decided,omitempty" doc:"what the guarantor's newest word says that the lease costs"`
	Told    bool      `json:"told" doc:"the other side has it all, or is connected and gets it now; else it gets it when they are connected next"`
}

// Signs returns the dispute that a request comes to. The error has code CodeBadRequest where the request breaks a rule.
func (r DisputeRequest) Signs(by market.Role, lease market.LeaseID, head market.Head, counted, most market.Micro, wall int64) (market.Dispute, error) {
	bad := func(why string) (market.Dispute, error) {
		return market.Dispute{}, market.NewError(market.CodeBadRequest, "why", why)
	}
	d := market.Dispute{
		Lease: lease, By: by, Seq: head.Seq, Receipt: head.Hash, Code: market.Code(r.Code), Total: counted, Words: r.Words, Wall: wall,
	}
	if r.TotalMicro != nil {
		d.Total = market.Micro(*r.TotalMicro)
	}
	if d.Code == "" {
		d.Code = codeBill
		if by == market.RoleGuarantor {
			d.Code = codeDecided
		}
	}
	switch {
	case d.Total < 0 || d.Total > most:
		return bad("a lease costs nothing at the least, and its budget of " + most.String() + " at most")
	case len(d.Code) > 32 || strings.Trim(string(d.Code), "abcdefghijklmnopqrstuvwxyz0123456789_") != "":
		return bad("a code is a word of at most 32 small letters, digits and _")
	case len(d.Words) > 500 || market.Printable(d.Words) != d.Words:
		return bad("what is said for people is one line of at most 500 bytes")
	}
	return d, nil
}

// DisputesOf shows what was said of the bill of a lease that can cost most.
func DisputesOf(lease market.LeaseID, said []market.Dispute, most market.Micro, currency string, told bool) Disputes {
	v := Disputes{Lease: lease.String(), List: []Dispute{}, Told: told}
	var newest int64
	for _, d := range said {
		one := Dispute{
			By: string(d.By), Receipt: d.Seq, Code: market.Printable(string(d.Code)), Total: MoneyOf(d.Total, currency),
			Words: market.Printable(d.Words), At: d.Wall,
		}
		v.List = append(v.List, one)
		if d.By == market.RoleGuarantor && d.Wall > newest {
			decided := MoneyOf(min(d.Total, most), currency)
			v.Decided, newest = &decided, d.Wall
		}
	}
	return v
}
