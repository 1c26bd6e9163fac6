package tui

import (
	"strconv"

	"haggle/internal/view"
	"haggle/market"
)

// mostAlerts bounds how many alerts wait to be seen; the oldest are let go.
const mostAlerts = 64

// warning is an alert that waits to be seen.
type warning struct {
	key, text string
	lease     string // empty: it is about all leases together
}

// alerts are what the user should see and has not: they stay until the page that they are about was on the screen.
type alerts struct {
	list []warning
	seen map[string]bool // by key, of those that are still told
	top  string          // the newest, for the status bar; empty where all are seen
}

// take learns which alerts there are now.
func (a *alerts) take(all []view.Alert, list []view.Lease) {
	var now []warning
	put := func(w warning) { now = append(now, w) }
	told := map[string]bool{}
	one := func(x view.Alert) {
		key := x.Scope + "/" + x.Lease + "/" + strconv.Itoa(x.Percent) + "/" + strconv.FormatInt(x.At, 10)
		if !told[key] {
			told[key] = true
			put(warning{key, clean(x.Text), x.Lease})
		}
	}
	for _, x := range all {
		one(x)
	}
	for i := range list {
		l := &list[i]
		if !open(*l) && l.Pay == nil {
			continue
		}
		if open(*l) {
			for _, x := range l.Alerts {
				one(x)
			}
		}
		if text := stuck(l); text != "" {
			put(warning{"pay/" + l.ID + "/" + strconv.FormatUint(uint64(l.Pay.Asked.Slice), 10) + "/" + l.Pay.Asked.State, text, l.ID})
		}
	}
	kept := map[string]bool{}
	a.list = a.list[:0]
	for _, w := range now {
		if a.seen[w.key] {
			kept[w.key] = true
		} else {
			a.list = append(a.list, w)
		}
	}
	a.seen, a.list = kept, a.list[max(0, len(a.list)-mostAlerts):]
	a.show()
}

// stuck says that a payment needs the user; empty where it does not.
func stuck(l *view.Lease) string {
	if l.Pay == nil || l.Pay.Asked == nil {
		return ""
	}
	amount := money(l.Pay.Asked.Amount)
	switch l.Pay.Asked.State {
	case view.SliceWaiting:
		return "lease " + called(l) + " waits for you to pay " + amount
	case view.SliceHeld:
		return "a budget holds back " + amount + " for lease " + called(l)
	case view.SliceFailed:
		return "paying " + amount + " for lease " + called(l) + " failed"
	}
	return ""
}

// show puts the newest into the status bar.
func (a *alerts) show() {
	a.top = ""
	if n := len(a.list); n > 0 {
		a.top = a.list[n-1].text
		if n > 1 {
			a.top += "; and " + strconv.Itoa(n-1) + " more"
		}
	}
}

// looked takes note that what the page shows was seen.
func (m *Model) looked() {
	if len(m.alerts.list) == 0 || m.scope() != m.page {
		return
	}
	current, _ := m.leases.current()
	left := m.alerts.list[:0]
	for _, w := range m.alerts.list {
		if w.lease == "" && m.page == inMoney || w.lease != "" && m.page == inLeases && w.lease == current.ID {
			m.alerts.seen[w.key] = true
		} else {
			left = append(left, w)
		}
	}
	m.alerts.list = left
	m.alerts.show()
}

// owing is what of a lease is used and not paid.
func owing(l view.Lease) market.Micro {
	owed := l.Spent.Micro
	if !open(l) {
		owed = l.Signed.Micro
	}
	if l.Pay != nil {
		owed -= max(l.Pay.Paid.Micro, l.Pay.Sent.Micro)
	}
	return market.Micro(max(0, owed))
}
