package tui

import (
	"slices"
	"strings"
)

// act is what a key asks for.
type act uint8

// Acts of several scopes.
const (
	actNone act = iota
	actQuit
	actHelp
	actRefresh
	actOffers // pages
	actLeases
	actReceipts
	actPeers
	actMoney
	actBack
	actUp
	actDown
	actPageUp
	actPageDown
	actTop
	actBottom
	actLeft
	actRight
	actRent // the offer that is chosen
	actDetail
	actFilter
	actSort
	actReverse
	actApply
	actComplete
	actReview // the form
	actYes
	actNo
	actLog
	actStop
	actKill
	actBills
	actCopy
	actExport
	actShell // inside a lease
	actOpen
	actFiles
	actKeep
	actResume
	actRemove
	actExtend
	actPay // money
	actAccount
	actFacets // the market
	actPlan
	actJob
	actGive
	actToggle
	actSave
	actPing
)

// scope is where the user is; it decides what a key means.
type scope uint8

// Scopes. Those below inFilter are pages.
const (
	inOffers scope = iota
	inLeases
	inReceipts
	inPeers
	inMoney
	inDetail
	inLog
	inAccount
	inAway // there is no agent, and nothing is known of it
	inFilter
	inForm
	inPay
	inPrompt
	inDialog
	inHelp
	inFacets
	inPlan
)

// binding is one line of the key table: footers, the help screen and the meaning of keys are all made of it.
type binding struct {
	keys []string // as Bubble Tea names them
	show string   // how people name the key
	verb string   // for the footer; empty keeps it out
	help string
	do   act
}

func bind(do act, keys, show, verb, help string) binding {
	return binding{keys: strings.Fields(keys), show: show, verb: verb, help: help, do: do}
}

// moves are the keys of every list.
func moves(verb string) []binding {
	return []binding{
		bind(actUp, "up k", "↑↓", verb, "up and down; k and j do it too"),
		bind(actDown, "down j", "", "", ""),
		bind(actPageDown, "pgdown ctrl+d", "pgdn pgup", "", "a page down and up; ctrl+d and ctrl+u do it too"),
		bind(actPageUp, "pgup ctrl+u", "", "", ""),
		bind(actTop, "home g", "g G", "", "to the beginning and to the end"),
		bind(actBottom, "end G", "", "", ""),
	}
}

// everywhere are the keys of every page.
func everywhere() []binding {
	return []binding{
		bind(actHelp, "?", "?", "help", "this list of keys"),
		bind(actQuit, "q ctrl+c", "q", "quit", "leave; jobs go on, the agent keeps them"),
		bind(actOffers, "1", "1-5", "", "market, leases, receipts, peers, money"),
		bind(actLeases, "2", "", "", ""),
		bind(actReceipts, "3", "", "", ""),
		bind(actPeers, "4", "", "", ""),
		bind(actMoney, "5", "", "", ""),
		bind(actRefresh, "r ctrl+r", "r", "", "ask again now; where the agent is gone, start it"),
	}
}

// own returns the keys that a scope adds, the most important first.
func own(s scope) []binding {
	switch s {
	case inOffers, inDetail, inFacets, inPlan:
		return ownOfOffers(s)
	case inAway:
		return []binding{bind(actRefresh, "r ctrl+r", "r", "look again", "look for the agent now, and start it where that is possible")}
	case inFilter:
		return []binding{
			bind(actApply, "enter", "enter", "apply", "keep the filter"),
			bind(actComplete, "tab", "tab", "complete", "complete the name of a field, or take the nearest one"),
			bind(actBack, "esc", "esc", "undo", "back to the filter as it was"),
			bind(actQuit, "ctrl+c", "ctrl+c", "", "leave"),
		}
	case inForm:
		return []binding{
			bind(actReview, "enter", "enter", "review", "see the price and confirm"),
			bind(actDown, "tab down", "tab", "next", "next field; ↑ and ↓ do it too"),
			bind(actUp, "shift+tab up", "", "", ""),
			bind(actLeft, "left", "←→", "change", "change a choice"),
			bind(actRight, "right", "", "", ""),
			bind(actBack, "esc", "esc", "back", "back; what was typed is kept"),
			bind(actQuit, "ctrl+c", "ctrl+c", "", "leave"),
		}
	case inPrompt:
		return []binding{
			bind(actReview, "enter", "enter", "do it", "do it"),
			bind(actDown, "tab down", "tab", "next", "next field; ↑ and ↓ do it too"),
			bind(actUp, "shift+tab up", "", "", ""),
			bind(actLeft, "left", "←→", "change", "change a choice"),
			bind(actRight, "right", "", "", ""),
			bind(actBack, "esc", "esc", "back", "back; nothing is done"),
			bind(actQuit, "ctrl+c", "ctrl+c", "", "leave"),
		}
	case inDialog:
		return []binding{
			bind(actYes, "y", "y", "yes", "do it"),
			bind(actNo, "n esc", "n", "no", "leave it as it is"),
			bind(actQuit, "ctrl+c", "ctrl+c", "", "leave"),
		}
	case inHelp:
		return slices.Concat([]binding{
			bind(actBack, "esc q ?", "esc", "back", "back"),
			bind(actQuit, "ctrl+c", "ctrl+c", "", "leave"),
		}, moves("scroll"))
	}
	return ownOfJobs(s)
}

