package market

import (
	"cmp"
	"slices"
)

// Plan is what a budget buys: three ways of spending it on one job. Two of them may be the same offer.
type Plan struct {
	Budget   Micro     `json:"budget_micro"`
	Currency string    `json:"currency"`
	Matching int       `json:"matching"` // offers that match the query
	Fitting  int       `json:"fitting"`  // of them, those on which the job fits the budget and the rules
	Cheapest *Choice   `json:"cheapest,omitempty"`
	Quickest *Choice   `json:"quickest,omitempty"`
	Safest   *Choice   `json:"safest,omitempty"`
	Nearest  *PlanMiss `json:"nearest,omitempty"` // where nothing fits
}

// Choice is one offer of a plan.
type Choice struct {
	Row     int     `json:"row"` // index in the list that was asked
	Slots   []uint8 `json:"slots"`
	Total   Micro   `json:"total_micro"` // what the job costs
	RunMs   int64   `json:"run_ms"`      // for which it runs at that price
	LastsMs int64   `json:"lasts_ms"`    // for which the whole budget would last, within the offer's rules
	StartMs *int64  `json:"start_ms"`    // until it starts; nil is unknown
	Why     string  `json:"why"`         // why this one, safe to print
	Reasons Reasons `json:"reasons"`
}

// PlanMiss is the offer that comes nearest where nothing fits.
type PlanMiss struct {
	Row   int    `json:"row"`
	Total Micro  `json:"total_micro"` // 0 where it has no price for the job
	Why   string `json:"why"`         // what stands in the way, safe to print
	// Funnel is there where no offer even matches the query.
	Funnel *Funnel `json:"funnel,omitempty"`
}

// PlanFor chooses among the offers that match a query, for one job and a budget in a currency: the cheapest, the one that is done first,
// and the one that stands first in the default order. A job without a time runs for as long as the budget lasts; the cheapest is then
// the one on which it runs longest. The rows' own jobs are not used.
func PlanFor(q Query, rows []Row, budget Micro, currency string, job JobShape) Plan {
	p := Plan{Budget: budget, Currency: currency}
	var fits []fit
	var near nearestFit
	for i, r := range rows {
		r.Job = &job
		m, ok := q.MatchRow(r)
		if !ok {
			continue
		}
		p.Matching++
		f, why := newFit(r, m, i, budget, currency)
		if why != "" {
			near.take(f, why)
			continue
		}
		fits = append(fits, f)
	}
	p.Fitting = len(fits)
	switch {
	case p.Matching == 0:
		told := q.ExplainRows(rows)
		p.Nearest = &PlanMiss{Row: -1, Why: "no offer matches the query", Funnel: &told}
		if told.Nearest != nil {
			p.Nearest.Row = told.Nearest.Offer
		}
	case p.Fitting == 0:
		p.Nearest = &PlanMiss{Row: near.fit.at, Total: near.fit.ranked.Cost, Why: near.why}
	default:
		p.choose(fits)
	}
	return p
}

// fit is an offer with the job on it.
type fit struct {
	at      int
	row     Row
	ranked  Ranked
	judged  Ranked // the same for the order: a job that runs until the budget is spent costs the same everywhere, an hour of it does not
	runMs   int64
	lastsMs int64
	start   int64 // endless where it is unknown
}

// newFit prices the job on an offer, or says why it does not fit.
func newFit(r Row, m Match, at int, budget Micro, currency string) (fit, string) {
	job := *r.Job
	f := fit{at: at, ranked: Ranked{Offer: r.Offer, Match: m, Standing: r.Standing, Job: &job, Now: r.Now}, start: endless}
	f.row = f.ranked.Row()
	o := r.Offer
	switch {
	case o.Prices.Currency != currency:
		return f, "it is paid in " + Printable(o.Prices.Currency)
	case o.State != OfferOpen:
		return f, "it takes no bids yet"
	case len(m.Slots) < r.slots():
		return f, "it has too few free slots"
	}
	f.lastsMs = f.row.lasts(budget)
	if f.runMs = job.DurationMs; f.runMs == 0 {
		f.runMs = f.lastsMs
		job.DurationMs = f.runMs
	}
	total, known := f.row.Total()
	f.ranked.Cost = total
	if f.judged = f.ranked; r.Job.DurationMs == 0 {
		f.judged.judgeByTheHour()
	}
	if start, ok := f.row.StartMs(); ok {
		f.start = start
	}
	switch {
	case !known:
		return f, "its price does not fit into money"
	case f.runMs < max(o.Rules.MinMs, 1):
		return f, "its shortest lease of " + span(o.Rules.MinMs) + " costs more than the budget"
	case f.runMs > o.Rules.MaxMs:
		return f, "its longest lease is " + span(o.Rules.MaxMs)
	case total > budget:
		return f, "the job costs " + total.String() + " " + Printable(currency) + " there; the budget lasts " + roughly(f.lastsMs)
	}
	return f, ""
}

