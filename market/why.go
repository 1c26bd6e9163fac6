package market

import (
	"strconv"
	"strings"
)

// Reasons is why an offer stands where it stands: what I checked, what only the rig claims, what is not known, and the worst that can
// happen. Texts are English sentences without a full stop, safe to print.
type Reasons struct {
	Checked []Fact `json:"checked"`
	Claimed []Fact `json:"claimed"`
	Unknown []Fact `json:"unknown"`
	Worst   Worst  `json:"worst"`
}

// Fact is one of the reasons.
type Fact struct {
	Field string `json:"field"` // that a query asks for it with
	Text  string `json:"text"`
}

// Worst is the most that a renter can lose to a rig that takes the money and does nothing, by the lease's own rules: the money that is
// sent ahead of use, and the time until another rig is taken. It is known before the lease, and no rig's word changes it.
type Worst struct {
	Known    bool   `json:"known"`
	Money    Micro  `json:"money_micro"`
	Currency string `json:"currency,omitempty"`
	Ms       int64  `json:"ms"`
	Text     string `json:"text"`
}

// Why tells the reasons of a row.
func Why(r Row) Reasons {
	w := Reasons{Checked: []Fact{}, Claimed: []Fact{}, Unknown: []Fact{}, Worst: WorstOf(r)}
	w.standing(&r)
	w.offer(&r)
	return w
}

func (w *Reasons) checked(field, text string) { w.Checked = append(w.Checked, Fact{field, text}) }
func (w *Reasons) claimed(field, text string) { w.Claimed = append(w.Claimed, Fact{field, text}) }
func (w *Reasons) unknown(field, text string) { w.Unknown = append(w.Unknown, Fact{field, text}) }

// standing tells what I know myself, and what I do not.
func (w *Reasons) standing(r *Row) {
	s := r.Standing
	if s == nil {
		s = &Standing{}
	}
	if s.Checked {
		w.checked("checked", "you measured a card, and its speed was as claimed")
	} else {
		w.unknown("checked", "nothing was measured by you")
	}
	switch {
	case s.Leases == 1:
		w.checked("leases", "you had a lease with its owner")
	case s.Leases > 1:
		w.checked("leases", "you had "+strconv.FormatInt(s.Leases, 10)+" leases with its owner")
	}
	if seen := fieldSeen.readStanding(&Row{Offer: r.Offer, Standing: s, Now: r.Now}); seen.known {
		w.checked("seen", "you have known its owner's key for "+roughly(seen.num))
	} else {
		w.unknown("seen", "its owner's key is new to you")
	}
	if s.RTT != nil {
		w.checked("rtt", "a round trip takes "+operand{num: *s.RTT}.show(kindDelay)+", so it is within "+strconv.FormatInt(s.within().num, 10)+" km")
	}
	if s.Reached != "" {
		w.checked("reached", "you reached it "+reachWords(s.Reached))
	}
	if s.Keeps {
		w.checked("my_disk", "a disk of yours is kept there")
	}
	w.country(r, s)
}

// country tells what speaks for the place.
func (w *Reasons) country(r *Row, s *Standing) {
	country := Printable(r.Offer.Net.Country)
	switch (&Row{Offer: r.Offer, Standing: s}).Residency() {
	case ResidencyRefuted:
		w.checked("residency_proof", "it claims to stand in "+country+", and its address is in "+Printable(s.AddressCountry))
	case ResidencyClaimed:
		w.claimed("geolocation", "it stands in "+country)
	case ResidencyAddress:
		w.checked("residency_proof", "its address is in "+country+", as it claims")
	case ResidencyRoundTrip:
		w.checked("residency_proof", "its address is in "+country+", as it claims, and the round trip fits")
	default:
		w.unknown("geolocation", "it does not say where it stands")
	}
}

