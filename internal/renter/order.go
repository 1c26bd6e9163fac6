package renter

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"haggle/internal/index"
	"haggle/internal/pay"
	"haggle/internal/view"
	"haggle/market"
)

// What a bid asks for where its maker says nothing.
const (
	defaultDuration     = time.Hour
	defaultCurrency     = "USD"
	defaultUnattendedMs = int64(10 * 60 * 1000)
	goodTill            = 30 * time.Second
)

// order is a checked request.
type order struct {
	query      market.Query
	offer      string // names one offer; the query is empty then
	image      string
	args       []string
	env        market.Env
	count      int
	durationMs int64
	budget     market.Micro // 0 is what the whole duration costs
	currency   string
	unattended int64 // 0 is the default
	diskMB     int64 // 0 is market.DefaultDiskMB, or the share where that is less

	inside  Inside
	secrets []market.Secret
	resume  string // names the lease whose newest checkpoint the job begins from
	digest  string // of the image that is brought
	archive int64  // its size
	upload  int64  // all that is sent before the start

	pay       string           // a method, view.PayNone, or "": what fits
	methods   []pay.Method     // by which this agent can pay
	idle      *market.IdleStop // nil: never
	deputies  []market.Key
	deputized bool              // the lease shall have this agent's deputies
	guarantee []byte            // a sealed guarantee
	residency *market.Residency // where the job may run; nil is anywhere

	guaranteed *market.Guarantee // the same, opened; nil for none
	promised   market.Hash       // of it
	ahead      bool              // a rig has said that this agent gets no credit: it pays ahead where it can
}

func newOrder(r view.BidRequest) (order, error) {
	bad := func(why string) (order, error) { return order{}, market.NewError(market.CodeBadRequest, "why", why) }
	q, err := market.ParseQuery(r.Query)
	if err != nil {
		return order{}, err
	}
	o := order{
		query: q, offer: r.Offer, image: r.Image, args: r.Args, env: r.Env, count: r.GPUs, durationMs: r.DurationMs,
		budget: market.Micro(r.BudgetMicro), currency: r.Currency, unattended: r.UnattendedMs, diskMB: r.DiskMB,
		pay: r.Pay, idle: r.StopIdle, deputized: r.Deputies, guarantee: r.Guarantee,
		residency: residencyOf(r.Residency),
	}
	switch {
	case r.Offer != "" && strings.TrimSpace(r.Query) != "":
		return bad("give a query or one offer, not both")
	case r.Image == "" && r.ImageFile == "":
		return bad("no image is named: --image takes a name that the rig lists")
	case r.Image != "" && r.ImageFile != "":
		return bad("name an image or bring one, not both")
	case r.GPUs < 0 || r.GPUs > market.MaxSlots:
		return bad(fmt.Sprintf("--gpus is 1 to %d", market.MaxSlots))
	case r.DurationMs < 0 || r.BudgetMicro < 0 || r.DiskMB < 0 || r.UnattendedMs < market.Unlimited:
		return bad("a time, the disk or the budget is negative")
	}
	if o.count == 0 {
		o.count = 1
	}
	if o.durationMs == 0 {
		o.durationMs = defaultDuration.Milliseconds()
	}
	if o.currency == "" {
		o.currency = defaultCurrency
	}
	if len(o.env) == 0 {
		o.env = nil // an empty list would be hashed otherwise, and not survive the way
	}
	if o.inside, err = newInside(r); err != nil {
		return order{}, err
	}
	for _, s := range r.Secrets {
		o.secrets = append(o.secrets, market.Secret(s))
	}
	if o.image == "" {
		o.image = filepath.Base(r.ImageFile)
	}
	if err := market.CheckSecrets(market.Job{Secrets: uint8(min(len(o.secrets), 255))}, o.secrets); err != nil {
		return order{}, err
	}
	o.resume = r.Resume
	return o, o.env.Validate()
}

// has reports whether a rig has the order's image or takes it.
func (o order) has(offer market.Offer) bool {
	if o.inside.ImageFile != "" {
		return offer.Rules.Brings
	}
	_, has := offer.Image(o.image)
	return has
}

