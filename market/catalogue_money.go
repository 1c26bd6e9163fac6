package market

// Codes of paying, of budgets over many leases, and of those who sign for a renter.
const (
	CodePayMethod      Code = "pay_method"      // the rig does not take this way of paying, or the agent has no program for it
	CodePayAhead       Code = "pay_ahead"       // a stranger must name a payment method
	CodeUnpaid         Code = "unpaid"          // the money did not come
	CodePayFailed      Code = "pay_failed"      // the payment program said no
	CodePayTimeout     Code = "pay_timeout"     // the payment program did not answer in time
	CodePayProgram     Code = "pay_program"     // the payment program is missing or answers nonsense
	CodeOverCap        Code = "over_cap"        // the day's or the month's budget
	CodeNothingOwed    Code = "nothing_owed"    // nothing to pay or to confirm
	CodeDeputyUnknown  Code = "deputy_unknown"  // the deputy does not serve this agent, or the agent does not know it
	CodeGuaranteeSpent Code = "guarantee_spent" // what was promised is reserved by other leases
	CodeGuarantee      Code = "guarantee"       // it does not hold for this rig, renter or time
	CodeBackupExists   Code = "backup_exists"   // the file is there already
	CodeReceiptPaid    Code = "receipt_paid"    // it bills more than was paid and may be owed
)

func moneyErrors(code Code) (entry, bool) {
	e, ok := map[Code]entry{
		CodePayMethod:      {ClassRefused, "{who} does not pay or take payment by {method}", "methods of this offer: {methods}; `haggle status` lists the ways in which this machine can pay"},
		CodePayAhead:       {ClassRefused, "this rig wants to be paid ahead", "name a method: {methods}; `--pay METHOD`"},
		CodeUnpaid:         {ClassRefused, "the rig was not paid in time", "nothing that was not paid is billed; `haggle ledger` shows what is left of what you paid"},
		CodePayFailed:      {ClassFailed, "payment by {method} failed: {why}", "nothing was taken twice: run the same command again"},
		CodePayTimeout:     {ClassFailed, "the payment program {method} did not answer within {limit}", "its answer is asked for again; nothing is paid twice"},
		CodePayProgram:     {ClassFailed, "the payment program haggle-pay-{method} cannot be used: {why}", "it must lie beside haggle or in the folders of pay.path"},
		CodeOverCap:        {ClassBudget, "that would cost {amount}, and {left} are left of the {span} budget of {cap}", "`haggle budget --{span} AMOUNT` changes it"},
		CodeNothingOwed:    {ClassNotFound, "nothing is open to be {what} for lease {lease}", "`haggle ledger` lists what is"},
		CodeDeputyUnknown:  {ClassRefused, "{deputy} does not act for this agent", "on that machine: `haggle deputy serve KEY --cap AMOUNT`, with this agent's key"},
		CodeGuaranteeSpent: {ClassRefused, "of the {amount} that was guaranteed, {left} are not yet reserved", "ask for a larger guarantee, or a smaller budget"},
		CodeGuarantee:      {ClassRefused, "the guarantee does not hold here: {why}", "ask the guarantor for one that names this rig and your key"},
		CodeBackupExists:   {ClassUsage, "{path} exists", "name a new file; nothing is overwritten"},
		CodeReceiptPaid:    {ClassRefused, "receipt {seq} bills {said}, and {most} at most were paid or may be owed", "the receipt was not signed; the rig must wait for its money, or its program is cheating"},
	}[code]
	return e, ok
}