// judgeByTheHour takes an hour in the place of the job's time.
func (r *Ranked) judgeByTheHour() {
	hour := *r.Job
	hour.DurationMs = 3_600_000
	r.Job = &hour
	row := r.Row()
	r.Cost, _ = row.Total()
}

// lasts is the longest time for which the job's price is within a budget, in whole seconds and within the offer's longest lease. The job's
// traffic is paid in any case.
func (r *Row) lasts(budget Micro) int64 {
	job := *r.Job
	timed := *r
	timed.Job = &job
	low, high := int64(0), r.Offer.Rules.MaxMs/1000+1 // seconds; low is within the budget or nothing is
	for low+1 < high {
		middle := low + (high-low)/2
		job.DurationMs = middle * 1000
		if total, known := timed.Total(); known && total <= budget {
			low = middle
		} else {
			high = middle
		}
	}
	return low * 1000
}

// nearestFit is the offer that fits least badly: the one with the lowest price, those without one last.
type nearestFit struct {
	fit fit
	why string
}

func (n *nearestFit) take(f fit, why string) {
	better := n.why == "" || f.ranked.Cost > 0 && (n.fit.ranked.Cost == 0 || f.ranked.Cost < n.fit.ranked.Cost)
	if better {
		n.fit, n.why = f, why
	}
}

// choose takes the three from the offers that fit: at least one.
func (p *Plan) choose(fits []fit) {
	best := func(compare func(a, b *fit) int) *fit {
		least := &fits[0]
		for i := range fits {
			if cmp.Or(compare(&fits[i], least), cmp.Compare(fits[i].at, least.at)) < 0 {
				least = &fits[i]
			}
		}
		return least
	}
	inOrder := order{[]sortKey{{special: SortBest}}}
	rank := func(a, b *fit) int {
		k, l := inOrder.entry(&a.judged), inOrder.entry(&b.judged)
		return inOrder.compare(&k, &l)
	}
	cheap := best(func(a, b *fit) int {
		return cmp.Or(cmp.Compare(b.runMs, a.runMs), cmp.Compare(a.ranked.Cost, b.ranked.Cost), rank(a, b))
	})
	quick := best(func(a, b *fit) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.speed(), a.speed()), rank(a, b))
	})
	safe := best(rank)
	p.Cheapest = cheap.choice(cheap.whyCheap())
	p.Quickest = quick.choice(quick.whyQuick())
	p.Safest = safe.choice(safe.whySafe())
}

// speed is the TFLOPS of the slots that the job would get, in thousandths; 0 where it is unknown.
func (f *fit) speed() int64 {
	best := int64(0)
	for i := range f.row.Offer.Slots {
		s := &f.row.Offer.Slots[i]
		if slices.Contains(f.ranked.Match.Slots, s.Index) {
			best = max(best, f.row.Offer.flops(s).num)
		}
	}
	return best
}

func (f *fit) choice(why string) *Choice {
	c := &Choice{
		Row: f.at, Slots: f.ranked.Match.Slots, Total: f.ranked.Cost, RunMs: f.runMs, LastsMs: f.lastsMs, Why: why, Reasons: Why(f.row),
	}
	if f.start != endless {
		c.StartMs = &f.start
	}
	return c
}

func (f *fit) whyCheap() string {
	return f.ranked.Cost.String() + " " + Printable(f.row.Offer.Prices.Currency) + " for " + roughly(f.runMs) + " is the lowest price of all that fit"
}

func (f *fit) whyQuick() string {
	why := "nobody's start is known"
	switch {
	case f.start == 0:
		why = "nothing must be sent first"
	case f.start != endless:
		why = "what must be sent takes about " + roughly(f.start)
	}
	if n := f.speed(); n > 0 {
		why += ", and its card does " + operand{num: n}.show(kindSpeed)
	}
	return why
}

func (f *fit) whySafe() string {
	k := newRankKey(&f.row)
	switch {
	case k.checked == 0:
		return "you had a lease or a measurement there"
	case int(k.seen) < len(seenSteps()):
		return "nothing was checked, and its key is the one you have known longest; " + WorstOf(f.row).Text
	}
	return "nothing was checked anywhere: " + WorstOf(f.row).Text
}
