//go:build linux

package jobnet

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// table is all that the text of the nft table is made of. It is a value: the same table is the same text.
type table struct {
	name, prefix string
	pool         netip.Prefix
	connected    []netip.Prefix // networks that the rig is in, beside the reserved ones
	reject       []netip.Prefix // what its owner rejects
	guarded      []string       // interfaces that forward only because of the jobs
	jobs         []tableJob     // by name
	profile      Profile
	month        string // 2026-11
	monthUsed    uint64
	spentCap     int64 // the cap that the kernel has seen used up, 0 for none
	without      []string
}

// tableJob is one job in the table.
type tableJob struct {
	id, link string
	addr     netip.Addr
	in, out  uint64 // what its counters start from
}

func (t *table) has(protection string) bool { return !slices.Contains(t.without, protection) }

// spent says that the month's traffic is used up.
func (t *table) spent() bool {
	most := t.profile.MonthlyBytes
	return t.has(MonthlyCap) && most > 0 && (t.monthUsed >= uint64(most) || t.spentCap >= most)
}

// script is what nft reads to put the table in place of the one before, at once.
func (t *table) script() string {
	return fmt.Sprintf("table inet %s\ndelete table inet %s\n%s", t.name, t.name, t.text(true))
}

// text is the table as a person reads it; without counts it stays the same while traffic flows.
func (t *table) text(counts bool) string {
	w := &tableWriter{}
	w.open("table inet %s", t.name)
	w.line(`comment "networks of jobs: the internet, and nothing of the house"`)
	t.objects(w, counts)
	t.sets(w)
	t.arriving(w)
	t.forward(w)
	t.rigItself(w)
	w.open("chain postrouting")
	w.line("type nat hook postrouting priority srcnat; policy accept;")
	w.line(`ip saddr %s oifname != "%s*" masquerade comment "the internet sees the rig's address"`, t.pool, t.prefix)
	w.close()
	w.close()
	return w.String()
}

// objects writes the counters of each job, and the month's allowance.
func (t *table) objects(w *tableWriter, counts bool) {
	if t.capped() {
		w.gap()
		used := uint64(0)
		if counts {
			used = t.monthUsed
		}
		w.line("quota month { over %d bytes used %d bytes }", t.profile.MonthlyBytes, used)
	}
	for _, j := range t.jobs {
		if !counts {
			j.in, j.out = 0, 0
		}
		w.gap()
		w.line("counter %s { packets 0 bytes %d }", counterIn(j.id), j.in)
		w.line("counter %s { packets 0 bytes %d }", counterOut(j.id), j.out)
	}
}

// capped says that the allowance has to be counted: there is one, and it is not spent.
func (t *table) capped() bool { return t.has(MonthlyCap) && t.profile.MonthlyBytes > 0 && !t.spent() }

func counterIn(job string) string  { return "in-" + job }
func counterOut(job string) string { return "out-" + job }

// sets writes who the jobs are and what they must not reach.
func (t *table) sets(w *tableWriter) {
	var jobs, in, out, ranges, guarded []string
	for _, j := range t.jobs {
		jobs = append(jobs, j.element())
		in = append(in, fmt.Sprintf("%s : %q", j.addr, counterIn(j.id)))
		out = append(out, fmt.Sprintf("%s : %q", j.addr, counterOut(j.id)))
	}
	w.set("set jobs", "each job's interface, and the one address that it has", "type ifname . ipv4_addr", jobs)
	w.set("map received", "whose counter takes what comes in", "type ipv4_addr : counter", in)
	w.set("map sent", "whose counter takes what goes out", "type ipv4_addr : counter", out)
	if t.has(ReservedRanges) {
		for _, r := range reservedList() {
			ranges = append(ranges, fmt.Sprintf("%s comment %q", r.prefix, r.why))
		}
		if !covered(t.pool.Addr(), reservedRanges()) {
			ranges = append(ranges, fmt.Sprintf("%s comment %q", t.pool, "jobs' own"))
		}
		w.set("set reserved", "addresses that are not the internet", "type ipv4_addr; flags interval", ranges)
	}
	if t.has(ConnectedSubnets) {
		w.set("set connected", "public networks that the rig is in", "type ipv4_addr; flags interval", prefixes(t.connected))
	}
	if t.has(OwnerRejects) {
		w.set("set rejected", "what the rig's owner rejects", "type ipv4_addr; flags interval", prefixes(t.reject))
	}
	if t.has(RouteGuard) {
		for _, name := range t.guarded {
			guarded = append(guarded, fmt.Sprintf("%q", name))
		}
		w.set("set guarded", "interfaces that forward for jobs only", "type ifname", guarded)
	}
	if t.has(ConnectionRate) {
		w.set("set opening", "how fast each job opens connections", "type ipv4_addr; flags dynamic; timeout 1m; size 65535", nil)
	}
	if t.has(ConnectionCount) {
		w.set("set holding", "how many connections each job has", "type ipv4_addr; flags dynamic; size 65535", nil)
	}
}

