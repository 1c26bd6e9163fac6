package market_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/market"
	"haggle/market/markettest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestLivesOfALease plays the lives in testdata/lives: each line is an event, "+10s" lets so much time pass with a tick a
// second. What the lease answers stands below it, behind ">", and the state after it behind "=".
func TestLivesOfALease(t *testing.T) {
	files, err := filepath.Glob("testdata/lives/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no lives", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(text), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// life is a lease that is being played.
type life struct {
	t     *testing.T
	lease market.Lease
	now   market.Instant
	use   int64 // of the card so far, permille by milliseconds
	out   strings.Builder
}

func play(t *testing.T, text string) string {
	l := &life{t: t, now: market.Instant{Mono: 5000, Wall: markettest.Now}}
	l.lease = market.NewLease(market.LeaseID{7}, markettest.Terms(), l.now, strings.Contains(text, "\nearly"))
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, ">") || strings.HasPrefix(line, "=") || strings.HasPrefix(line, "!") {
			continue // the old answers
		}
		l.out.WriteString(line + "\n")
		if line != "" && !strings.HasPrefix(line, "#") {
			l.line(strings.Fields(line))
			l.state()
		}
	}
	return l.out.String()
}

func (l *life) line(words []string) {
	if gap, ok := strings.CutPrefix(words[0], "+"); ok {
		l.pass(gap, words[1:])
		return
	}
	switch words[0] {
	case "early": // read by play: the container may be made before the renter signs
	case "terms":
		l.terms(words[1:])
	case "extend": // by so much time and money
		d, err := time.ParseDuration(words[1])
		add, moneyErr := strconv.ParseInt(words[2], 10, 64)
		if err != nil || moneyErr != nil {
			l.t.Fatal(err, moneyErr)
		}
		l.step(market.Extend{Extension: l.lease.Terms.Extend(l.lease.ID, l.lease.Extension, d.Milliseconds(), market.Micro(add), l.now.Wall)})
	case "gaps":
		l.gaps()
	case "putback": // what came after a moment is forgotten: here nothing, but nobody knows that
		l.lease.Unsure = true
	case "again": // the newest extension once more
		l.step(market.Extend{Extension: *l.lease.Extension})
	case "sign":
		r := l.lease.Draft
		if r == nil {
			l.t.Fatal("there is no draft to sign")
		}
		l.step(market.Agreed{Receipt: *r, Hash: market.HashOf(r.Body())})
	default:
		l.step(l.event(words))
	}
}

// pass lets time pass: with ticks, or, behind "silence", without any, as when the process is stopped. Behind "use N" every tick has
// read the card's use, in permille.
func (l *life) pass(gap string, words []string) {
	d, err := time.ParseDuration(gap)
	if err != nil {
		l.t.Fatal(err)
	}
	if len(words) == 1 { // "+5m silence": the clocks run, nobody reads them
		l.now.Mono += d.Milliseconds()
		l.now.Wall += d.Milliseconds()
		return
	}
	for range d / time.Second {
		l.now.Mono += 1000
		l.now.Wall += 1000
		tick := market.Tick{In: l.lease.Meter.SeenIn - l.lease.Base.In, Out: l.lease.Meter.SeenOut - l.lease.Base.Out}
		if len(words) == 2 {
			l.use += l.number(words[1]) * 1000
			use := l.use
			tick.Slots, tick.Read = []market.SlotUse{{UtilPermilleMs: &use}}, true
		}
		l.step(tick)
	}
}

func (l *life) number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

// contact is the renter's hello, or a deputy's: its newest receipt and its newest payment.
func (l *life) contact(words []string) market.Event {
	var e market.Contact
	if len(words) > 0 && words[0] == "deputy" {
		e.Deputy, words = true, words[1:]
	}
	if len(words) == 2 {
		e.Seq, e.Paid = uint32(l.number(words[0])), uint32(l.number(words[1]))
	}
	return e
}

// forgotten is the next receipt as the rig signed it before its store was put back: of so many seconds.
func (l *life) forgotten(seconds string) market.Event {
	r := market.Receipt{
		Lease: l.lease.ID, Seq: l.lease.Head.Seq + 1, Prev: l.lease.Head.Hash, Kind: market.ReceiptInterval, BilledMs: l.number(seconds) * 1000,
		Gaps: []market.Unbilled{{Reason: market.UnbilledDown, Ms: 7}},
	}
	r.Usage = l.lease.Terms.UsageAt(r.BilledMs, 0, 0)
	bill, err := l.lease.Terms.Prices.Bill(r.Usage)
	if err != nil {
		l.t.Fatal(err)
	}
	r.Bill = bill
	return market.Agreed{Receipt: r, Hash: market.HashOf(r.Body())}
}

// pay makes the payment that comes next.
func (l *life) pay(amount string) market.Paid {
	n := l.number(amount)
	return market.Paid{Payment: market.Payment{
		Lease: l.lease.ID, Seq: l.lease.PaidSeq + 1, Amount: market.Micro(n), Total: l.lease.Paid + market.Micro(n),
	}}
}

// gaps says what is not billed, and what a restarted shell would do.
func (l *life) gaps() {
	for _, g := range l.lease.Gaps {
		fmt.Fprintf(&l.out, "  > not billed: %s %gs\n", g.Reason, float64(g.Ms)/1000)
	}
	for _, a := range market.Pending(l.lease) {
		fmt.Fprintf(&l.out, "  > pending: %s\n", a)
	}
}

