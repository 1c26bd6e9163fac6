package tui

import (
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
	"haggle/market"
)

// Fields of the form, in their order.
const (
	fieldImage = iota
	fieldCards
	fieldTime
	fieldBudget
	fieldCommand
	fieldPay
	fieldAway
	fieldIdle
	fieldDisk
	fieldSource
	fieldCollect
	fieldPorts
	fieldName
	fieldCount
)

// form is a bid in the making: what runs where, for how long, and what it costs. It is filled in already, so that enter
// goes on at once.
type form struct {
	*kit
	offer  view.Offer
	ways   []payChoice // of fieldPay
	fields [fieldCount]field
	at     int
	fault  string // why it cannot go on, said when the user tried
}

func newForm(k *kit, o view.Offer, mine []string) *form {
	d := k.Defaults
	f := &form{kit: k, offer: o, ways: payChoices(o, mine)}
	image := textField("Image", d.Image, "the name under which the rig lists it")
	if len(o.Images) > 0 {
		image = choiceField("Image", o.Images, slices.Index(o.Images, d.Image), "the images that this rig lists")
	}
	var cards []string
	for n := range max(1, min(o.Free, market.MaxSlots)) {
		cards = append(cards, strconv.Itoa(n+1))
	}
	unattended := ""
	if d.Unattended > 0 {
		unattended = lasting(d.Unattended.Milliseconds())
	}
	f.fields = [fieldCount]field{
		fieldImage:   image,
		fieldCards:   choiceField("Cards", cards, d.GPUs-1, plural(o.Free, "card is", "cards are")+" free in this rig"),
		fieldTime:    textField("Time", lasting(d.Duration.Milliseconds()), "running time at most, such as 90s, 2h or 7d"),
		fieldBudget:  textField("Budget", "", "the rig ends the job when this is spent"),
		fieldCommand: textField("Command", d.Command, "as a shell reads it; empty runs what the image runs"),
		fieldPay:     payField(f.ways, ""),
		fieldAway:    textField("Unattended", unattended, "how long the job keeps running while this machine is off"),
		fieldIdle:    textField("Stop idle", "", "ends the job when every card is used below so much for so long, such as 5%/10m"),
		fieldDisk:    textField("Disk", "", "the job's own disk in GB; what is on it is destroyed after the lease"),
		fieldSource:  textField("Source", "", "a folder of this machine that is sent to /work, where the job begins"),
		fieldCollect: textField("Collect", "", "what comes home when the job has ended: REMOTE or REMOTE:HERE, with spaces between"),
		fieldPorts:   textField("Ports", "", "that the job listens on, such as jupyter=8888 6006"),
		fieldName:    textField("Name", "", "of the lease: small letters, digits and dashes"),
	}
	return f
}

// suit fills in the job for which the offers were priced.
func (f *form) suit(j view.JobShape) {
	f.fields[fieldCards].at = max(0, min(j.GPUs-1, len(f.fields[fieldCards].options)-1))
	if j.DurationMs > 0 {
		f.fields[fieldTime].input.SetValue(lasting(j.DurationMs))
		f.fields[fieldTime].input.CursorEnd()
	}
	if j.DiskMB > 0 {
		f.fields[fieldDisk].input.SetValue(strconv.FormatInt(j.DiskMB/1000, 10))
	}
}

// renew takes the offer as it is now, and the ways in which this machine can pay: its rig may have changed the price, or somebody
// rented a card.
func (f *form) renew(o view.Offer, mine []string) {
	if o.RigKey != f.offer.RigKey || o.Free < 1 {
		return
	}
	cards := f.fields[fieldCards].at
	typed := f.fields
	fresh := newForm(f.kit, o, mine)
	f.offer, f.ways = o, fresh.ways
	f.fields = typed
	f.fields[fieldPay] = payField(f.ways, typed[fieldPay].value())
	f.fields[fieldCards] = fresh.fields[fieldCards]
	f.fields[fieldCards].at = min(cards, len(fresh.fields[fieldCards].options)-1)
	if len(o.Images) > 0 && len(typed[fieldImage].options) > 0 {
		f.fields[fieldImage].options = o.Images
		f.fields[fieldImage].at = max(0, slices.Index(o.Images, typed[fieldImage].value()))
	}
}

// do carries out what a key asks for, but for going on and back.
func (f *form) do(a act) (handled bool) {
	switch a {
	case actUp:
		f.at = (f.at + fieldCount - 1) % fieldCount
	case actDown:
		f.at = (f.at + 1) % fieldCount
	case actLeft, actRight:
		f.fields[f.at].change(a)
	default:
		return false
	}
	f.fault = ""
	return true
}

func (f *form) typed(msg tea.Msg) {
	f.fault = ""
	f.fields[f.at].input.Focus()
	f.fields[f.at].typed(msg)
}

// order is what the form says, and what it costs.
type order struct {
	bid      view.BidRequest
	cards    int
	ms       int64
	disk     int64        // MB that are asked for, 0 for what comes with the cards
	bill     market.Bill  // of the whole time, without traffic
	minute   market.Micro // what a minute costs
	budget   market.Micro // that the rig keeps
	lasts    int64        // milliseconds that the budget pays for, at most the whole time
	currency string
}

