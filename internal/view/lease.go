package view

import "haggle/market"

// Lease is one lease as either side shows it.
type Lease struct {
	ID        string   `json:"id" doc:"empty while the bid waits for its answer"`
	Bid       string   `json:"bid"`
	Rig       string   `json:"rig"`
	RigKey    string   `json:"rig_key"`
	Renter    string   `json:"renter_key"`
	Model     string   `json:"gpu_name"`
	Slots     int      `json:"slots"`
	Image     string   `json:"image"`
	Args      []string `json:"args"`
	State     string   `json:"state" doc:"bidding, refused, granted, preparing, starting, running, stopping, paused, ended"`
	Reason    string   `json:"reason,omitempty"`
	Exit      *int64   `json:"exit,omitempty" doc:"the job's exit code"`
	Debt      string   `json:"debt" doc:"open, final or disputed"`
	Price     Money    `json:"price" doc:"per slot-hour"`
	Budget    Money    `json:"budget"`
	Spent     Money    `json:"spent" doc:"so far, as the rig says; what both signed is in signed"`
	Signed    Money    `json:"signed" doc:"what both sides signed"`
	BilledMs  int64    `json:"billed_ms"`
	Duration  int64    `json:"duration_ms" doc:"running time, at most"`
	Receipts  uint32   `json:"receipts" doc:"number of the newest receipt that both signed"`
	Created   int64    `json:"created_ms" doc:"Unix milliseconds"`
	Since     int64    `json:"since_ms" doc:"Unix milliseconds; when it came into its state"`
	Connected bool     `json:"connected" doc:"both programs talk with each other now"`
	Simulated bool     `json:"simulated"`
	// Cards is what the leased cards do now, as the rig says; empty while the job does not run.
	Cards     []market.CardUse `json:"cards,omitempty"`
	Isolation string           `json:"isolation,omitempty" doc:"what keeps the job apart, as the offer said: runc, or none for a plain process"`
	Error     *Problem         `json:"error,omitempty" doc:"why there is no lease, or why its job could not run"`
	EndsBy    int64            `json:"ends_by_ms,omitempty" doc:"Unix milliseconds; while it stops: when the job is killed"`
	DiskMB    int64            `json:"disk_mb,omitempty" doc:"of the job's disk, as granted"`
	DiskUsed  int64            `json:"disk_used_bytes,omitempty" doc:"on the job's disk now, as the rig says"`
	DiskFull  bool             `json:"disk_full,omitempty" doc:"the job's disk has been full"`
	Egress    bool             `json:"egress,omitempty" doc:"the job reaches the internet"`
	In        int64            `json:"in_bytes,omitempty" doc:"received by the job, as billed so far"`
	Out       int64            `json:"out_bytes,omitempty" doc:"sent by the job, as billed so far"`
	Outcome   *Outcome         `json:"outcome,omitempty" doc:"what became of what the job left behind, signed by the rig"`

	Name        string           `json:"name,omitempty" doc:"given by its renter; every place that takes an id takes it"`
	Labels      []string         `json:"labels,omitempty"`
	Ports       []Port           `json:"ports,omitempty" doc:"that the job listens on, as its renter said"`
	Attempt     int              `json:"attempt,omitempty" doc:"how often its job was started again from a kept disk"`
	KeptMs      int64            `json:"kept_ms,omitempty" doc:"how long its disk was kept while it was paused"`
	Uploading   *Progress        `json:"uploading,omitempty" doc:"what is being sent before the start"`
	Collects    []Collected      `json:"collects,omitempty" doc:"what comes home when the job has ended"`
	Checkpoints []CheckpointInfo `json:"checkpoints,omitempty" doc:"oldest first"`
	Resumed     string           `json:"resumed,omitempty" doc:"id of the lease from whose checkpoint its job began"`

	Risk     *Risk            `json:"risk,omitempty" doc:"what this side can lose now, by the three limits"`
	Pay      *Pay             `json:"pay,omitempty"`
	Alerts   []Alert          `json:"alerts,omitempty"`
	Idle     *market.IdleStop `json:"stop_idle,omitempty"`
	Place    *Residency       `json:"residency,omitempty" doc:"where the job may run, as both signed; absent for anywhere"`
	Deputies []string         `json:"deputies,omitempty" doc:"keys that may sign, pay and collect for the renter"`
	Serves   string           `json:"serves,omitempty" doc:"key of the agent for which this one is the lease's deputy"`
	SignedBy string           `json:"signed_by,omitempty" doc:"deputy where the newest receipt was signed by one"`
	Unbilled []Unbilled       `json:"unbilled,omitempty" doc:"of the newest receipt: time that is not billed, by reason"`
	Seen     string           `json:"seen,omitempty" doc:"what this side measured itself of the running time: the most that it believes, or why it does not know"`
}