func (l *life) terms(words []string) {
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		if name == "pay" {
			l.lease.Terms.Pay = value
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			l.t.Fatal(err)
		}
		switch name {
		case "budget":
			l.lease.Terms.Budget = market.Micro(n)
		case "duration":
			l.lease.Terms.DurationMs = n
		case "credit":
			l.lease.Terms.Limits.Credit = n
		case "idle": // below 100 permille for so long
			l.lease.Terms.Idle = &market.IdleStop{Permille: 100, ForMs: n}
		case "unsigned":
			l.lease.Terms.Limits.UnsignedMs = n
		case "in":
			l.lease.Terms.Prices.In = market.Rate(n)
		case "out":
			l.lease.Terms.Prices.Out = market.Rate(n)
		case "unattended":
			l.lease.Terms.Limits.UnattendedMs = n
		case "upload":
			l.lease.Terms.Upload = n
		case "disk": // the price; and so much of it that a second of it costs as many millionths
			l.lease.Terms.Prices.Disk, l.lease.Terms.Resources.DiskMB = market.Rate(n), 3_600_000
		case "deadline":
			l.lease.Terms.Deadline = l.now.Wall + n
		default:
			l.t.Fatalf("no term %s", name)
		}
	}
}

func (l *life) event(words []string) market.Event {
	rest := append(words[1:], "", "", "")
	switch words[0] {
	case "signed":
		return market.Signed{}
	case "prepared":
		return market.Prepared{}
	case "started":
		return market.Started{}
	case "failed":
		return market.Failed{Reason: market.Reason(rest[0]), Code: market.Code(rest[1])}
	case "exited":
		e := market.Exited{OOM: rest[1] == "oom", DiskFull: rest[1] == "disk", Lost: rest[1] == "lost"}
		e.Code, _ = strconv.ParseInt(rest[0], 10, 64)
		if rest[1] == "ran" {
			d, err := time.ParseDuration(rest[2])
			if err != nil {
				l.t.Fatal(err)
			}
			e.RanMs = d.Milliseconds()
		}
		return e
	case "gone":
		return market.Contact{Away: true}
	case "here":
		return l.contact(words[1:])
	case "forgot":
		return l.forgotten(rest[0])
	case "forgotpay":
		e := l.pay(rest[1])
		e.Payment.Seq = uint32(l.number(rest[0]))
		return e
	case "rejected":
		return market.Rejected{}
	case "stop":
		return market.Stop{Reason: market.Reason(rest[0]), Kill: strings.Contains(rest[1], "kill"), Keep: strings.Contains(rest[1], "keep")}
	case "begin":
		return market.Begin{}
	case "resume":
		return market.Resume{}
	case "restarted":
		l.now.Mono = 100 // another process, another origin
		return market.Restarted{DownMs: l.now.Wall - l.lease.Meter.LastWall}
	case "unseen":
		return market.Unseen{}
	case "paid":
		return l.pay(rest[0])
	case "scrubbed":
		return market.Scrubbed{Cards: []market.CardWipe{{Index: 0, Bytes: 24 << 30}}}
	case "dirty":
		return market.Scrubbed{Cards: []market.CardWipe{market.NotWiped(0, strings.Join(words[1:], " "))}}
	case "removed":
		return market.Removed{}
	case "traffic":
		in, errIn := strconv.ParseInt(rest[0], 10, 64)
		out, errOut := strconv.ParseInt(rest[1], 10, 64)
		if errIn != nil || errOut != nil {
			l.t.Fatal(errIn, errOut)
		}
		return market.Tick{In: in, Out: out}
	}
	l.t.Fatalf("no event %q", words[0])
	return nil
}

func (l *life) step(e market.Event) {
	next, actions, err := market.Step(l.lease, l.now, e)
	if err != nil {
		fmt.Fprintf(&l.out, "  ! %s\n", err)
	}
	for _, a := range actions {
		fmt.Fprintf(&l.out, "  > %s\n", a)
	}
	l.lease = next
}

func (l *life) state() {
	m := l.lease.Meter
	fmt.Fprintf(&l.out, "  = %s, debt %s, billed %gs, unbilled %gs, total %s, signed #%d", l.lease.Job, l.lease.Debt,
		float64(m.BilledMs)/1000, float64(m.UnbilledMs)/1000, l.lease.Total(), l.lease.Head.Seq)
	if m.KeptMs > 0 {
		fmt.Fprintf(&l.out, ", kept %gs", float64(m.KeptMs)/1000)
	}
	if l.lease.Attempt > 0 {
		fmt.Fprintf(&l.out, ", attempt %d, disk of %d", l.lease.Attempt, l.lease.Disk)
	}
	if l.lease.Status().Ready {
		l.out.WriteString(", waits for the renter")
	}
	if m.SeenIn+m.SeenOut > 0 {
		fmt.Fprintf(&l.out, ", traffic %d of %d in, %d of %d out", m.In, m.SeenIn, m.Out, m.SeenOut)
	}
	if l.lease.Terms.Pay != "" {
		fmt.Fprintf(&l.out, ", paid %s of %s", l.lease.Paid, l.lease.Need)
	}
	if l.lease.DryMs > 0 {
		fmt.Fprintf(&l.out, ", dry for %gs", float64(l.lease.DryMs)/1000)
	}
	if l.lease.IdleMs > 0 {
		fmt.Fprintf(&l.out, ", idle for %gs", float64(l.lease.IdleMs)/1000)
	}
	if l.lease.Exit != nil {
		fmt.Fprintf(&l.out, ", exit %d %s", l.lease.Exit.Code, l.lease.Exit.Reason)
	}
	if l.lease.Code != "" {
		fmt.Fprintf(&l.out, ", code %s", l.lease.Code)
	}
	if l.lease.Wiping {
		l.out.WriteString(", holds its cards")
	}
	l.out.WriteString("\n")
}
