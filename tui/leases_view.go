package tui

import (
	"strconv"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// render shows the page: the list, and the chosen lease with its log below.
func (l *leases) render(width, height int) []string {
	one, ok := l.current()
	if !ok {
		return block(indent(l.empty(width-4)), width, height)
	}
	if l.whole {
		out := l.about(one, width, max(10, height/2), height >= 16)
		return append(out, l.tail.render(width, height-len(out))...)
	}
	if height < 12 {
		return show(&l.grid, l.look, l.columns(width), len(l.list), l.row, width, height)
	}
	rows := max(4, min(len(l.list)+1, height/3))
	out := show(&l.grid, l.look, l.columns(width), len(l.list), l.row, width, rows)
	out = append(out, l.look.faint.on(strings.Repeat(l.look.sign.rule, width)))
	out = append(out, l.about(one, width, height-len(out), true)...)
	return append(out, l.tail.render(width, height-len(out))...)
}

func (l *leases) row(i int) *view.Lease { return &l.list[i] }

// state returns a lease's state as a sign and a word.
func (l *leases) state(one *view.Lease) string {
	s := l.look.sign
	switch {
	case one.State == stateRefused:
		return s.bad + " refused"
	case one.Debt == string(market.DebtDisputed):
		return s.bad + " disputed"
	case one.State == string(market.JobRunning):
		return s.now + " running"
	case one.State != string(market.JobEnded):
		return s.later + " " + one.State
	case one.Exit != nil && *one.Exit == 0:
		return s.ok + " done"
	case one.Exit != nil:
		return s.bad + " exit " + strconv.FormatInt(*one.Exit, 10)
	}
	return s.bad + " ended"
}

func (l *leases) stateColor(one *view.Lease) paint {
	switch {
	case one.State == stateRefused, one.Debt == string(market.DebtDisputed):
		return l.look.bad
	case one.State == string(market.JobRunning):
		return l.look.good
	case open(*one):
		return l.look.accent
	case one.Exit == nil || *one.Exit != 0:
		return l.look.bad
	}
	return paint{}
}

func (l *leases) columns(width int) []column[*view.Lease] {
	times, cards, spent := " "+l.look.sign.times+" ", 12, 10
	if width < 60 {
		times, cards, spent = l.look.sign.times, 10, 8
	}
	badge := func(v *view.Lease) string {
		if v.Simulated {
			return badgeSimulated
		}
		return ""
	}
	return []column[*view.Lease]{
		{title: "STATE", width: 11, cell: l.state, paint: l.stateColor},
		{title: "LEASE", rank: 4, width: 8, cell: called},
		{title: "CARDS", width: cards, grow: 24 - cards, cell: func(v *view.Lease) string {
			return strconv.Itoa(v.Slots) + times + model(v.Model)
		}},
		{width: len(badgeSimulated), cell: badge, paint: func(*view.Lease) paint { return l.look.warn }},
		{title: "RIG", rank: 3, width: 10, grow: 22, cell: func(v *view.Lease) string { return v.Rig }},
		{title: "SPENT", rank: 1, width: spent, right: true, cell: func(v *view.Lease) string { return v.Spent.Text }},
		{title: "BUDGET", rank: 5, width: 10, right: true, cell: func(v *view.Lease) string { return money(v.Budget) }},
		{title: "TIME", rank: 2, width: 7, right: true, cell: l.age},
	}
}

// age is how long a job ran, or how long it is in its state.
func (l *leases) age(v *view.Lease) string {
	if !open(*v) {
		return lasting(v.BilledMs)
	}
	return lasting(l.Clock().UnixMilli() - v.Since)
}

// about tells what the chosen lease is and how it goes, in at most so many lines where it is long.
func (l *leases) about(one view.Lease, width, room int, long bool) []string {
	put := func(p paint, text string) string { return p.on(fit(" "+text, width, false, l.look.sign.more)) }
	out := []string{put(l.look.strong, l.heading(one))}
	if !long {
		return append(out, line(" "+l.progress(one), width))
	}
	out = append(out, line(" "+l.path(one), width), line(" "+l.money(one, width-2), width))
	var rest []string
	for _, text := range l.cardUse(one) {
		rest = append(rest, line(" "+text, width))
	}
	if text := use(one); text != "" {
		rest = append(rest, put(paint{}, text))
	}
	for _, text := range l.inside(one, width-2) {
		rest = append(rest, line(" "+text, width))
	}
	if text, bad := outcome(one, l.clock); text != "" {
		color := l.look.faint
		if bad {
			color = l.look.warn
			text = l.look.sign.warn + " " + text
		}
		lines := wrap(text, max(1, width-2))
		for _, t := range lines[:min(len(lines), 2)] {
			rest = append(rest, put(color, t))
		}
	}
	if text := l.trouble(one); text != "" {
		lines := wrap(l.look.sign.warn+" "+text, max(1, width-2))
		for _, t := range lines[:min(len(lines), 2)] {
			rest = append(rest, put(l.look.warn, t))
		}
	}
	stakes := l.stakes(one, width-2, room >= 24)
	for _, text := range stakes[:min(len(stakes), max(2, room-len(out)-len(rest)-4))] { // the log has a heading and three lines at least
		out = append(out, line(" "+text, width))
	}
	out = append(out, rest[:max(0, min(len(rest), room-len(out)-2))]...)
	log := "log"
	if l.tail.back > 0 {
		log = "log, " + strconv.Itoa(l.tail.back) + " lines above its end"
	}
	return append(out, l.look.faint.on(fit(l.look.sign.rule+l.look.sign.rule+" "+log+" "+strings.Repeat(l.look.sign.rule, width), width, false, l.look.sign.rule)))
}

// heading names a lease and what runs in it.
func (l *leases) heading(one view.Lease) string {
	what := short(one.ID)
	if what == "" {
		what = "bid " + short(one.Bid)
	}
	if one.Name != "" {
		what += " " + clean(one.Name)
	}
	if one.Simulated {
		what += " " + badgeSimulated
	}
	what += " " + l.look.sign.dot + " " + clean(one.Image)
	if len(one.Args) > 0 {
		what += ": " + clean(strings.Join(one.Args, " "))
	}
	return what
}

// progress is path and money in one short line.
func (l *leases) progress(one view.Lease) string {
	return l.stateColor(&one).on(l.state(&one)) + " " + l.age(&one) + ", spent " + one.Spent.Text + " of " + money(one.Budget)
}

// path shows the phases of the start: what is over with how long it took, what is now, and what comes.
func (l *leases) path(one view.Lease) string {
	s, at := l.look.sign, rank(one.State)
	if one.State == stateBidding {
		return l.look.accent.on(s.now+" bidding "+lasting(l.Clock().UnixMilli()-one.Since)) + l.look.faint.on(", the rig is asked")
	}
	if one.State == stateRefused || at < 0 {
		return l.look.bad.on(s.bad + " refused")
	}
	began, running := l.began[attempt(one)], rank(string(market.JobRunning))
	var parts []string
	for i, phase := range phases[:running+1] {
		start, seen := began[i]
		took := ""
		if next, ok := began[i+1]; seen && ok && i < running && next-start >= 1000 {
			took = " " + lasting(next-start)
		}
		switch {
		case i < at && i == running:
			parts = append(parts, l.look.good.on(s.ok)+" ran "+lasting(one.BilledMs))
		case i < at && (seen || one.BilledMs > 0):
			parts = append(parts, l.look.good.on(s.ok)+" "+phase+took)
		case i < at:
			parts = append(parts, l.look.faint.on(s.later+" "+phase))
		case i == at:
			parts = append(parts, l.stateColor(&one).on(s.now+" "+phase+" "+l.age(&one)))
		default:
			parts = append(parts, l.look.faint.on(s.later+" "+phase))
		}
	}
	if at > running {
		parts = append(parts, l.stateColor(&one).on(l.state(&one)))
	}
	return strings.Join(parts, l.look.faint.on(" "+s.next+" "))
}

// money shows what is spent of the budget, and what of it both sides signed.
func (l *leases) money(one view.Lease, width int) string {
	permille := int64(0)
	if one.Budget.Micro > 0 {
		permille = min(1000, one.Spent.Micro/max(1, one.Budget.Micro/1000))
	}
	spent, share := "spent "+one.Spent.Text+" of "+money(one.Budget), strconv.FormatInt(permille/10, 10)+" %"
	text := spent + "  " + l.look.gauge(permille) + " " + share
	signed := "signed by both " + one.Signed.Text + ", receipt " + strconv.FormatUint(uint64(one.Receipts), 10)
	if one.Receipts == 0 {
		signed = "no receipt yet"
	}
	if one.Duration > 0 && width >= 110 {
		signed += "; billed " + lasting(one.BilledMs) + " of " + lasting(one.Duration)
	}
	if span(text)+2+span(signed) > width {
		text = spent + ", " + share
	}
	return text + "  " + l.look.faint.on(signed)
}

// cardUse shows what the leased cards do now, a line each for the first two and one for the rest. What is unknown is left
// out, never shown as nothing.
func (l *leases) cardUse(one view.Lease) []string {
	if one.State != string(market.JobRunning) {
		return nil
	}
	const most = 2
	var out []string
	for i, c := range one.Cards {
		if i == most {
			out = append(out, l.look.faint.on("and "+strconv.Itoa(len(one.Cards)-most)+" more cards"))
			break
		}
		parts := []string{"card " + strconv.Itoa(int(c.Index))}
		if c.UtilPermille != nil {
			parts = append(parts, l.look.gauge(*c.UtilPermille)+" "+strconv.FormatInt(*c.UtilPermille/10, 10)+" %")
		}
		if c.MemoryBytes != nil {
			parts = append(parts, strconv.FormatInt((*c.MemoryBytes+1<<29)>>30, 10)+" GiB used")
		}
		if c.PowerMW != nil {
			parts = append(parts, strconv.FormatInt(*c.PowerMW/1000, 10)+" W")
		}
		if c.TempC != nil {
			parts = append(parts, strconv.FormatInt(*c.TempC, 10)+" "+l.look.sign.degree+"C")
		}
		out = append(out, strings.Join(parts, "  "))
	}
	return out
}

// trouble says why a lease is not what it should be.
func (l *leases) trouble(one view.Lease) string {
	switch {
	case one.Error != nil:
		message, hint := explain(one.Error.Err())
		return message + "; " + hint
	case one.State == string(market.JobStopping) && one.EndsBy > 0:
		return "ends by " + l.clock(one.EndsBy) + ": " + notices(one.Reason)
	case one.State == string(market.JobRunning) && one.DiskFull:
		return "its disk is full: the job goes on, and can write no more"
	case one.State == string(market.JobEnded) && one.Reason != "" && one.Reason != string(market.ReasonCompleted):
		return "ended: " + endings(one.Reason)
	case open(one) && one.ID != "" && !one.Connected:
		return "the rig does not answer now; the job goes on within its unattended time"
	case one.Debt == string(market.DebtDisputed):
		return "a receipt was not signed, for its sums are wrong"
	}
	return ""
}

// empty says why there is no lease and what to do.
func (l *leases) empty(width int) []string {
	lines := func(p paint, text string) (out []string) {
		for _, w := range wrap(text, width) {
			out = append(out, p.on(w))
		}
		return append(out, "")
	}
	switch {
	case l.err != nil:
		message, hint := explain(l.err)
		return append(lines(l.look.bad, l.look.sign.bad+" "+message), lines(l.look.faint, hint)...)
	case !l.known:
		return lines(l.look.faint, "Asking for your leases"+l.look.sign.more)
	case l.bidding > 0:
		return lines(l.look.accent, "Bidding: the rig is asked for a lease"+l.look.sign.more)
	}
	return append(lines(l.look.strong, "You have no leases."),
		lines(l.look.faint, "1 shows the market: choose an offer, press enter, see the whole price, and y rents. Jobs go on when you leave.")...)
}