// Outcome is a rig's signed word on what became of what a job left behind.
type Outcome struct {
	At     int64             `json:"at_ms" doc:"Unix milliseconds"`
	DiskAt int64             `json:"disk_destroyed_ms,omitempty" doc:"Unix milliseconds; absent while the disk is kept"`
	Cards  []market.CardWipe `json:"cards" doc:"memory that was overwritten"`
}

// OutcomeOf makes the view of an outcome.
func OutcomeOf(o market.Outcome) *Outcome {
	v := &Outcome{At: o.At, DiskAt: o.DiskAt, Cards: []market.CardWipe{}}
	for _, c := range o.Cards {
		c.Why = market.Printable(c.Why)
		v.Cards = append(v.Cards, c)
	}
	return v
}

// Problem is a market error with its sentences.
type Problem struct {
	Code    string       `json:"code"`
	Message string       `json:"message"`
	Hint    string       `json:"hint,omitempty"`
	Args    []market.Arg `json:"args,omitempty"`
}

// ProblemOf puts an error into words. An error that is not the market's becomes "internal".
func ProblemOf(err error) Problem {
	e, words := market.Public(err), market.Explain(err)
	return Problem{Code: string(e.Code), Message: words.Message, Hint: words.Hint, Args: e.Args}
}

// Err returns the market error that the problem was made of.
func (p Problem) Err() error { return &market.Error{Code: market.Code(p.Code), Args: p.Args} }

// Receipt is one receipt.
type Receipt struct {
	Lease      string           `json:"lease"`
	Seq        uint32           `json:"seq"`
	Kind       string           `json:"kind"`
	BilledMs   int64            `json:"billed_ms"`
	UnbilledMs int64            `json:"unbilled_ms"`
	Usage      market.Usage     `json:"usage"`
	Bill       market.Bill      `json:"bill"`
	Total      Money            `json:"total"`
	Slots      []market.SlotUse `json:"slots,omitempty"`
	Exit       *market.Exit     `json:"exit,omitempty"`
	WallMs     int64            `json:"wall_ms"`
	Paid       Money            `json:"paid" doc:"in payments that the rig had signed then, as it says"`
	Unbilled   []Unbilled       `json:"unbilled,omitempty" doc:"time that is not billed, by reason"`
	Hash       string           `json:"hash"`
	SignedBy   []string         `json:"signed_by" doc:"rig, renter or both"`
}

// ReceiptOf makes the view of a receipt under its terms.
func ReceiptOf(r market.Receipt, s market.Sealed, t market.Terms) Receipt {
	v := Receipt{
		Lease: r.Lease.String(), Seq: r.Seq, Kind: string(r.Kind), BilledMs: r.BilledMs, UnbilledMs: r.UnbilledMs,
		Usage: r.Usage, Bill: r.Bill, Total: MoneyOf(r.Bill.Total, t.Prices.Currency), Slots: r.Slots, Exit: r.Exit,
		WallMs: r.WallMs, Paid: MoneyOf(r.Paid, t.Prices.Currency), Unbilled: r.Gaps, Hash: s.Hash().String(),
	}
	for _, role := range []market.Role{market.RoleRig, market.RoleRenter} {
		if s.SignedBy(role) {
			v.SignedBy = append(v.SignedBy, string(role))
		}
	}
	return v
}