func (j tableJob) element() string { return fmt.Sprintf("%q . %s comment %q", j.link, j.addr, j.id) }

func prefixes(list []netip.Prefix) []string {
	var s []string
	for _, p := range ipv4Only(list) {
		s = append(s, p.String())
	}
	return s
}

// arriving writes what is judged before anyone rewrites an address, so that a port that another program publishes on the rig
// is the rig and not what lies behind.
func (t *table) arriving(w *tableWriter) {
	w.open("chain arriving")
	w.line("type filter hook prerouting priority mangle - 10; policy accept;")
	w.line(`iifname "%s*" goto sending`, t.prefix)
	w.close()
	w.open("chain sending")
	if t.has(NoIPv6) {
		w.line(`meta nfproto ipv6 counter drop comment "jobs have IPv4 only"`)
	}
	if t.has(OwnAddress) {
		w.line(`meta nfproto ipv4 iifname . ip saddr != @jobs counter drop comment "nobody sends in another's name"`)
	}
	if t.has(RigItself) {
		w.line(`meta nfproto ipv4 fib daddr type != unicast counter goto refuse comment "the rig itself, on any of its addresses"`)
	}
	w.close()
	w.open("chain refuse")
	w.line(`reject with icmp admin-prohibited comment "at once, so that nobody waits"`)
	w.close()
}

// forward writes what passes between jobs and the internet.
func (t *table) forward(w *tableWriter) {
	w.open("chain forward")
	w.line("type filter hook forward priority filter - 10; policy accept;")
	w.line(`iifname "%s*" goto leaving`, t.prefix)
	w.line(`oifname "%s*" goto entering`, t.prefix)
	if t.has(RouteGuard) {
		// What is established, another rig's job began, or a program that switched on forwarding for its own interface.
		w.line(`meta nfproto ipv4 iifname @guarded ct state new,invalid,untracked counter drop comment "only jobs are routed"`)
	}
	w.close()
	t.leaving(w)
	w.open("chain entering")
	if t.has(NoIPv6) {
		w.line("meta nfproto ipv6 counter drop")
	}
	if t.has(NothingInbound) {
		w.line("ct state established,related goto enter")
		w.line(`counter drop comment "nothing new comes to a job"`)
	} else {
		w.line("goto enter")
	}
	w.close()
	w.open("chain enter")
	t.allowance(w)
	w.line("counter name ip daddr map @received accept")
	w.close()
	if t.has(MonthlyCap) && t.profile.MonthlyBytes > 0 {
		w.open("chain spent")
		w.line(`meta l4proto tcp counter reject with tcp reset comment "the traffic of %s is used up"`, t.month)
		w.line("counter reject with icmp admin-prohibited")
		w.close()
	}
}

func (t *table) leaving(w *tableWriter) {
	w.open("chain leaving")
	// Also what is established is judged: the rig may have come into another network since.
	for _, s := range []struct{ set, protection string }{
		{"reserved", ReservedRanges}, {"connected", ConnectedSubnets}, {"rejected", OwnerRejects},
	} {
		if t.has(s.protection) {
			w.line("ip daddr @%s counter goto refuse", s.set)
		}
	}
	if t.has(NothingInbound) {
		w.line(`oifname "%s*" counter goto refuse comment "not another job"`, t.prefix)
	}
	if t.has(BlockedPorts) && len(t.profile.BlockedPorts) > 0 {
		var ports []string
		for _, p := range slices.Compact(slices.Sorted(slices.Values(t.profile.BlockedPorts))) {
			ports = append(ports, fmt.Sprint(p))
		}
		w.line("meta l4proto { tcp, udp } th dport { %s } counter goto refuse", strings.Join(ports, ", "))
	}
	w.line("ct state invalid,untracked counter drop")
	w.line("ct state established,related goto leave")
	if t.has(ConnectionRate) {
		w.line(`update @opening { ip saddr limit rate over %d/second burst %d packets } counter drop comment "no scans"`,
			t.profile.NewConnsPerSecond, t.profile.NewConnsBurst)
	}
	if t.has(ConnectionCount) {
		w.line(`add @holding { ip saddr ct count over %d } counter drop comment "the household's router has only so much memory"`,
			t.profile.MaxConns)
	}
	w.line("goto leave")
	w.close()
	w.open("chain leave")
	t.allowance(w)
	if t.has(LowPriority) {
		w.line(`ip dscp set cs1 comment "the household comes first"`)
	}
	w.line("counter name ip saddr map @sent accept")
	w.close()
}

