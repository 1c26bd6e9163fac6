package market

import "strconv"

// Bounds and times of what a renter sends before the start.
const (
	maxUpload     = int64(1 << 44) // bytes
	prepareMostMs = int64(msPerHour)
	slowestLink   = int64(20_000_000) // bits a second, where nothing is known of the rig's link
	bytesPerMB    = int64(1_000_000)
	msPerByteBits = int64(2 * 8 * 1000) // twice the time: bits of a byte by milliseconds of a second
)

// PrepareFor returns the free time, in milliseconds, that an offer gives the preparation of a job for which so many bytes are sent
// first: twice the time that they take on the rig's link, at least PrepareMs and at most an hour. The link is what the slots are
// promised, else what the rig says of itself, else 20 Mbit/s.
func PrepareFor(o Offer, slots int, upload int64) int64 {
	link := o.Share(slots).DownBits
	if link <= 0 && o.Net.Down != nil {
		link = *o.Net.Down
	}
	if link <= 0 {
		link = slowestLink
	}
	return min(max(min(upload, maxUpload)*msPerByteBits/link, PrepareMs), prepareMostMs)
}

// admitUpload reports whether what a bid wants to send has room on the rig: an image, and files on the job's disk.
func admitUpload(o Offer, b Bid) error {
	most := filesMost(o, b) + MaxArchive
	if b.Upload > most {
		return NewError(CodeBadLimits, "limit", "an upload of "+megabytes(b.Upload), "most", megabytes(most))
	}
	return nil
}

// AdmitJob reports whether a job is the one of its bid and may bring what it brings: an image where the offer takes such, and files
// for which its disk has room. It does not know whether the rig has an image that is not brought.
func AdmitJob(o Offer, b Bid, j Job) error {
	if err := j.Validate(); err != nil {
		return err
	}
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", "job", "why", why) }
	switch {
	case j.Hash() != b.Job:
		return bad("it is not the job of the bid")
	case j.Archive > 0 && !o.Rules.Brings:
		return NewError(CodeNoBring)
	case j.Archive > b.Upload:
		return bad("its image is larger than what the bid says is sent")
	case b.Upload-j.Archive > filesMost(o, b):
		return NewError(CodeBadLimits, "limit", "an upload of "+megabytes(b.Upload-j.Archive), "most", megabytes(filesMost(o, b)))
	}
	return nil
}

// filesMost is the most bytes of files that fit the disk of a bid; one more says that some are sent at all.
func filesMost(o Offer, b Bid) int64 {
	return o.DiskMB(int(b.Count), b.Resources.DiskMB)*bytesPerMB + 1
}

func megabytes(bytes int64) string { return strconv.FormatInt(bytes/bytesPerMB, 10) + " MB" }

// prepared takes that the container exists. Where the renter sends something first, the job waits for that.
func (l Lease) prepared(now Instant) (Lease, []Action, error) {
	switch {
	case l.Job == JobGranted:
		l.Ready = l.Early
		return l, nil, nil
	case l.Job != JobPreparing:
		return l, nil, nil // a late echo
	}
	l.Ready, l.Disk = true, l.Attempt
	return l.launch(now)
}

// begin takes the renter's word that all has arrived. Repeated, late, or where nothing was to be sent, it changes nothing.
func (l Lease) begin(now Instant) (Lease, []Action, error) {
	if l.Job == JobGranted {
		return l, nil, l.misfit(Begin{})
	}
	if l.Job != JobPreparing || l.Begun {
		return l, nil, nil
	}
	l.Begun = true
	return l.launch(now)
}

// launch starts a job that is ready and waits for nothing: not for the renter's bytes, nor for its money.
func (l Lease) launch(now Instant) (Lease, []Action, error) {
	if !l.Ready || l.Awaits() || !l.Funded() {
		return l, nil, nil
	}
	return l.into(JobStarting, now), []Action{Start{}}, nil
}

// Awaits reports whether the job does not start before the renter has sent what it wants to send.
func (l Lease) Awaits() bool { return l.Terms.Upload > 0 && !l.Begun }