// offer tells what the rig says of itself.
func (w *Reasons) offer(r *Row) {
	o := r.Offer
	if s := r.Standing; s == nil || s.Reached == "" {
		if o.Net.Reach != "" {
			w.claimed("reach", "it is reached "+reachWords(o.Net.Reach))
		} else {
			w.unknown("reach", "it does not say how it is reached")
		}
	}
	switch {
	case o.paysByItself():
		w.claimed("pay_auto", "it is paid without a person awake")
	case o.Rules.Credit == Unlimited:
		w.claimed("credit", "all may be owed")
	case len(o.Pays) > 0:
		w.claimed("pay", "a person confirms each payment")
	case o.Rules.Credit == 0:
		w.unknown("pay", "it names no way of paying")
	default:
		w.claimed("credit", "it lets those whom its owner trusts owe "+Micro(o.Rules.Credit).String()+" "+Printable(o.Prices.Currency))
	}
	if r.HasImage() {
		w.claimed("has_image", "it has your image and starts at once")
	}
	if o.History != nil {
		w.claimed("outcomes", strconv.FormatInt(o.History.Count, 10)+" leases ended with both signatures, as it counts them")
	}
	if len(o.Host.Weak) > 0 {
		w.claimed("weak", "not kept apart by "+Printable(strings.Join(o.Host.Weak, ", ")))
	}
	w.claimed("notice", "a job that it ends has "+roughly(o.Rules.NoticeMs)+" to save its work")
}

// reachWords says how a rig is reached.
func reachWords(reach string) string {
	switch reach {
	case "direct":
		return "directly"
	case "punched":
		return "through a punched hole"
	case "relayed":
		return "through somebody's relay"
	case "loopback":
		return "on this machine"
	}
	return "by " + Printable(reach)
}

// WorstOf computes the worst case from the offer's rules. What is paid ahead is the slice of the stretch that runs: 2 minutes before the
// start, then 10, doubling with each hour that both have signed. Where use may be owed, nothing is sent ahead. The time is that of the
// longest stretch, or what passes until a rig that never starts the job has lost it: hold, payment, preparation and start. What a kept
// disk costs after the job is not in it: it is kept only where the renter orders it.
func WorstOf(r Row) Worst {
	o := r.Offer
	w := Worst{Currency: o.Prices.Currency}
	job := JobShape{Slots: 1, DurationMs: msPerHour}
	if r.Job != nil {
		job = *r.Job
	}
	r.Job = &job
	if len(o.Pays) == 0 && o.Rules.Credit == 0 {
		w.Text = "it cannot be paid, so nothing can be lost"
		return w
	}
	wait := HoldMs + PrepareFor(*o, r.slots(), r.sent()) + StartMs
	lost := min(o.Rules.IntervalMs+o.Rules.GraceMs, job.DurationMs) // of use that nobody has signed
	if o.Rules.Credit != Unlimited && len(o.Pays) > 0 {
		hours := min(max(job.DurationMs-1, 0)/msPerHour, 3)
		stretch := min(SliceMs<<hours, MostSliceMs, job.DurationMs)
		stretch = max(stretch, min(FirstSliceMs, job.DurationMs))
		money, known := r.cost(stretch, 0, 0)
		if !known {
			w.Text = "its prices do not fit into money"
			return w
		}
		w.Money, lost, wait = money, stretch, wait+FirstPayMs
	}
	w.Known, w.Ms = true, max(lost, wait)
	w.Text = "worst case you lose " + w.Money.String() + " " + Printable(w.Currency) + " and " + roughly(w.Ms)
	return w
}

// sent is the bytes that the job's preparation waits for, as far as they are known.
func (r *Row) sent() int64 {
	bytes := max(0, r.Job.Upload)
	if r.Job.Image != "" && !r.HasImage() && r.Job.ImageBytes != nil {
		bytes += max(0, *r.Job.ImageBytes)
	}
	return bytes
}

// roughly writes a time as people say it.
func roughly(ms int64) string {
	units := []struct {
		ms   int64
		name string
	}{{24 * msPerHour, "day"}, {msPerHour, "hour"}, {60_000, "minute"}, {1000, "second"}}
	for _, u := range units {
		if n := (ms + u.ms/2) / u.ms; ms >= u.ms {
			if n == 1 {
				return "1 " + u.name
			}
			return strconv.FormatInt(n, 10) + " " + u.name + "s"
		}
	}
	return "less than a second"
}
