package market

// Codes that leave a process. The sentence for each is in catalogue.
const (
	CodeInternal       Code = "internal"
	CodeBadKey         Code = "bad_key"
	CodeBadHash        Code = "bad_hash"
	CodeBadMoney       Code = "bad_money"
	CodeOverflow       Code = "overflow"
	CodeBadEncoding    Code = "bad_encoding"
	CodeBadRecord      Code = "bad_record"
	CodeBadSignature   Code = "bad_signature"
	CodeWrongNetwork   Code = "wrong_network"
	CodeTooLarge       Code = "too_large"
	CodeTooSlow        Code = "too_slow"
	CodeTooMany        Code = "too_many"
	CodeUnexpected     Code = "unexpected_message"
	CodeUnknownField   Code = "unknown_field"
	CodeBadUnit        Code = "bad_unit"
	CodeBadQuery       Code = "bad_query"
	CodeNoMatch        Code = "no_match"
	CodeNoOffers       Code = "no_offers"
	CodeNoPeers        Code = "no_peers"
	CodeUnreachable    Code = "unreachable"
	CodeRelayOnly      Code = "relay_only"
	CodeOfferExpired   Code = "offer_expired"
	CodeOfferUnknown   Code = "offer_unknown"
	CodeOfferWithdrawn Code = "offer_withdrawn"
	CodeTooFewSlots    Code = "too_few_slots"
	CodeSlotTaken      Code = "slot_taken"
	CodeImageUnknown   Code = "image_unknown"
	CodeBudgetTooSmall Code = "budget_too_small"
	CodePriceTooLow    Code = "price_too_low"
	CodeBadDuration    Code = "bad_duration"
	CodeBadLimits      Code = "bad_limits"
	CodeNotTrusted     Code = "not_trusted"
	CodeNoCredit       Code = "no_credit"
	CodeOwnerUnknown   Code = "owner_unknown"
	CodeImageRefused   Code = "image_refused"
	CodePaused         Code = "paused"
	CodeUnsupported    Code = "unsupported"
	CodeHoldExpired    Code = "hold_expired"
	CodeLeaseUnknown   Code = "lease_unknown"
	CodeLeaseAmbiguous Code = "lease_ambiguous"
	CodeLeaseEnded     Code = "lease_ended"
	CodeNotYours       Code = "not_yours"
	CodeGrantMismatch  Code = "grant_mismatch"
	CodeReceiptChain   Code = "receipt_chain"
	CodeReceiptMath    Code = "receipt_math"
	CodeReceiptTime    Code = "receipt_time"
	CodeReceiptBudget  Code = "receipt_budget"
	CodeNoLog          Code = "no_log"
	CodeNotRunning     Code = "not_running"
	CodeClockSkew      Code = "clock_skew"
	CodeStartFailed    Code = "start_failed"
	CodeNoReceipts     Code = "no_receipts"
	CodeBadState       Code = "bad_state"
	CodeBadRequest     Code = "bad_request"
	CodeEngineDown     Code = "engine_down"
	CodeDiskFull       Code = "disk_full"
	CodeCardUnknown    Code = "card_unknown"
	CodeNotRentable    Code = "not_rentable"
	CodeNoRoom         Code = "no_room"
	CodeCardBusy       Code = "card_busy"
	CodeCardPolicy     Code = "card_policy"
	CodeCardMissing    Code = "card_missing"
	CodeImageGone      Code = "image_gone"
	CodeImageTooBig    Code = "image_too_big"
	CodeBadJob         Code = "bad_job"
	CodeJobUnsupported Code = "job_unsupported"
)

type entry struct {
	class   Class
	message string
	hint    string
}

// catalogue holds every sentence that people read about an error, by code. {name} stands for the error's argument.
func catalogue(code Code) (entry, bool) {
	for _, section := range []func(Code) (entry, bool){recordErrors, queryErrors, choiceErrors, tradeErrors, leaseErrors, insideErrors, moneyErrors, networkErrors, accessErrors} {
		if e, ok := section(code); ok {
			return e, true
		}
	}
	return entry{}, false
}