// ownOfOffers are the keys of choosing an offer.
func ownOfOffers(s scope) []binding {
	switch s {
	case inOffers:
		return slices.Concat([]binding{
			bind(actRent, "enter", "enter", "rent", "rent from this offer: shows the whole price first"),
			bind(actFilter, "/", "/", "filter", "search, such as gpu_ram>=24 dph<0.60"),
			bind(actFacets, "f", "f", "choose", "choose cards, countries, prices... from what there is, and your saved queries"),
			bind(actDetail, "d space", "d", "details", "why it stands there: what you checked, what is only claimed, what you can lose"),
			bind(actPlan, "P", "P", "plan", "what a budget buys: the cheapest, the quickest, the safest"),
			bind(actSort, "s", "s", "sort", "sort by the next key"),
			bind(actJob, "J", "J", "", "your job, for which every price is told: cards, time, disk, traffic"),
			bind(actGive, "N", "N", "", "give the rig's owner a name of your own"),
			bind(actReverse, "S", "S", "", "turn the order round"),
			bind(actBack, "esc", "esc", "", "clear the filter"),
		}, moves("move"))
	case inDetail:
		return slices.Concat([]binding{
			bind(actRent, "enter", "enter", "rent", "rent from this offer: shows the whole price first"),
			bind(actBack, "esc d space", "esc", "back", "back to the list"),
			bind(actCopy, "y", "y", "copy id", "copy the offer's id"),
			bind(actGive, "N", "N", "name", "give the rig's owner a name of your own"),
		}, moves("scroll"))
	case inFacets:
		return slices.Concat([]binding{
			bind(actToggle, "enter space", "enter", "choose", "add the clause to the filter, or take it out again"),
			bind(actSave, "w", "w", "save", "keep the filter under a name"),
			bind(actBack, "esc f q", "esc", "back", "back to the list; the filter stays"),
			bind(actQuit, "ctrl+c", "ctrl+c", "", "leave"),
		}, moves("move"))
	case inPlan:
		return slices.Concat([]binding{
			bind(actRent, "enter", "enter", "rent", "rent this one: shows the whole price first"),
			bind(actPlan, "P", "P", "again", "another budget"),
			bind(actBack, "esc q", "esc", "back", "back to the list"),
			bind(actQuit, "ctrl+c", "ctrl+c", "", "leave"),
		}, moves("move"))
	}
	return nil
}

