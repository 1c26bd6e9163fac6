package view

import "haggle/market"

// JobShape is the job for which offers are priced and timed: the user's own.
type JobShape struct {
	GPUs       int    `json:"gpus,omitempty" doc:"slots, all in one rig; 1 by default"`
	DurationMs int64  `json:"duration_ms,omitempty" doc:"running time, 1 hour by default"`
	DiskMB     int64  `json:"disk_mb,omitempty" doc:"of its disk; what the rig gives by default"`
	InMB       int64  `json:"in_mb,omitempty" doc:"traffic into the job"`
	OutMB      int64  `json:"out_mb,omitempty" doc:"traffic out of the job"`
	Image      string `json:"image,omitempty" doc:"a name or a digest"`
	ImageBytes int64  `json:"image_bytes,omitempty" doc:"size of the image where it would be sent; 0 is unknown"`
}

// OfferQuery asks for offers.
type OfferQuery struct {
	Query   string   `json:"query"`            // empty for all; @NAME stands for a saved query
	Sort    string   `json:"sort"`             // fields, the first counts most, each with a trailing - for descending; empty for the default order
	Explain bool     `json:"explain"`          // also say what each clause left
	Facets  string   `json:"facets,omitempty"` // fields whose values are counted, separated by commas
	Limit   int      `json:"limit,omitempty"`  // list so many at most; 0 for all
	Job     JobShape `json:"job,omitzero"`     // my job
}

// OfferList answers an OfferQuery.
type OfferList struct {
	Offers  []Offer `json:"offers"`
	Matches int     `json:"matches" doc:"offers that match, listed or not"`
	Known   int     `json:"known" doc:"offers known before the query"`
	About   int     `json:"about" doc:"offers that there are for the query, as far as can be told; never below known"`
	Reading bool    `json:"reading,omitempty" doc:"more are being read: ask again"`
	Rigs    int     `json:"rigs" doc:"rigs that answered"`
	Reason  string  `json:"reason,omitempty" doc:"why the list may be short: no peer answers, a lookup ran out of time"`
	Funnel  *Funnel `json:"funnel,omitempty"`
	Facets  []Facet `json:"facets,omitempty"`
}

// Funnel says how many offers each clause of a query left, in order.
type Funnel struct {
	Known   int          `json:"known"`
	Steps   []FunnelStep `json:"steps"`
	Nearest string       `json:"nearest,omitempty" doc:"the offer that misses by least, and by what"`
}

// FunnelStep is one clause.
type FunnelStep struct {
	Clause string `json:"clause"`
	Left   int    `json:"left"`
}

// Kinds of an OfferChange.
const (
	OfferHere    = "here"    // it matched when the watch began
	OfferNew     = "new"     // it matches now
	OfferCheaper = "cheaper" // its whole price fell
	OfferDearer  = "dearer"  // its whole price rose
	OfferFreed   = "freed"   // more of its slots are free
	OfferTaken   = "taken"   // fewer of its slots are free
	OfferGone    = "gone"    // it matches no longer
)

// OfferChange is one change among the offers that match a query.
type OfferChange struct {
	Change string `json:"change" doc:"here, new, cheaper, dearer, freed, taken or gone"`
	AtMs   int64  `json:"at_ms" doc:"Unix milliseconds"`
	Offer  Offer  `json:"offer" doc:"as it is now, and as it was last where it is gone"`
	Was    *Money `json:"was,omitempty" doc:"the whole price before, where it is another now"`
}

// SavedQuery is a query that the user gave a name.
type SavedQuery struct {
	Name  string `json:"name"`
	Query string `json:"query"`
}

// SaveRequest keeps a query under a name.
type SaveRequest struct {
	Query string `json:"query" maxLength:"1024"`
}

// Residency is where a job may run, and how well that is to be proven to this agent before it signs.
type Residency = market.Residency
