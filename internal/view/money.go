package view

import "haggle/market"

// MoneyLimit is a limit in money and how much of it is used.
type MoneyLimit struct {
	Now       Money `json:"now"`
	Most      Money `json:"most"`
	Unlimited bool  `json:"unlimited,omitempty"`
}

// TimeLimit is a limit in time and how much of it is used. Milliseconds.
type TimeLimit struct {
	NowMs     int64 `json:"now_ms"`
	MostMs    int64 `json:"most_ms"`
	Unlimited bool  `json:"unlimited,omitempty"`
}

// Risk is what one side of a lease can lose by the other's fault, by its three limits.
type Risk struct {
	Unsigned   TimeLimit  `json:"unsigned" doc:"running time that nobody countersigned, while the renter answers"`
	Unattended TimeLimit  `json:"unattended" doc:"running time while the renter's agent is away"`
	Credit     MoneyLimit `json:"credit" doc:"use that is not paid"`
	Lose       Money      `json:"lose" doc:"the most that this side can lose now"`
}

// Pay is how a lease is paid.
type Pay struct {
	Method   string    `json:"method,omitempty" doc:"empty where the lease is owed and settled later"`
	Paid     Money     `json:"paid" doc:"what the rig has signed payments for"`
	Sent     Money     `json:"sent" doc:"what this side's payment program has sent"`
	Balance  Money     `json:"balance" doc:"paid and not used"`
	Asked    *PayAsked `json:"asked,omitempty" doc:"a slice that the rig waits for"`
	DryMs    int64     `json:"dry_ms,omitempty" doc:"how long the job has run since what was paid is used up"`
	Payments int       `json:"payments" doc:"that the rig has signed"`
}

// States of a PayAsked.
const (
	SliceWaiting = "waiting"
	SliceFailed  = "failed"
	SliceHeld    = "held"
	SliceSent    = "sent"
)

// PayAsked is a slice that is asked for and not paid.
type PayAsked struct {
	Slice    uint32 `json:"slice"`
	Amount   Money  `json:"amount"`
	ForMs    int64  `json:"for_ms" doc:"running time that it is for"`
	AskedAt  int64  `json:"asked_ms" doc:"Unix milliseconds"`
	State    string `json:"state" doc:"wished (the user wants to pay it), asked, pending, waiting (a person must act), failed, held (a budget keeps it back), sent"`
	Text     string `json:"text,omitempty" doc:"what a person must do"`
	QR       string `json:"qr,omitempty" doc:"what a QR code for it encodes"`
	Why      string `json:"why,omitempty" doc:"why it failed or is held"`
	Settles  string `json:"settles,omitempty" doc:"instant or hand"`
	Deadline int64  `json:"deadline_ms,omitempty" doc:"Unix milliseconds; when the lease ends without it"`
}

// Alert tells a person that a part of a budget is used.
type Alert struct {
	Scope   string `json:"scope" doc:"lease, day or month"`
	Lease   string `json:"lease,omitempty"`
	Percent int    `json:"percent" doc:"50, 80 or 100"`
	At      int64  `json:"at_ms" doc:"Unix milliseconds"`
	Text    string `json:"text"`
}

// Ledger is what this owner and others owe each other.
type Ledger struct {
	Side    string        `json:"side" doc:"renter or rig"`
	Entries []LedgerEntry `json:"entries"`
}