// order reads the form. Where it makes no sense, the error says what is wrong with which field.
func (f *form) order() (order, int, error) {
	o := order{cards: f.fields[fieldCards].at + 1, currency: f.offer.Price.Currency}
	d, err := parseSpan(f.fields[fieldTime].value())
	if err != nil {
		return o, fieldTime, err
	}
	o.ms = d.Milliseconds()
	if text := f.fields[fieldDisk].value(); text != "" {
		if o.disk, err = parseDisk(text); err != nil {
			return o, fieldDisk, err
		}
	}
	if o.bill, err = priceJob(f.offer, o.cards, o.disk, o.ms); err != nil {
		return o, fieldTime, err
	}
	minute, err := priceJob(f.offer, o.cards, o.disk, market.FirstMinute)
	if err != nil {
		return o, fieldTime, err
	}
	o.minute, o.budget, o.lasts = minute.Total, max(1, o.bill.Total), o.ms
	if text := f.fields[fieldBudget].value(); text != "" {
		if o.budget, err = market.ParseMicro(text); err == nil && o.budget == 0 {
			err = market.NewError(market.CodeBudgetTooSmall, "budget", "0.00", "minute", o.minute.String())
		}
		if err != nil {
			return o, fieldBudget, err
		}
		o.lasts = f.pays(o)
	}
	var away time.Duration // 0 leaves it to the agent
	if text := f.fields[fieldAway].value(); text != "" {
		if away, err = parseSpan(text); err != nil {
			return o, fieldAway, err
		}
	}
	idle, err := view.ParseIdleStop(f.fields[fieldIdle].value(), parseSpan)
	if err != nil {
		return o, fieldIdle, err
	}
	args, err := splitWords(f.fields[fieldCommand].value())
	if err != nil {
		return o, fieldCommand, err
	}
	o.bid = view.BidRequest{
		Offer: f.offer.Hash, Image: f.fields[fieldImage].value(), Args: args, GPUs: o.cards, DurationMs: o.ms,
		BudgetMicro: int64(o.budget), Currency: o.currency, UnattendedMs: away.Milliseconds(), DiskMB: o.disk,
		Name: f.fields[fieldName].value(), Pay: f.ways[f.fields[fieldPay].at].method, StopIdle: idle,
	}
	at, err := f.brings(&o.bid)
	return o, at, err
}

// pays returns for how long a budget pays, without traffic: the largest time whose bill is not above it.
func (f *form) pays(o order) int64 {
	low, high := int64(0), o.ms
	for low < high {
		mid := low + (high-low+1)/2
		if b, err := priceJob(f.offer, o.cards, o.disk, mid); err == nil && b.Total <= o.budget {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// review checks what the rig would refuse anyway. It reports whether the user may confirm.
func (f *form) review() (order, bool) {
	o, at, err := f.order()
	switch {
	case err != nil:
		f.at = at
		f.fault, _ = explainField(err)
	case o.bid.Image == "":
		f.at, f.fault = fieldImage, "name an image that the rig lists"
	case o.bid.Src != "" && !isFolder(o.bid.Src):
		f.at, f.fault = fieldSource, "there is no folder "+o.bid.Src
	case f.offer.Free < 1:
		f.at, f.fault = fieldCards, "no card of this offer is free now"
	case o.disk*1_000_000 > f.offer.Host.DiskFree && f.offer.SlotDetail != nil:
		f.at, f.fault = fieldDisk, "the rig has "+thousands(f.offer.Host.DiskFree, "B")+" free"
	case f.offer.SlotDetail == nil && f.offer.DiskPrice.Micro > 0:
		f.fault = "the rig's details are still coming; the price of the disk depends on them"
	case o.minute > o.budget:
		f.at, f.fault = fieldBudget, "the first minute costs "+o.minute.String()+" "+o.currency
	case f.offer.Rules.MaxMs > 0 && (o.ms < f.offer.Rules.MinMs || o.ms > f.offer.Rules.MaxMs):
		f.at, f.fault = fieldTime, "the rig leases for "+lasting(f.offer.Rules.MinMs)+" to "+lasting(f.offer.Rules.MaxMs)
	case f.offer.Rules.MaxUnattended > 0 && o.bid.UnattendedMs > f.offer.Rules.MaxUnattended:
		f.at, f.fault = fieldAway, "the rig allows "+lasting(f.offer.Rules.MaxUnattended)+" at most"
	default:
		f.fault = ""
		return o, true
	}
	return o, false
}

// explainField puts an error of a field into words: ours are words already.
func explainField(err error) (message, hint string) {
	if away(err) {
		return err.Error(), ""
	}
	return explain(err)
}

// title names what is rented.
func (f *form) title() string {
	return strings.TrimSpace("Rent " + model(clean(f.offer.Model)) + " on " + clean(rigName(&f.offer)))
}

// ghost returns what stands in an empty field.
func (f *form) ghost(i int, o order) string {
	switch i {
	case fieldBudget:
		if o.minute == 0 && o.bill.Total == 0 { // the time makes no sense yet, or everything is free
			return "what the whole time costs"
		}
		return o.bill.Total.String() + " " + o.currency + ", what the whole time costs"
	case fieldCommand:
		return "what the image runs"
	case fieldDisk:
		if f.offer.SlotDetail == nil {
			return "what comes with the cards"
		}
		return thousands(diskOf(f.offer, o.cards, 0)*1_000_000, "B") + ", which comes with the cards"
	case fieldIdle:
		return "never: the job ends by itself, or when its time or money is over"
	case fieldSource:
		return "nothing is sent"
	case fieldCollect:
		return "nothing is brought home"
	case fieldPorts:
		return "none named"
	case fieldName:
		return "lease- and the first digits of its id"
	case fieldAway:
		return "10m, or less where the rig allows less"
	}
	return ""
}
