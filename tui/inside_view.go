package tui

import (
	"strconv"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// called is how a lease is named: by its name, where it has one.
func called(v *view.Lease) string {
	if v.Name != "" {
		return clean(v.Name)
	}
	return short(v.ID)
}

// portName names a port.
func portName(d view.Port) string {
	if d.Name == "" {
		return strconv.Itoa(int(d.Port))
	}
	return clean(d.Name) + "=" + strconv.Itoa(int(d.Port))
}

// inside says what there is of a lease beside its cards and its money, a line each; what there is not, is left out.
func (l *leases) inside(one view.Lease, width int) []string {
	var out []string
	if one.State == string(market.JobPaused) {
		text := "the disk is kept"
		if one.KeptMs > 0 {
			text += ", " + lasting(one.KeptMs) + " so far"
		}
		out = append(out, text+"; R starts the job again, D destroys the disk")
	}
	if up := one.Uploading; up != nil {
		out = append(out, "sending "+orFiles(up.What)+" "+l.bar(*up, width))
	}
	if p, going := l.copies[one.ID]; going && one.ID != "" {
		out = append(out, "copying "+l.bar(p, width))
	}
	var about []string
	if one.Attempt > 0 {
		about = append(about, "start "+strconv.Itoa(one.Attempt+1))
	}
	if len(one.Labels) > 0 {
		about = append(about, "labels "+clean(strings.Join(one.Labels, ", ")))
	}
	if len(one.Ports) > 0 {
		var names []string
		for _, d := range one.Ports {
			names = append(names, portName(d))
		}
		about = append(about, "ports "+strings.Join(names, ", "))
	}
	if n := len(one.Checkpoints); n > 0 {
		last := one.Checkpoints[n-1]
		about = append(about, plural(n, "checkpoint", "checkpoints")+", the newest "+l.clock(last.AtMs)+", "+thousands(last.Bytes, "B"))
	}
	if one.Resumed != "" {
		about = append(about, "began from a checkpoint of "+short(one.Resumed))
	}
	var texts []string
	if len(about) > 0 {
		texts = append(texts, strings.Join(about, "  "))
	}
	for _, link := range l.links[one.ID] {
		texts = append(texts, "open: "+link)
	}
	for _, text := range append(texts, l.collected(one)...) {
		out = append(out, fit(text, width, false, l.look.sign.more))
	}
	return out
}

// collected says what came home, and what did not yet, in two lines at most.
func (l *leases) collected(one view.Lease) []string {
	const most = 2
	var out []string
	for i, c := range one.Collects {
		if i == most {
			out = append(out, "and "+strconv.Itoa(len(one.Collects)-most)+" more to collect")
			break
		}
		text := "collect " + clean(c.Remote) + " " + l.look.sign.next + " " + clean(c.Local)
		switch {
		case c.Done && c.Error == "":
			text += ": " + plural(int(c.Files), "file", "files") + ", " + thousands(c.Bytes, "B")
		case c.Error != "":
			text += ": " + clean(c.Error)
		case !open(one):
			text += ": on its way"
		}
		out = append(out, text)
	}
	return out
}

// bar shows how far a transfer is.
func (l *leases) bar(p view.Progress, width int) string {
	if p.Scanning || p.Bytes == 0 {
		return "(counting, " + plural(int(p.Files), "file", "files") + ", " + thousands(p.Bytes, "B") + ")"
	}
	permille := int64(float64(p.BytesDone) / float64(p.Bytes) * 1000)
	text := l.look.gauge(permille) + " " + strconv.FormatInt(permille/10, 10) + " %  " + thousands(p.BytesDone, "B") + " of " + thousands(p.Bytes, "B")
	if p.Files > 1 && width >= 60 {
		text += ", " + strconv.FormatInt(p.FilesDone, 10) + " of " + strconv.FormatInt(p.Files, 10) + " files"
	}
	return text
}

func orFiles(what string) string {
	if what == "" {
		return "files"
	}
	return clean(what)
}