// shape is the order's job as offers are priced for it.
func (o order) shape() *market.JobShape {
	j := &market.JobShape{Slots: max(o.count, 1), DurationMs: o.durationMs, DiskMB: o.diskMB, Image: o.image, Upload: o.upload}
	if o.archive > 0 {
		j.ImageBytes = &o.archive
	}
	return j
}

// noImage says why none of some rigs has the order's image.
func (o order) noImage(rigs ...*index.Known) error {
	if o.inside.ImageFile != "" {
		return market.NewError(market.CodeNoBring)
	}
	return imageUnknown(o.image, rigs...)
}

// candidate is an offer that an order can be placed at, with the slots that fit it.
type candidate struct {
	offer *index.Known
	model string
	slots []uint8 // these and no others; empty leaves it to the rig
}

// candidates returns what an order can be placed at, in the order in which it is tried.
func (o order) candidates(f found) ([]candidate, error) {
	if o.offer != "" {
		k, err := f.named(o.offer)
		if err != nil {
			return nil, err
		}
		if err := o.misplaced(f.row(k)); err != nil {
			return nil, err
		}
		if !o.has(k.Offer) {
			return nil, o.noImage(k)
		}
		return []candidate{{offer: k, model: o.model(k.Offer)}}, nil
	}
	if f.known == 0 {
		return nil, market.NewError(market.CodeNoOffers)
	}
	rows, _, err := f.best(o.query, o.count, "", 0)
	if err != nil {
		return nil, err
	}
	var list []candidate
	var without []*index.Known
	outside := 0
	for _, r := range rows {
		if !o.residency.Proves(r.Row()) {
			outside++
			continue
		}
		c, enough := o.choose(r.known, r.Match.Slots)
		switch {
		case !enough:
		case !o.has(*r.Offer):
			without = append(without, c.offer)
		default:
			list = append(list, c)
		}
	}
	switch {
	case len(list) > 0:
		return list, nil
	case len(without) > 0:
		return nil, o.noImage(without...)
	case outside > 0:
		return nil, o.nowhere(rows)
	}
	return nil, market.NewError(market.CodeNoMatch, "offers", fmt.Sprint(f.known))
}

// choose takes the first model of which enough slots fit. Where not every free slot of the model fits, the bid names those
// that do.
func (o order) choose(k *index.Known, fit []uint8) (candidate, bool) {
	for _, first := range k.Offer.Slots {
		var free, fits []uint8
		for _, s := range k.Offer.Slots {
			if s.Model != first.Model || s.LeasedUntil != 0 {
				continue
			}
			free = append(free, s.Index)
			if slices.Contains(fit, s.Index) {
				fits = append(fits, s.Index)
			}
		}
		if len(fits) < o.count {
			continue
		}
		c := candidate{offer: k, model: first.Model}
		if len(fits) < len(free) {
			c.slots = fits[:o.count]
		}
		return c, true
	}
	return candidate{}, false
}

// model chooses the model for an order of one named offer: the first of which enough slots are free, or exist at all.
func (o order) model(offer market.Offer) string {
	have, free := map[string]int{}, map[string]int{}
	for _, s := range offer.Slots {
		have[s.Model]++
		if s.LeasedUntil == 0 {
			free[s.Model]++
		}
	}
	for _, count := range []map[string]int{free, have} {
		for _, s := range offer.Slots {
			if count[s.Model] >= o.count {
				return s.Model
			}
		}
	}
	return offer.Slots[0].Model
}

func imageUnknown(image string, rigs ...*index.Known) error {
	var names []string
	for _, k := range rigs {
		for _, i := range k.Offer.Host.Images {
			names = append(names, i.Name)
		}
	}
	slices.Sort(names)
	list := strings.Join(slices.Compact(names), ", ")
	if list == "" {
		list = "none"
	}
	return market.NewError(market.CodeImageUnknown, "image", clip(image), "images", list)
}

