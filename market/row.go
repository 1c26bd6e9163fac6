package market

// Row is an offer as one renter sees it: what a query asks. Standing, Job and Now may be missing; the fields that come from them are
// unknown then.
type Row struct {
	Offer    *Offer // never nil; only read
	Standing *Standing
	Job      *JobShape
	Now      int64 // Unix milliseconds; 0 where no field asks for the time
}

// Standing is what one renter knows of an offer beside the offer itself. Nobody else says it, and it is never sent.
type Standing struct {
	Checked   bool  // I measured one of its cards, and what it claimed was so
	Leases    int64 // mine with its owner, those that billed something
	FirstSeen int64 // when I first saw an offer of its owner, Unix milliseconds; 0 is unknown
	// Heard is when I last had the owner's word, Unix milliseconds: its answer, or, of what others keep and what I remember, the time
	// at which the offer was signed. 0 is unknown.
	Heard          int64
	RTT            *int64 // the shortest round trip to the rig, microseconds
	Source         string // owner, snapshot or remembered
	Sources        int64  // that hold the offer
	Name           string // that I gave its owner or its rig
	Reached        string // how I reached the rig: direct, punched, relayed or loopback
	Link           *int64 // bits a second from me to the rig, measured
	AddressCountry string // of the public address at which I reached the rig itself, two capital letters
	Keeps          bool   // a disk of mine is kept there
}

// Sources of an offer.
const (
	SourceOwner      = "owner"      // its rig told me
	SourceSnapshot   = "snapshot"   // it stood on another's shelf
	SourceRemembered = "remembered" // it was on my disk
)

// JobShape is the job that offers are priced and timed for. What is zero is not asked for, except that Slots is at least 1.
type JobShape struct {
	Slots      int
	DurationMs int64
	DiskMB     int64 // 0 leaves it to the rig
	InMB       int64 // into the job, MB of 10⁶ bytes
	OutMB      int64 // out of the job
	// KeptMB is the part of InMB that lies on a disk of mine already, where one is kept.
	KeptMB     int64
	Image      string // name or digest; "" where any will do
	ImageBytes *int64 // of an image that I would send; nil is unknown
	Upload     int64  // bytes of files that I send before the start
}

// maxShapeMB bounds traffic in the arithmetic of a price: an exabyte.
const maxShapeMB = int64(1_000_000_000_000)

// Total is the whole price of the job on the offer, in its currency: slots, disk and traffic for the job's time. False where there is
// no job, or where the price does not fit into money.
func (r *Row) Total() (Micro, bool) {
	j := r.Job
	if j == nil {
		return 0, false
	}
	in := j.InMB
	if r.Standing != nil && r.Standing.Keeps {
		in = max(0, in-j.KeptMB)
	}
	return r.cost(j.DurationMs, in, j.OutMB)
}

// cost prices a time of the job with some traffic.
func (r *Row) cost(ms, inMB, outMB int64) (Micro, bool) {
	slots := r.slots()
	disk := r.Offer.DiskMB(slots, r.Job.DiskMB)
	if ms < 0 || ms > maxLeaseTime.Milliseconds() || disk < 0 || disk > maxDiskMB || min(inMB, outMB) < 0 || max(inMB, outMB) > maxShapeMB {
		return 0, false
	}
	bill, err := r.Offer.Prices.Bill(UsageAt(ms, slots, disk, inMB*bytesPerMB, outMB*bytesPerMB))
	return bill.Total, err == nil
}

// slots is the number of slots that the job takes.
func (r *Row) slots() int {
	if r.Job == nil {
		return 1
	}
	return min(max(r.Job.Slots, 1), MaxSlots)
}

// HasImage reports whether the rig has the job's image: it starts at once then.
func (r *Row) HasImage() bool {
	return r.Job != nil && r.Job.Image != "" && r.Offer.hasImage(r.Job.Image)
}

// hasImage looks for an image by its name or digest.
func (o *Offer) hasImage(wanted string) bool {
	for i := range o.Host.Images {
		if o.Host.Images[i].Name == wanted || o.Host.Images[i].Digest == wanted {
			return true
		}
	}
	return false
}

// StartMs estimates the time from both signatures to the start: what must be sent first, over the link. Nothing is sent of an image that
// the rig has. The link is the measured one, else what the slots are promised, else what the rig says of itself. False where
// something that it needs is unknown, and where the rig has not the image and takes none.
func (r *Row) StartMs() (int64, bool) {
	j := r.Job
	if j == nil {
		return 0, false
	}
	bytes := j.Upload
	if j.Image != "" && !r.HasImage() {
		if j.ImageBytes == nil || !r.Offer.Rules.Brings {
			return 0, false
		}
		bytes += *j.ImageBytes
	}
	if bytes == 0 {
		return 0, true
	}
	link := r.link()
	if link <= 0 || bytes < 0 || bytes > maxUpload {
		return 0, false
	}
	return bytes * 8000 / link, true
}

// link is bits a second towards the rig; 0 is unknown.
func (r *Row) link() int64 {
	switch {
	case r.Standing != nil && r.Standing.Link != nil:
		return *r.Standing.Link
	case r.Offer.Host.SlotDown > 0:
		return r.Offer.Host.SlotDown * int64(r.slots())
	case r.Offer.Net.Down != nil:
		return *r.Offer.Net.Down
	}
	return 0
}

// reached is how the rig is reached: as I saw it, else as it claims.
func (r *Row) reached() string {
	if r.Standing != nil && r.Standing.Reached != "" {
		return r.Standing.Reached
	}
	return r.Offer.Net.Reach
}

// freeCount is the number of free slots.
func (o *Offer) freeCount() int {
	count := 0
	for i := range o.Slots {
		if o.Slots[i].LeasedUntil == 0 {
			count++
		}
	}
	return count
}
