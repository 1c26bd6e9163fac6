package index

import (
	"time"

	"haggle/market"
)

// Bounds of what an index holds: a rig that floods takes no more than its share, and all together no more than fits.
const (
	maxOffersPerRig = 32
	// An agent of a market of 100 000 rigs can hold all of it: with one offer a rig and what is kept of each, some 300 MB.
	maxAgentRigs = 100_000
	// A shelf holds the rigs of its own cells, of which there are about a dozen with at most market.MaxCell each, and room for
	// those that are being divided.
	maxShelfRigs = 8192

	forgetRig   = 30 * time.Minute    // after the last word of it or about it
	markRig     = market.MaxOfferLife // a rig that contradicts itself is left out until both statements have expired
	silentRig   = 2                   // failed questions in a row after which a rig's offers are not listed
	maxAskPause = 5 * time.Minute
	sweepEvery  = 30 * time.Second
	maxProofs   = 256 // contradictions that are kept and passed on
	maxTold     = 8   // peers counted as sources of one statement
	maxRenewals = 512 // earlier names of an offer: a day and a half of renewals
)

// Times and bounds of discovery.
const (
	smallMarket = market.MaxCell          // rigs up to which each is asked itself, as often as Config.Refresh says
	asksAtOnce  = 16                      // rigs asked at the same time
	slowAsks    = 64                      // of these, those that have not answered soon and hold up nobody
	slowAsk     = 400 * time.Millisecond  // after which a question is slow
	askTime     = 3 * time.Second         // for one rig's answer
	readyTime   = 2500 * time.Millisecond // for the network; below freshWait, so that its reason is known in time
	lookupTime  = 10 * time.Second        // for one lookup
	firstLookup = time.Second             // between lookups while nothing is known; doubles to lookupEvery
	lookupEvery = 30 * time.Second
	idleLookup  = 5 * time.Minute // between lookups in a market that is not small, while nobody asks
	eagerLookup = 5 * time.Second // between lookups while somebody asks for offers
	patience    = time.Second     // for lookups and silent rigs, where offers are known already
	freshFor    = 2 * time.Second // an index of this age is fresh
	freshWait   = 3 * time.Second // what somebody who asks for offers waits at most for a fresh one
	lookedAt    = 5 * time.Second // an answer of this age is fresh enough for who looks at one rig
	maxBuckets  = 64
	crossChecks = market.MaxCell         // rigs of one cell that no snapshot has and that are asked
	topChecks   = 8                      // of a bucket that is divided: its snapshots are parts of it
	holdAsks    = 700 * time.Millisecond // that rigs which a lookup finds wait for snapshots before they are asked
	warmRigs    = 32                     // rigs of an earlier life that are dialled first where the market is not small
	watchedFor  = time.Minute            // after a question somebody is taken to be still looking
	dropTime    = 200 * time.Millisecond // for what is written at the end
	hedgeAfter  = 400 * time.Millisecond // after which one more peer is asked for a snapshot beside those that are slow
	firstPage   = 25                     // offers of the first page for who knows nothing yet
	lookupTail  = 500 * time.Millisecond // for which a lookup goes on after somebody has named rigs
	pullAgain   = 20 * time.Second       // between snapshots of a bucket while somebody looks
	pullPages   = 8                      // of one peer and visit
	wantSources = 2                      // peers whose snapshots are put together
	shunFor     = 30 * time.Minute       // a peer whose snapshots held what nobody asked for, or nobody signed
	shunShare   = 8                      // one part in so many of a page may be bad
	maxSources  = 256                    // peers of whom it is known how they serve snapshots
	descendTick = 250 * time.Millisecond // between two cells of a bucket that is read to its end
	rereadAfter = 5 * time.Minute        // a bucket that was read to its end is read again, while somebody looks
	maxDescent  = 1 << 15                // cells of one bucket that wait to be read
	visitTime   = 5 * time.Second        // for one cell
	flushEvery  = 5 * time.Second        // between two writes of what is remembered
	flushRigs   = 512                    // rigs of one write
	loadRigs    = 4096                   // that are taken up at start
)

// Times and bounds of a rig's shelf. The interval is chosen so that with the cells of market/cell.go a statement reaches all shelves
// of its cell in about a third of an offer's life, and the traffic stays below 2 kB/s: see docs/adr/0014.
const (
	shelfEvery    = 90 * time.Second // between two visits to mates
	shelfSoon     = 3 * time.Second  // between visits while there is nobody; doubles to shelfEvery
	settleEvery   = 10 * time.Minute // between two looks at how full the own cells are, by what stands on the shelf
	meetEvery     = 2 * time.Hour    // between two lookups of the own cells, which are dear, while there are mates
	fewMates      = 2                // below this they are looked up again after shelfSoon, and then ever more seldom up to settleEvery
	shelfVisits   = 2                // mates visited for each cell
	visitsAtOnce  = 4
	maxMates      = 2 * market.MaxCell // kept of one cell
	maxOwnBuckets = 16
)
