package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
	"haggle/market"
)

type (
	// receiptsMsg answers a question for the receipts of a lease.
	receiptsMsg struct {
		lease string
		list  []view.Receipt
		err   error
	}
	// exportMsg is the outcome of writing a file.
	exportMsg struct {
		path   string
		bytes  int
		judged bool // it is evidence
		err    error
	}
)

// receipts is the page of what both sides signed, for one lease at a time.
type receipts struct {
	*kit
	grid
	lease  view.Lease // whose receipts are shown
	list   []view.Receipt
	known  bool
	err    error
	asking bool
}

// turn shows another lease's receipts, or the newest of the same lease.
func (r *receipts) turn(l view.Lease) tea.Cmd {
	same := l.ID == r.lease.ID
	stale := !same || l.Receipts != r.lease.Receipts || l.Debt != r.lease.Debt || !r.known
	r.lease = l
	if !same {
		r.list, r.known, r.err, r.grid = nil, false, nil, grid{}
	}
	if !stale || l.ID == "" {
		return nil
	}
	return r.load()
}

// load asks for the receipts. One question is under way at a time.
func (r *receipts) load() tea.Cmd {
	if r.asking || r.lease.ID == "" {
		return nil
	}
	r.asking = true
	id := r.lease.ID
	return r.ask(func(ctx context.Context) tea.Msg {
		list, err := r.Market.Receipts(ctx, id)
		return receiptsMsg{id, list, err}
	})
}

// take shows receipts. It reports whether to ask again, for another lease is shown by now.
func (r *receipts) take(m receiptsMsg) (again bool) {
	r.asking = false
	if m.lease != r.lease.ID {
		return true
	}
	r.err = m.err
	if errors.Is(m.err, market.NewError(market.CodeNoReceipts)) {
		r.err = nil
	}
	if r.err == nil {
		atEnd := r.grid.at >= len(r.list)-1
		r.list, r.known = m.list, true
		if atEnd {
			r.grid.to(len(r.list)-1, len(r.list))
		}
	}
	return false
}

// neighbour returns the lease with a contract that stands before or after the one that is shown.
func (r *receipts) neighbour(all []view.Lease, by int) (view.Lease, bool) {
	signed := slices.DeleteFunc(slices.Clone(all), func(l view.Lease) bool { return l.ID == "" })
	if len(signed) == 0 {
		return view.Lease{}, false
	}
	at := slices.IndexFunc(signed, func(l view.Lease) bool { return l.ID == r.lease.ID })
	return signed[max(0, min(len(signed)-1, at+by))], true
}

// export writes the evidence of the lease into a file, whole or not at all.
func (r *receipts) export() tea.Cmd {
	id, folder := r.lease.ID, r.Exports
	return r.ask(func(ctx context.Context) tea.Msg {
		data, err := r.Market.Evidence(ctx, id)
		if err != nil {
			return exportMsg{err: err}
		}
		m := export(folder, "lease-"+short(id)+".evidence", data)
		m.judged = true
		return m
	})
}

// export writes a file into a folder, whole or not at all.
func export(folder, name string, data []byte) exportMsg {
	path, err := filepath.Abs(filepath.Join(folder, name))
	if err == nil {
		err = replaceFile(path, data)
	}
	if err != nil {
		err = market.NewError(market.CodeBadRequest, "why", fmt.Sprintf("the file is not written: %v", err))
	}
	return exportMsg{path: path, bytes: len(data), err: err}
}

// replaceFile writes a file whole or leaves the old one.
func replaceFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".haggle-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// do carries out what a key asks for within the list.
func (r *receipts) do(a act) (handled bool) {
	by, moved := r.grid.step(a, len(r.list))
	if moved {
		r.grid.move(by, len(r.list))
	}
	return moved
}