func recordErrors(code Code) (entry, bool) {
	e, ok := map[Code]entry{
		CodeInternal:     {ClassFailed, "internal error", "the log of the program that answered has one line about it"},
		CodeBadKey:       {ClassUsage, "{value} is not a key", "keys look like 12D3KooW…; copy one from `haggle peers` or `haggle offers --json`"},
		CodeBadHash:      {ClassUsage, "{value} is not an id", "ids are hexadecimal; copy one from `haggle leases` or `haggle offers --json`"},
		CodeBadMoney:     {ClassUsage, "{value} is not an amount of money", "write a decimal such as 0.40, at most six digits after the point"},
		CodeOverflow:     {ClassFailed, "the amount {value} does not fit", "use a shorter time or a lower price"},
		CodeBadEncoding:  {ClassRefused, "the bytes are not canonical CBOR: {why}", "the sender's program is broken or hostile; nothing was changed"},
		CodeBadRecord:    {ClassRefused, "the {kind} record is not valid: {why}", "the sender's program is broken, hostile or newer than this one"},
		CodeBadSignature: {ClassRefused, "the {kind} record's signature by the {role} is not valid", "the record was changed on the way, or was made for another network"},
		CodeWrongNetwork: {ClassRefused, "the record belongs to network {theirs}, not to {ours}", "compare `network` in both configurations"},
		CodeTooLarge:     {ClassRefused, "the message is larger than {limit} bytes", "the sender's program is broken or hostile"},
		CodeTooSlow:      {ClassUnreachable, "the other side did not answer within {limit}", "try again, or choose another offer"},
		CodeTooMany:      {ClassRefused, "too many requests at once from this key", "wait a little and try again"},
		CodeUnexpected:   {ClassRefused, "message {got} does not fit here", "the two programs may be of different versions: compare `haggle version`"},
		CodeBadRequest:   {ClassUsage, "{why}", "see the command's --help"},
		CodeBadState:     {ClassFailed, "the lease is {state}: {event} does not fit", "run `haggle leases` for its present state"},
		CodeClockSkew:    {ClassFailed, "the clocks of {peer} and of this machine differ by {skew}, so its offers are not valid here", "set both by NTP; running jobs and their bills are not affected"},
		CodeDiskFull:     {ClassFailed, "the disk of {whose} is full: nothing new is taken on", "make room there, or choose another rig; what runs goes on, and nothing that was signed is lost"},
		CodeEngineDown:   {ClassFailed, "the rig's container engine does not answer", "it is being restarted; try again in a moment or choose another rig"},
	}[code]
	return e, ok
}

func queryErrors(code Code) (entry, bool) {
	e, ok := map[Code]entry{
		CodeUnknownField: {ClassUsage, "there is no field {field}", "did you mean {nearest}? `haggle fields` lists all fields"},
		CodeBadUnit:      {ClassUsage, "{value} does not fit field {field}", "{expects}"},
		CodeBadQuery:     {ClassUsage, "the query stops making sense at {at}: {why}", "example: 'gpu_name=RTX_4090 num_gpus>=2 dph<0.60'"},
		CodeNoMatch:      {ClassNotFound, "none of {offers} offers matches", "add --explain to `haggle offers` to see which clause left none"},
		CodeNoOffers:     {ClassNotFound, "no rig offers anything yet", "rigs announce within seconds of joining; `haggle status` shows the network"},
		CodeNoPeers:      {ClassUnreachable, "no peer of network {network} answers", "{reason}; check `bootstrap` in the configuration, `haggle peers` shows who is known"},
		CodeRelayOnly: {
			ClassUnreachable, "{peer} is reached through a small relay only, which carries bids, receipts and payments, but no shells, ports or files",
			"choose an offer with reach=direct; its owner can forward port 4701, or name a bulk relay in `reach.relays`",
		},
		CodeUnreachable: {ClassUnreachable, "{peer} cannot be reached", "it may be off or behind a router; choose another offer or try again"},
	}[code]
	return e, ok
}