// LedgerEntry is the account with one owner in one currency. Amounts are never negative: Owed and Balance exclude each other.
type LedgerEntry struct {
	Owner      string        `json:"owner_key"`
	Name       string        `json:"name,omitempty"`
	Currency   string        `json:"currency"`
	Used       Money         `json:"used" doc:"so far, as the rig says"`
	Signed     Money         `json:"signed" doc:"of that, in receipts that both signed"`
	Paid       Money         `json:"paid" doc:"in payments that the payee signed"`
	Owed       Money         `json:"owed" doc:"used and not paid"`
	Balance    Money         `json:"balance" doc:"paid, not used, and of no open lease"`
	Unspent    Money         `json:"unspent" doc:"paid for leases that are open, and not used yet"`
	Disputed   Money         `json:"disputed" doc:"in leases that are disputed"`
	Credit     MoneyLimit    `json:"credit"`
	Guaranteed Money         `json:"guaranteed" doc:"reserved from guarantees for these leases"`
	OldestMs   int64         `json:"oldest_ms,omitempty" doc:"Unix milliseconds; the end of the oldest lease that is not paid"`
	Ageing     []Money       `json:"ageing" doc:"owed for at most 7, 30, 90 days, and longer"`
	Leases     []LedgerLease `json:"leases"`
}

// LedgerLease is one lease of an account.
type LedgerLease struct {
	Lease  string `json:"lease"`
	Model  string `json:"gpu_name"`
	State  string `json:"state"`
	Debt   string `json:"debt"`
	Begun  int64  `json:"created_ms"`
	Ended  int64  `json:"ended_ms,omitempty"`
	Signed Money  `json:"signed"`
	Used   Money  `json:"used"`
	Paid   Money  `json:"paid"`
}

// Invoice is the account with one owner in one currency as a document: lines by lease.
type Invoice struct {
	Payee    string        `json:"payee_key"`
	Payer    string        `json:"payer_key"`
	Currency string        `json:"currency"`
	At       int64         `json:"at_ms" doc:"Unix milliseconds"`
	Lines    []InvoiceLine `json:"lines"`
	Payments []PaymentLine `json:"payments"`
	Total    Money         `json:"total"`
	Paid     Money         `json:"paid"`
	Due      Money         `json:"due"`
	Balance  Money         `json:"balance"`
}

// InvoiceLine is one lease's one price line.
type InvoiceLine struct {
	Lease    string `json:"lease"`
	What     string `json:"what" doc:"slots, disk, traffic in, traffic out or guarantor's decision"`
	Quantity string `json:"quantity" doc:"with its unit, such as 3.5 slot-hours"`
	Rate     Money  `json:"rate"`
	Amount   Money  `json:"amount"`
	Receipt  uint32 `json:"receipt" doc:"number of the receipt that both signed; 0 for none"`
	Begun    int64  `json:"begun_ms"`
	Ended    int64  `json:"ended_ms,omitempty"`
}

// PaymentLine is one signed payment.
type PaymentLine struct {
	Lease     string `json:"lease"`
	Amount    Money  `json:"amount"`
	Method    string `json:"method"`
	Reference string `json:"reference"`
	At        int64  `json:"at_ms" doc:"Unix milliseconds, by the payee's clock"`
}

// Budget is what an agent may spend over all its leases in one currency. Nil is no limit.
type Budget struct {
	Currency   string  `json:"currency"`
	Day        *Money  `json:"day"`
	Month      *Money  `json:"month"`
	SpentDay   Money   `json:"spent_day" doc:"since midnight of this machine's time"`
	SpentMonth Money   `json:"spent_month"`
	Alerts     []Alert `json:"alerts" doc:"the newest last"`
}

// BudgetRequest changes one or both budgets of a currency. Nil leaves one as it is; a negative amount takes it away.
type BudgetRequest struct {
	Currency   string `json:"currency" minLength:"1" maxLength:"8"`
	DayMicro   *int64 `json:"day_micro,omitempty"`
	MonthMicro *int64 `json:"month_micro,omitempty"`
}

// Deputy is a program on another machine that signs, pays and collects for this agent while it is away.
type Deputy struct {
	Key       string `json:"key"`
	Name      string `json:"name,omitempty"`
	Serves    bool   `json:"serves" doc:"false: it is this agent's deputy; true: this agent is its"`
	Connected bool   `json:"connected"`
	SeenMs    int64  `json:"seen_ms,omitempty" doc:"Unix milliseconds"`
	Leases    int    `json:"leases" doc:"that were handed over and are open"`
	CapMicro  int64  `json:"cap_micro,omitempty" doc:"what it may pay for one lease; 0 is the lease's budget"`
	Why       string `json:"why,omitempty" doc:"why it did not take a lease"`
}

