package sim

// Bugs are mistakes that the programs around the rules could make. Tests switch them on, one at a time, to prove that a run finds
// them; nothing else does. Each is one of the orders, checks or memories that design.md calls load-bearing.
type Bugs struct {
	RigSendsBeforeStore    bool // a draft leaves before it is stored
	RenterSendsBeforeStore bool // a signature leaves before it is stored
	ActsBeforeIntent       bool // the engine is ordered before the order is stored
	AcksBeforeStore        bool // the rig says that it has a receipt before it has
	BillsDowntime          bool // time in which the rig's program did not run is billed
	NoClamp                bool // a stalled program bills the time in one lump
	BillsUnpaid            bool // what was paid is no bound
	NewDraftWhileOneIsOut  bool // a draft is replaced by a newer one
	DropsDraftOnRestart    bool // a draft is forgotten by a restart
	SignsBeforeHeads       bool // a rig that was put back drafts before it knows the renter's head
	KeepsInstance          bool // a store that is put back passes for the one that was lost
	ExtensionSentOnce      bool // an extension is not sent again on a new connection
	FinalSentOnce          bool // the final receipt is not sent again on a new connection
	LeavesBeforeAck        bool // the renter is done when it has signed the final receipt
	IgnoresTime            bool // the renter does not look at its own measure
	TrustsWallClock        bool // the renter measures with the wall clock
	ForgetsMeasure         bool // the renter's measure begins anew with every start of its program
	ForgetsPaidSeq         bool // a restart forgets how many payments were signed
	CountsPaymentTwice     bool // the money of a slice is signed for each time that it is seen
	BelievesPaid           bool // the rig signs for money because the renter says that it paid
	PaysWithoutIntent      bool // money moves before it is stored that it will
	PaysUnderNewName       bool // a payment that is tried again is another payment
}

// Cheat names what one side does on purpose against an honest other.
type Cheat string

// Cheats of a rig.
const (
	CheatOverbill   Cheat = "overbill"    // bills 0.1 % to 100 % more time than the job ran
	CheatFork       Cheat = "fork"        // drafts a second receipt of a number that both signed
	CheatReplay     Cheat = "replay"      // sends an old receipt for the new one
	CheatSkip       Cheat = "skip"        // leaves a number out
	CheatOtherLease Cheat = "other lease" // sends a receipt of another lease
	CheatVanish     Cheat = "vanish"      // takes the money of a slice and says nothing more
	CheatOverask    Cheat = "overask"     // asks for more money than the rule does
)

// Cheats of a renter.
const (
	CheatSilent Cheat = "silent" // never signs
	CheatLate   Cheat = "late"   // signs when it is too late
	CheatDouble Cheat = "double" // signs a receipt and refuses it
	CheatClaims Cheat = "claims" // says that it paid, and pays nothing
)

// Cheats returns all cheats: those of a rig first.
func Cheats() []Cheat {
	return []Cheat{
		CheatOverbill, CheatFork, CheatReplay, CheatSkip, CheatOtherLease, CheatVanish, CheatOverask,
		CheatSilent, CheatLate, CheatDouble, CheatClaims,
	}
}

// OfRig reports whether the rig is the one that cheats.
func (c Cheat) OfRig() bool {
	switch c {
	case CheatSilent, CheatLate, CheatDouble, CheatClaims, "":
		return false
	}
	return true
}