// render shows the page.
func (r *receipts) render(width, height int) []string {
	if r.lease.ID == "" {
		return block(indent(r.nothing(width-4, "You have no receipts.", "Receipts come with the first job: 1 shows the market.")), width, height)
	}
	s := r.look.sign
	head := " " + r.look.accent.on("<") + " " + r.look.strong.on(short(r.lease.ID)) + " " + r.look.accent.on(">") + " " +
		strconv.Itoa(r.lease.Slots) + " " + s.times + " " + model(clean(r.lease.Model))
	if r.lease.Simulated {
		head += " " + r.look.warn.on(badgeSimulated)
	}
	out := []string{line(head+" on "+clean(r.lease.Rig), width)}
	out = append(out, line(" "+r.sum(width), width))
	height -= len(out)
	switch {
	case r.err != nil:
		message, hint := explain(r.err)
		return append(out, block(indent(r.nothing(width-4, s.bad+" "+message, hint)), width, height)...)
	case !r.known:
		return append(out, block(indent(r.nothing(width-4, "", "Asking for the receipts"+s.more)), width, height)...)
	case len(r.list) == 0:
		return append(out, block(indent(r.nothing(width-4, "This lease has no receipt yet.", "The first comes 10 seconds after the job's start.")), width, height)...)
	}
	return append(out, show(&r.grid, r.look, r.columns(), len(r.list), func(i int) *view.Receipt { return &r.list[i] }, width, height)...)
}

func (r *receipts) nothing(width int, strong, faint string) (out []string) {
	for _, l := range wrap(strong, width) {
		out = append(out, r.look.strong.on(l))
	}
	out = append(out, "")
	for _, l := range wrap(faint, width) {
		out = append(out, r.look.faint.on(l))
	}
	return out
}

// sum says what the lease costs as both signed it, and whether that is the end.
func (r *receipts) sum(width int) string {
	s := r.look.sign
	text := "signed by both: " + money(r.lease.Signed)
	switch r.lease.Debt {
	case string(market.DebtFinal):
		return text + "  " + r.look.good.on(s.ok+" final")
	case string(market.DebtDisputed):
		return text + "  " + r.look.bad.on(s.bad+" disputed")
	}
	more := ""
	if width >= 60 {
		more = ", more receipts come"
	}
	return text + "  " + r.look.accent.on(s.later+" open"+more)
}

// bothSigned reports whether a receipt counts.
func bothSigned(v *view.Receipt) bool {
	return slices.Contains(v.SignedBy, string(market.RoleRig)) && slices.Contains(v.SignedBy, string(market.RoleRenter))
}

func (r *receipts) columns() []column[*view.Receipt] {
	s := r.look.sign
	signed := func(v *view.Receipt) string {
		if bothSigned(v) {
			return s.ok + " both"
		}
		return s.later + " " + strings.Join(v.SignedBy, ", ") + " only"
	}
	color := func(v *view.Receipt) paint {
		if bothSigned(v) {
			return r.look.good
		}
		return r.look.warn
	}
	end := func(v *view.Receipt) string {
		if v.Exit == nil {
			return ""
		}
		return string(v.Exit.Reason) + ", exit " + strconv.FormatInt(v.Exit.Code, 10)
	}
	return []column[*view.Receipt]{
		{title: "#", width: 4, right: true, cell: func(v *view.Receipt) string { return strconv.FormatUint(uint64(v.Seq), 10) }},
		{title: "SIGNED", width: 6, grow: 7, cell: signed, paint: color},
		{title: "KIND", rank: 3, width: 8, cell: func(v *view.Receipt) string { return v.Kind }},
		{title: "AT", rank: 4, width: 8, cell: func(v *view.Receipt) string { return time.UnixMilli(v.WallMs).UTC().Format("15:04:05") }},
		{title: "BILLED", rank: 1, width: 7, right: true, cell: func(v *view.Receipt) string { return lasting(v.BilledMs) }},
		{title: "UNBILLED", rank: 6, width: 8, right: true, cell: func(v *view.Receipt) string { return lasting(v.UnbilledMs) }},
		{title: "CARDS", rank: 5, width: 9, right: true, cell: func(v *view.Receipt) string { return v.Bill.Slot.String() }},
		{title: "DISK", rank: 7, width: 8, right: true, cell: func(v *view.Receipt) string { return v.Bill.Disk.String() }},
		{title: "TRAFFIC", rank: 8, width: 8, right: true, cell: func(v *view.Receipt) string { return (v.Bill.In + v.Bill.Out).String() }},
		{title: "TOTAL", width: 12, grow: 4, right: true, cell: func(v *view.Receipt) string { return money(v.Total) }, paint: func(*view.Receipt) paint { return r.look.strong }},
		{title: "PAID", rank: 9, width: 9, right: true, cell: func(v *view.Receipt) string { return v.Paid.Text }},
		{title: "END", rank: 2, width: 17, grow: 3, cell: end},
		{title: "NOT BILLED", rank: 10, width: 16, grow: 40, cell: func(v *view.Receipt) string { return unbilled(v.Unbilled) }},
	}
}