// draft makes the record of a bid, and refuses one that the rig would refuse.
func (o order) draft(cfg Config, c candidate) (Record, error) {
	offer, now := c.offer.Offer, cfg.Clock()
	if !o.has(offer) {
		return Record{}, o.noImage(c.offer)
	}
	job := o.job(offer)
	method, credit, err := o.choosePay(offer)
	if err != nil {
		return Record{}, err
	}
	b := market.Bid{
		Offer: c.offer.Hash, Rig: offer.Rig, Renter: market.KeyOf(cfg.Key), Owner: market.KeyOf(cfg.Key),
		Count: uint8(o.count), Slots: c.slots, Model: c.model, Mode: market.ModeFirm, Prices: offer.Prices,
		GoodTill: now.Add(goodTill).UnixMilli(), DurationMs: o.durationMs, Budget: o.budget,
		Limits: o.limits(offer.Rules, credit), IntervalMs: offer.Rules.IntervalMs, Upload: o.upload,
		Pay: method, Idle: o.idle, Deputies: o.deputies, Guarantee: o.promised, Residency: o.residency,
	}
	b.Prices.Currency = o.currency // an offer in another currency does not fit, whatever its price
	b.Resources.DiskMB = o.diskMB
	if disk := offer.DiskMB(o.count, o.diskMB); offer.Prices.Disk > 0 {
		b.Resources.DiskMB = disk // what costs money is named
	}
	for _, nonce := range []*market.Nonce{&job.Salt, &b.Nonce} {
		if _, err := io.ReadFull(cfg.Random, nonce[:]); err != nil {
			return Record{}, fmt.Errorf("read random bytes: %w", err)
		}
	}
	job.EnvHash = o.env.Hash(job.Salt)
	b.Job = job.Hash()
	if b.Budget == 0 {
		cost, err := wholeCost(offer, o.count, o.diskMB, o.durationMs)
		if err != nil {
			return Record{}, err
		}
		b.Budget = max(1, cost) // a lease always has a budget, even where everything is free
	}
	if g := o.guaranteed; g != nil && method == "" && credit != market.Unlimited {
		b.Limits.Credit = max(credit, int64(min(b.Budget, g.Amount)))
		if err := g.Covers(offer.Owner, b.Owner, b.Prices.Currency, now.UnixMilli()); err != nil {
			return Record{}, err
		}
	}
	if err := o.check(c.offer, b, job, now); err != nil {
		return Record{}, err
	}
	sealed := market.SealBid(cfg.Network, cfg.Key, b)
	return Record{
		Bid: sealed.Hash(), Offer: c.offer.Raw, SealedBid: sealed.Encode(), Job: job, Env: o.env,
		RigName: offer.Name, Model: c.model, Image: o.image,
		State:  State{Created: now.UnixMilli(), Since: now.UnixMilli(), Isolation: offer.Host.Isolation, Guarantee: o.guarantee},
		Inside: o.inside,
	}, nil
}

// job makes the job of an order for a rig that has its image or takes it.
func (o order) job(offer market.Offer) market.Job {
	j := market.Job{Image: o.digest, Args: o.args, Archive: o.archive, Secrets: uint8(len(o.secrets))}
	if o.archive == 0 {
		image, _ := offer.Image(o.image)
		j.Image = image.Digest
	}
	if o.inside.Src != "" {
		j.Workdir = workDir
	}
	return j
}

// check asks what the rig will ask. Whether slots are free is left to the rig: one may have become free.
func (o order) check(k *index.Known, b market.Bid, job market.Job, now time.Time) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if err := market.AdmitJob(k.Offer, b, job); err != nil {
		return err
	}
	if err := market.Admit(k.Offer, k.Hash, b, now.UnixMilli()); err != nil {
		return err
	}
	if _, err := market.Pick(k.Offer, b); err != nil && market.CodeOf(err) != market.CodeSlotTaken {
		return err
	}
	return nil
}

// limits asks for what the rig allows, for an unattended time as ordered, and for a credit.
func (o order) limits(r market.Rules, credit int64) market.Limits {
	away := o.unattended
	if away == 0 {
		away = defaultUnattendedMs
		if r.MaxUnattended != market.Unlimited {
			away = min(away, r.MaxUnattended)
		}
	}
	return market.Limits{UnsignedMs: r.IntervalMs + r.GraceMs, UnattendedMs: away, Credit: credit}
}
