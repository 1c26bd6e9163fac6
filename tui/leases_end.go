package tui

import (
	"strconv"
	"strings"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// clock writes a wall time for the person at this machine.
func (l *leases) clock(ms int64) string {
	return time.UnixMilli(ms).In(l.Clock().Location()).Format(time.TimeOnly)
}

// use says what a job uses beside its cards: its disk and the network. What is not known, or not there, is left out.
func use(one view.Lease) string {
	var parts []string
	if one.DiskUsed > 0 {
		disk := "disk " + thousands(one.DiskUsed, "B")
		if one.DiskMB > 0 {
			disk += " of " + thousands(one.DiskMB*1_000_000, "B")
		}
		parts = append(parts, disk)
	}
	if one.In > 0 || one.Out > 0 {
		parts = append(parts, "traffic "+thousands(one.In, "B")+" in, "+thousands(one.Out, "B")+" out")
	}
	return strings.Join(parts, "  ")
}

// notices says why a job was told to end.
func notices(reason string) string {
	if reason == string(market.ReasonTakeback) {
		return "the owner takes the card back; from the notice on it costs nothing"
	}
	return endings(reason)
}

// endings puts the reason of an end into words.
func endings(reason string) string {
	words := map[market.Reason]string{
		market.ReasonRenter: "you stopped it", market.ReasonBudget: "the budget is spent", market.ReasonExpired: "its time is over",
		market.ReasonDeadline: "its window is over", market.ReasonUnsigned: "receipts were not signed in time",
		market.ReasonUnattended: "this machine was away for longer than allowed", market.ReasonDisputed: "a receipt was refused",
		market.ReasonHoldExpired: "the lease was not signed in time", market.ReasonPrepare: "the rig could not make the job ready",
		market.ReasonStart: "the rig could not start the job", market.ReasonLost: "the rig lost the job", market.ReasonOOM: "it used too much memory",
		market.ReasonFault: "a card failed", market.ReasonRig: "the rig's owner ended it", market.ReasonTakeback: "the rig's owner took the card back",
		market.ReasonCredit: "you owe this rig as much as its owner allows", market.ReasonDiskFull: "its disk was full",
		market.ReasonUnpaid: "what was paid ahead was used up, and no more came", market.ReasonIdle: "its cards did nothing for as long as you allowed",
	}
	if w, ok := words[market.Reason(reason)]; ok {
		return w
	}
	return clean(reason)
}

// outcome says what became of what a job left behind, as its rig signed it; bad where something was not overwritten.
func outcome(one view.Lease, clock func(int64) string) (text string, bad bool) {
	o := one.Outcome
	if o == nil || one.State != string(market.JobPaused) && one.State != string(market.JobEnded) {
		return "", false // of a job that runs again it says what was
	}
	text = "disk kept"
	if o.DiskAt > 0 {
		text = "disk destroyed " + clock(o.DiskAt)
	}
	if same(o.Cards) {
		text += ", memory of " + plural(len(o.Cards), "card", "cards") + " scrubbed, " + gib(o.Cards[0].Bytes)
		if len(o.Cards) > 1 {
			text += " each"
		}
		return text, false
	}
	for _, c := range o.Cards {
		text += ", card " + strconv.Itoa(int(c.Index)) + " memory "
		switch {
		case c.Bytes == 0:
			text += "not scrubbed"
		case c.Why != "":
			text += "scrubbed " + gib(c.Bytes) + ", not all"
		default:
			text += "scrubbed " + gib(c.Bytes)
		}
		if c.Why != "" {
			text += ": " + c.Why
		}
		bad = bad || c.Bytes == 0 || c.Why != ""
	}
	return text, bad
}

// same reports whether every card, of which there is one, was overwritten wholly and alike.
func same(cards []market.CardWipe) bool {
	for _, c := range cards {
		if c.Bytes == 0 || c.Why != "" || c.Bytes != cards[0].Bytes {
			return false
		}
	}
	return len(cards) > 0
}

// gib writes a card's memory as cards are sold: in whole GiB, rounded.
func gib(bytes int64) string { return strconv.FormatInt((bytes+1<<29)>>30, 10) + " GiB" }
