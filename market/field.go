package market

import "strings"

// Field describes one name that a query can ask about, for help, completion and documents. Fields returns all of them.
type Field struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"` // other spellings that ParseQuery takes
	Type    string   `json:"type"`              // what a value looks like: word, number, memory, money, …
	Unit    string   `json:"unit,omitempty"`    // the unit of a number written without one
	About   string   `json:"about"`             // whose word it is: slot, offer, standing (mine), job (computed for mine) or claim
	Help    string   `json:"help"`              // one sentence
	Example string   `json:"example"`           // a clause that ParseQuery takes
}

// fieldID numbers the fields in the order in which help shows them. Registered claims follow fieldClaim in the order of their table.
type fieldID uint8

const (
	// Of one slot.
	fieldGPUName fieldID = iota
	fieldGPUVendor
	fieldNumGPUs
	fieldGPURAM
	fieldComputeCap
	fieldPCIeGen
	fieldGPUPower
	fieldECC
	fieldDisplay
	fieldRawModel
	fieldUsable
	fieldPCIeWidth
	fieldSlotKind
	fieldHealth
	fieldTFLOPS
	fieldPricePerTFLOP
	fieldTFLOPPerPrice

	// Of the offer.
	fieldCPUThreads
	fieldCPURAM
	fieldDiskFree
	fieldCPUName
	fieldKernel
	fieldDriver
	fieldCUDA
	fieldSlotUp
	fieldSlotDown
	fieldPrice
	fieldCurrency
	fieldDiskPrice
	fieldStorageCost
	fieldInPrice
	fieldOutPrice
	fieldGeolocation
	fieldReach
	fieldInetUp
	fieldInetDown
	fieldIsolation
	fieldImage
	fieldImageDigest
	fieldMaxDuration
	fieldMinDuration
	fieldInterval
	fieldFirst
	fieldGrace
	fieldNotice
	fieldUnattended
	fieldCredit
	fieldRig
	fieldRigKey
	fieldOwnerKey
	fieldOfferID
	fieldState
	fieldSimulated
	fieldEgress
	fieldBidders
	fieldContent
	fieldProtections
	fieldWeak
	fieldBrings
	fieldPay
	fieldPayAuto
	fieldOutcomes
	fieldSlotsTotal
	fieldFreeSlots
	fieldTotalRAM
	fieldTotalFLOPS
	fieldExpires

	// Of what the renter knows.
	fieldChecked
	fieldLeases
	fieldSeen
	fieldAge
	fieldRTT
	fieldWithinKm
	fieldSource
	fieldSources
	fieldGivenName
	fieldReached
	fieldAddressCountry
	fieldResidency
	fieldKeeps
	fieldLink

	// Of the job.
	fieldTotal
	fieldStartTime
	fieldHasImage

	// fieldClaim is a claim that is not registered: only a clause knows its name.
	fieldClaim
)

// scope says what a field is read from.
type scope uint8

const (
	scopeSlot     scope = iota // it may differ between the slots of one offer
	scopeCount                 // num_gpus, which is counted and not read
	scopeOffer                 // the offer as a whole
	scopeStanding              // what the renter knows
	scopeJob                   // the offer and the renter's job
)

// String names a scope for help. A count is about the offer.
func (s scope) String() string {
	return [...]string{"slot", "offer", "offer", "standing", "job"}[s]
}

func (f fieldID) scope() scope {
	switch {
	case f == fieldNumGPUs:
		return scopeCount
	case f < fieldCPUThreads:
		return scopeSlot
	case f >= fieldClaim || f < fieldChecked:
		return scopeOffer
	case f < fieldTotal:
		return scopeStanding
	}
	return scopeJob
}

// perSlot reports whether the field's value may differ between the slots of one offer.
func (f fieldID) perSlot() bool { return f.scope() == scopeSlot }

// moves reports whether the field's value changes with the time alone.
func (f fieldID) moves() bool { return f == fieldSeen || f == fieldAge || f == fieldExpires }