func tradeErrors(code Code) (entry, bool) {
	e, ok := map[Code]entry{
		CodeOfferExpired:   {ClassRefused, "the offer expired {ago} ago", "run `haggle offers` again: the rig renews its offer every few minutes"},
		CodeOfferUnknown:   {ClassNotFound, "there is no offer {offer}", "run `haggle offers` for the ids of the offers that are open now"},
		CodeOfferWithdrawn: {ClassRefused, "the rig has withdrawn this offer", "choose another from `haggle offers`"},
		CodeTooFewSlots:    {ClassRefused, "the offer has {has} slots of this kind, {wanted} were asked for", "ask for fewer with --gpus, or search with num_gpus>={wanted}"},
		CodeSlotTaken:      {ClassRefused, "{free} of the {wanted} slots asked for are free now", "someone was faster; run `haggle offers` and choose another"},
		CodeImageUnknown:   {ClassRefused, "the rig does not have image {image}", "its images are: {images}"},
		CodeBudgetTooSmall: {ClassBudget, "a budget of {budget} does not pay for the first minute, which costs {minute}", "raise --budget, or search for a lower price with dph<PRICE"},
		CodeNotRentable:    {ClassRefused, "this rig shows its cards and cannot give them to jobs", "choose another offer; `haggled doctor` on the rig says what is missing"},
		CodePriceTooLow:    {ClassRefused, "the price {price} is below the ask {ask}", "bid the ask: firm leases are not auctioned"},
		CodeBadDuration:    {ClassRefused, "a lease of {duration} is outside the rig's range {min} to {max}", "change --for"},
		CodeBadLimits:      {ClassRefused, "{limit} is more than the rig allows ({most})", "lower it, or choose another rig"},
		CodeNotTrusted:     {ClassRefused, "this rig takes bids only from owners that its owner trusts, and {owner} is not among them", "send that key (`haggle status` shows it) to the rig's owner; rigs with bidders=anyone take strangers who pay ahead"},
		CodeNoCredit:       {ClassRefused, "{owed} is owed to this rig already, of a credit of {credit}", "wait until the older leases are closed, or ask the rig's owner for more credit"},
		CodeOwnerUnknown:   {ClassNotFound, "{owner} is not among the trusted owners", "the rig's status lists them"},
		CodeImageRefused:   {ClassRefused, "the rig's owner does not allow image {image}: {why}", "allowed: {allowed}"},
		CodePaused:         {ClassRefused, "the rig's owner has paused new leases", "choose another offer; running leases go on"},
		CodeUnsupported:    {ClassRefused, "{what} is not supported by this version", "{instead}"},
		CodeHoldExpired:    {ClassRefused, "the rig's hold on the slots ran out before the lease was signed", "bid again; the connection to the rig may be slow"},
		CodeGrantMismatch:  {ClassRefused, "the rig's grant does not echo the bid: {field}", "nothing was signed and nothing is owed; choose another rig"},
		CodeCardUnknown:    {ClassNotFound, "there is no card {card} in this rig", "`haggled cards` lists them"},
	}[code]
	return e, ok
}

func leaseErrors(code Code) (entry, bool) {
	e, ok := map[Code]entry{
		CodeLeaseUnknown:   {ClassNotFound, "there is no lease {lease}", "`haggle leases --all` lists them"},
		CodeLeaseAmbiguous: {ClassUsage, "{lease} fits {count} leases", "type more digits of the id"},
		CodeLeaseEnded:     {ClassFailed, "the lease has ended: {reason}", "its log and receipts are still here: `haggle logs`, `haggle receipts`"},
		CodeNotYours:       {ClassRefused, "the lease belongs to another key", "only the key that signed the lease may ask for it"},
		CodeReceiptChain:   {ClassRefused, "receipt {seq} does not follow the one before it: {why}", "the receipt was not signed; the rig's program is broken or cheating"},
		CodeReceiptMath:    {ClassRefused, "receipt {seq} says {said} where the terms give {right}", "the receipt was not signed; the rig's program is broken or cheating"},
		CodeReceiptTime:    {ClassRefused, "receipt {seq} bills {billed} but I saw at most {seen}", "the receipt was not signed; compare the clocks of both machines"},
		CodeReceiptBudget:  {ClassBudget, "receipt {seq} is over the lease's budget of {budget}", "the receipt was not signed; the rig must stop at the budget"},
		CodeNoLog:          {ClassNotFound, "the log of this lease is gone", "rigs keep a job's log until the lease is wiped"},
		CodeNotRunning:     {ClassFailed, "the job is not running", "`haggle leases` shows its state"},
		CodeStartFailed:    {ClassRefused, "the rig could not start the job: {reason}", "nothing is billed; choose another rig or image"},
		CodeNoRoom:         {ClassRefused, "the rig has no room for the job's disk", "ask for less disk, or choose another rig"},
		CodeCardBusy:       {ClassRefused, "another job of the rig holds a card of this lease", "nothing is billed; choose another rig, or try again in a minute"},
		CodeCardPolicy:     {ClassRefused, "the rig does not pass this card on: what its driver asks for is given to no job", "nothing is billed; choose another rig"},
		CodeCardMissing:    {ClassRefused, "a card of this lease is gone, or the rig cannot pass it on", "nothing is billed; choose another rig"},
		CodeImageGone:      {ClassRefused, "the rig does not have the image any more", "nothing is billed; run `haggle offers` again"},
		CodeImageTooBig:    {ClassRefused, "the image takes more room than the rig allows", "nothing is billed; choose a smaller image or another rig"},
		CodeBadJob:         {ClassRefused, "the job as described cannot start on this rig", "check its arguments and environment: their size and form"},
		CodeJobUnsupported: {ClassRefused, "the rig cannot do what the job needs", "nothing is billed; choose another rig"},
		CodeNoReceipts:     {ClassNotFound, "the lease has no receipt yet", "the first comes 10 seconds after the job's start"},
	}[code]
	return e, ok
}