// allowance writes the rule that lets nothing pass once the month's traffic is used up. The kernel counts, so the bound holds
// to the packet; once it is known to be spent, there is nothing left to count.
func (t *table) allowance(w *tableWriter) {
	switch {
	case t.spent():
		w.line(`goto spent comment "the traffic of %s is used up"`, t.month)
	case t.capped():
		w.line(`quota name "month" goto spent comment "the traffic of %s"`, t.month)
	}
}

// rigItself writes what stands between a job and the rig's own programs.
func (t *table) rigItself(w *tableWriter) {
	if t.has(RigItself) {
		w.open("chain input")
		w.line("type filter hook input priority filter - 10; policy accept;")
		w.line(`iifname "%s*" counter drop comment "the rig listens to no job"`, t.prefix)
		w.close()
	}
	if t.has(NothingInbound) {
		w.open("chain output")
		w.line("type filter hook output priority filter - 10; policy accept;")
		w.line(`oifname "%s*" ct state established,related accept comment "refusals"`, t.prefix)
		w.line(`oifname "%s*" counter drop comment "the rig calls no job"`, t.prefix)
		w.close()
	}
}

// adding is what nft reads to let a job in without touching the others.
func (t *table) adding(j tableJob) string {
	var b strings.Builder
	fmt.Fprintf(&b, "add counter inet %s %s { packets 0 bytes %d }\n", t.name, counterIn(j.id), j.in)
	fmt.Fprintf(&b, "add counter inet %s %s { packets 0 bytes %d }\n", t.name, counterOut(j.id), j.out)
	fmt.Fprintf(&b, "add element inet %s jobs { %s }\n", t.name, j.element())
	fmt.Fprintf(&b, "add element inet %s received { %s : %q }\n", t.name, j.addr, counterIn(j.id))
	fmt.Fprintf(&b, "add element inet %s sent { %s : %q }\n", t.name, j.addr, counterOut(j.id))
	return b.String()
}

// removing is what nft reads to take a job out without touching the others.
func (t *table) removing(j tableJob) string {
	var b strings.Builder
	fmt.Fprintf(&b, "delete element inet %s jobs { %q . %s }\n", t.name, j.link, j.addr)
	fmt.Fprintf(&b, "delete element inet %s received { %s }\n", t.name, j.addr)
	fmt.Fprintf(&b, "delete element inet %s sent { %s }\n", t.name, j.addr)
	fmt.Fprintf(&b, "delete counter inet %s %s\n", t.name, counterIn(j.id))
	fmt.Fprintf(&b, "delete counter inet %s %s\n", t.name, counterOut(j.id))
	// What is not there cannot be deleted, so it is added first.
	if t.has(ConnectionRate) {
		fmt.Fprintf(&b, "add element inet %s opening { %s limit rate over %d/second burst %d packets }\n",
			t.name, j.addr, t.profile.NewConnsPerSecond, t.profile.NewConnsBurst)
		fmt.Fprintf(&b, "delete element inet %s opening { %s }\n", t.name, j.addr)
	}
	if t.has(ConnectionCount) {
		fmt.Fprintf(&b, "add element inet %s holding { %s ct count over %d }\n", t.name, j.addr, t.profile.MaxConns)
		fmt.Fprintf(&b, "delete element inet %s holding { %s }\n", t.name, j.addr)
	}
	return b.String()
}

// tableWriter writes indented lines.
type tableWriter struct {
	strings.Builder
	depth int
}

func (w *tableWriter) line(format string, args ...any) {
	w.WriteString(strings.Repeat("\t", w.depth))
	fmt.Fprintf(w, format, args...)
	w.WriteByte('\n')
}

func (w *tableWriter) gap() { w.WriteByte('\n') }

func (w *tableWriter) open(format string, args ...any) {
	if w.depth > 0 {
		w.gap()
	}
	w.line(format+" {", args...)
	w.depth++
}

func (w *tableWriter) close() {
	w.depth--
	w.line("}")
}

// set writes a named set or map; kind holds statements divided by semicolons.
func (w *tableWriter) set(name, comment, kind string, elements []string) {
	w.open("%s", name)
	w.line("comment %q", comment)
	for s := range strings.SplitSeq(kind, "; ") {
		w.line("%s", s)
	}
	if len(elements) > 0 {
		pad := ",\n" + strings.Repeat("\t", w.depth+1)
		w.line("elements = {%s\n%s}", pad[1:]+strings.Join(elements, pad), strings.Repeat("\t", w.depth))
	}
	w.close()
}