func ownOfJobs(s scope) []binding {
	switch s {
	case inLeases:
		return slices.Concat([]binding{
			bind(actLog, "enter l", "enter", "log", "the job's whole output"),
			bind(actStop, "x", "x", "stop", "end the job: SIGTERM, and after the notice SIGKILL"),
			bind(actPay, "p", "p", "pay", "pay what the rig asks for, or what you owe it; shows what is waiting for you"),
			bind(actBills, "b", "b", "receipts", "the receipts of this lease"),
			bind(actShell, "s", "s", "shell", "a shell inside the job; ~. at the beginning of a line leaves it"),
			bind(actOpen, "o", "o", "open", "carry a port of the job to this machine, and copy the link"),
			bind(actFiles, "f", "f", "files", "copy files into the job or out of it"),
			bind(actExtend, "e", "e", "", "add time and money to the lease"),
			bind(actKeep, "K", "K", "", "end the job and keep its disk, for the disk's price"),
			bind(actResume, "R", "R", "", "start the job of a kept disk again"),
			bind(actRemove, "D", "D", "", "destroy a kept disk and end the lease"),
			bind(actKill, "X", "X", "", "end the job at once"),
			bind(actCopy, "y", "y", "copy id", "copy the lease's id"),
		}, moves("move"))
	case inLog:
		return slices.Concat([]binding{
			bind(actBack, "esc l enter", "esc", "back", "back to the leases"),
			bind(actStop, "x", "x", "stop", "end the job"),
			bind(actShell, "s", "s", "shell", "a shell inside the job"),
		}, moves("scroll"))
	case inReceipts:
		return slices.Concat([]binding{
			bind(actExport, "e", "e", "export", "write everything both sides signed into a file that `haggle verify` checks"),
			bind(actLeft, "left h", "←→", "lease", "the lease before and the one after"),
			bind(actRight, "right", "", "", ""),
			bind(actCopy, "y", "y", "copy id", "copy the lease's id"),
		}, moves("move"))
	case inPeers:
		return slices.Concat([]binding{
			bind(actPing, "p", "p", "ping", "call the chosen program: by which way it is reached, and how fast"),
			bind(actCopy, "y", "y", "copy key", "copy the chosen program's key"),
		}, moves("move"))
	case inMoney:
		return slices.Concat([]binding{
			bind(actAccount, "enter l", "enter", "account", "the leases and the payments of this account"),
			bind(actExport, "e", "e", "invoice", "write the account's invoice into a file"),
			bind(actCopy, "y", "y", "copy key", "copy the owner's key"),
		}, moves("move"))
	case inAccount:
		return slices.Concat([]binding{
			bind(actBack, "esc l enter", "esc", "back", "back to the accounts"),
			bind(actExport, "e", "e", "invoice", "write this invoice into a file"),
			bind(actCopy, "y", "y", "copy key", "copy the owner's key"),
		}, moves("move"))
	case inPay:
		return slices.Concat([]binding{
			bind(actCopy, "y", "y", "copy", "copy what the code holds, or the text where there is none"),
			bind(actBack, "esc p q", "esc", "back", "back; the rig waits on"),
			bind(actQuit, "ctrl+c", "ctrl+c", "", "leave"),
		}, moves("scroll"))
	}
	return nil
}

// bindings returns every key of a scope.
func bindings(s scope) []binding {
	if s <= inAway {
		return slices.Concat(own(s), everywhere())
	}
	return own(s)
}

// meaning returns what a key asks for in a scope.
func meaning(s scope, key string) act {
	for _, b := range bindings(s) {
		if slices.Contains(b.keys, key) {
			return b.do
		}
	}
	return actNone
}

// named puts the name of a key into characters that the terminal has.
func (t theme) named(show string) string {
	if plain(show) {
		return show
	}
	return strings.NewReplacer("↑↓", t.sign.updown, "←→", t.sign.sides, "↑", "up", "↓", "down").Replace(show)
}

// needsRow reports whether an act is one on a row of a list.
func needsRow(do act) bool {
	switch do {
	case actUp, actLeft, actRent, actDetail, actSort, actCopy, actLog, actStop, actBills, actExport, actShell, actOpen, actFiles, actPay, actAccount, actPing, actGive, actToggle:
		return true
	}
	return false
}

// footer names the keys of a scope that fit, the most important first. Help and quit have reserved places. Keys that need a
// row are not named where there is none.
func (t theme) footer(s scope, rows bool, columns int) string {
	text, used := "", 0
	put := func(b binding, reserve int) bool {
		show := t.named(b.show)
		w := span(show) + 1 + len(b.verb)
		if used > 0 {
			w += 2
		}
		if b.verb == "" || used+w+reserve > columns {
			return false
		}
		if used > 0 {
			text += "  "
		}
		text += t.accent.on(show) + " " + t.faint.on(b.verb)
		used += w
		return true
	}
	last, reserve := everywhere()[:2], 0
	if s > inAway {
		last = nil
	}
	for _, b := range last {
		reserve += 3 + len(b.show) + len(b.verb)
	}
	for _, b := range own(s) {
		if rows || !needsRow(b.do) {
			put(b, reserve)
		}
	}
	for _, b := range last {
		put(b, 0)
	}
	return line(text, columns)
}