// fieldRow is a Field without what its kind tells.
type fieldRow struct {
	name    string
	aliases string // separated by blanks
	kind    kind
	help    string
	example string
}

// subject is what a clause, a sort key or a facet is about.
type subject struct {
	field fieldID
	name  string // of the field, in full
	kind  kind
	claim string // name of the claim where field is fieldClaim or above
}

// read returns the subject's value.
func (s *subject) read(r *Row, slot *Slot) value {
	if s.field >= fieldClaim {
		return r.Offer.claim(s.claim, s.kind)
	}
	return s.field.read(r, slot)
}

// claimPrefix begins the name of any claim, registered or not.
const claimPrefix = "claim."

// Fields returns every field, in the order in which help shows them: registered claims last. The slice is the caller's.
func Fields() []Field {
	var fields []Field
	add := func(id fieldID, row fieldRow) {
		about := id.scope().String()
		if id > fieldClaim {
			about = "claim"
		}
		form := row.kind.form()
		fields = append(fields, Field{
			Name: row.name, Aliases: strings.Fields(row.aliases), Type: form.name, Unit: form.bare,
			About: about, Help: row.help, Example: row.example,
		})
	}
	for i, row := range fieldTable() {
		add(fieldID(i), row)
	}
	for i, c := range claimTable() {
		add(fieldClaim+1+fieldID(i), c.row())
	}
	return fields
}

// subjectNamed finds a field by its name or alias, or a claim. The error has code CodeUnknownField and names the nearest field;
// others are names that the caller takes beside.
func subjectNamed(name string, others ...string) (subject, error) {
	low := strings.ToLower(name)
	if claim, ok := strings.CutPrefix(low, claimPrefix); ok && claimName.MatchString(claim) {
		for i, c := range claimTable() {
			if c.name == claim {
				return c.subject(i), nil
			}
		}
		return subject{field: fieldClaim, name: claimPrefix + claim, kind: kindClaim, claim: claim}, nil
	}
	nearest, least := foreignField(low), len(name)+maxQueryText
	if nearest != "" {
		least = -1
	}
	closer := func(candidate, means string) {
		if d := editDistance(low, candidate); d < least {
			nearest, least = means, d
		}
	}
	match := func(row fieldRow) bool {
		for _, spelling := range append([]string{row.name}, strings.Fields(row.aliases)...) {
			if low == spelling {
				return true
			}
			closer(spelling, row.name)
		}
		return false
	}
	for i, row := range fieldTable() {
		if match(row) {
			return subject{field: fieldID(i), name: row.name, kind: row.kind}, nil
		}
	}
	for i, c := range claimTable() {
		if match(c.row()) {
			return c.subject(i), nil
		}
	}
	for _, other := range others {
		closer(other, other)
	}
	return subject{}, NewError(CodeUnknownField, "field", clip(name, 40), "nearest", nearest)
}

// foreignField returns the field that comes nearest to one of another market's, which has none of the same meaning here; "" for any
// other name. Most are of
// Vast's documented query language.
func foreignField(name string) string {
	return map[string]string{
		"reliability": "seen", "reliability2": "seen", "verified": "checked", "verification": "checked", "rentable": "state", "rented": "free_slots",
		"external": "reach", "direct_port_count": "reach", "host_id": "owner_key", "machine_id": "rig_key", "id": "offer_id",
		"dlperf": "tflops", "dlperf_usd": "tflop_per_dph", "dlperf_per_dphtotal": "tflop_per_dph", "min_bid": "dph",
		"discounted_dph_total": "dph", "gpu_frac": "slots_total", "vms_enabled": "isolation", "cluster_id": "interconnect",
		"mobo_name": "cpu_name", "ubuntu_version": "kernel", "price": "dph", "cost": "total", "score": "best",
	}[name]
}

// editDistance is the number of letters to insert, delete or change to make b of a (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