// History is what this program knows of another owner, from what it verified itself. It is never one number.
type History struct {
	Owner      string  `json:"owner_key"`
	Leases     int     `json:"leases"`
	Hours      string  `json:"hours" doc:"billed slot-hours, a decimal"`
	Paid       []Money `json:"paid" doc:"by currency"`
	Completed  int     `json:"completed"`
	Disputed   int     `json:"disputed"`
	EndedByRig int     `json:"ended_by_rig" doc:"before their time"`
	EndedByMe  int     `json:"ended_by_renter" doc:"before their time"`
	Unpaid     int     `json:"ended_unpaid" doc:"because the money did not come"`
	Void       int     `json:"void" doc:"leases of which nothing was billed"`
	Faults     []Tally `json:"faults,omitempty" doc:"ends that were nobody's wish, by reason"`
	StartMs    int64   `json:"median_start_ms,omitempty" doc:"from both signatures to the first running second"`
	FirstSeen  int64   `json:"first_seen_ms,omitempty" doc:"Unix milliseconds"`
	Shown      int64   `json:"shown_by_rig,omitempty" doc:"accepted outcomes that the rig counts in its offer; their renters are unknown to you"`
}

// Tally is a count of one thing.
type Tally struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Confirm says that a rig's owner has received money.
type Confirm struct {
	Slice       uint32 `json:"slice,omitempty" doc:"0 is the one that is asked for"`
	AmountMicro int64  `json:"amount_micro,omitempty" minimum:"0" doc:"0 is what was asked for"`
	Reference   string `json:"reference,omitempty" maxLength:"128"`
}

// Trust changes what a rig's owner lets another owner do. Nil leaves a thing as it is.
type Trust struct {
	Name          *string `json:"name,omitempty" maxLength:"64" doc:"the owner, in your own words; nobody else sees it"`
	CreditMicro   *int64  `json:"credit_micro,omitempty" doc:"what it may owe over all leases, in millionths; -1 is no limit"`
	DefaultCredit bool    `json:"default_credit,omitempty" doc:"it gets the rig's own rule again"`
	Guarantor     *bool   `json:"guarantor,omitempty" doc:"what it guarantees for others is taken"`
}

// PayRequest pays for a lease.
type PayRequest struct {
	Method      string `json:"method,omitempty" maxLength:"32" doc:"empty for the lease's own"`
	AmountMicro int64  `json:"amount_micro,omitempty" minimum:"0" doc:"in millionths; 0 is all that is owed"`
}

// Backup is a copy of a program's state.
type Backup struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	At    int64  `json:"at_ms"`
}

// GuaranteeRequest promises a rig's owner what a renter may owe it.
type GuaranteeRequest struct {
	Rig         string `json:"rig_key" maxLength:"128" doc:"owner of the rig that is promised"`
	Renter      string `json:"renter_key" maxLength:"128" doc:"owner of the renter"`
	AmountMicro int64  `json:"amount_micro" minimum:"1"`
	Currency    string `json:"currency" minLength:"1" maxLength:"8"`
	Until       int64  `json:"until_ms" doc:"Unix milliseconds"`
}

// Unbilled is time that is not billed, by reason.
type Unbilled = market.Unbilled

// WhyUnbilled puts a reason of unbilled time into a word or two. One that this program does not know is shown as it is, made fit to be read.
func WhyUnbilled(reason market.UnbilledReason) string {
	words := map[market.UnbilledReason]string{
		market.UnbilledPull: "preparing", market.UnbilledStart: "starting", market.UnbilledNotice: "notice", market.UnbilledPause: "paused",
		market.UnbilledFault: "fault", market.UnbilledDown: "rig down", market.UnbilledStalled: "rig stalled", market.UnbilledUnpaid: "unpaid",
	}
	if w, ok := words[reason]; ok {
		return w
	}
	return market.Printable(string(reason))
}
