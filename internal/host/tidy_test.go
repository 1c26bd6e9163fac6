package host_test

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"haggle/market"
	"haggle/runtime/runtimetest"
)

// brought lists the digests of the images in the engine that renters brought.
func (r *rig) brought() []string {
	r.t.Helper()
	synctest.Wait()
	images, err := r.engine.Images(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	var digests []string
	for _, i := range images {
		if strings.HasPrefix(i.Name, "brought-") {
			digests = append(digests, i.Digest)
		}
	}
	return digests
}

func (r *rig) wantBrought(digests ...string) {
	r.t.Helper()
	got := r.brought()
	slices.Sort(got)
	slices.Sort(digests)
	if !slices.Equal(got, digests) {
		r.t.Errorf("the engine has the images %q, want %q", got, digests)
	}
}

// once brings an image of so many bytes, and has its lease ended before the job starts.
func (r *rig) once(name string, size int) (a *renter, data []byte, digest string) {
	r.t.Helper()
	data, digest = imageOf(r.t, name, size)
	a = newRenter(r, name)
	a.bring(digest, len(data))
	if err := a.upload(data); err != nil {
		r.t.Fatal(err)
	}
	a.say(market.StopMessage{})
	pass(time.Second)
	return a, data, digest
}

// again rents once more from the same image, and reports whether the rig has it.
func (r *rig) again(name, digest string, size int) bool {
	r.t.Helper()
	a := newRenter(r, name)
	a.orderImage(digest, size)
	a.bid.Nonce = market.Nonce{9}
	a.sent.Bid = market.SealBid(network, a.key, a.bid).Encode()
	if err := a.send(); err != nil {
		r.t.Fatal(err)
	}
	a.accept()
	synctest.Wait()
	ready := a.status().Ready
	a.say(market.StopMessage{})
	pass(time.Second)
	return ready
}

func TestAnImageStaysForADayForTheRenterWhoBroughtIt(t *testing.T) {
	bringing(t, nil, func(t *testing.T, r *rig) {
		before, _, _ := r.offer()
		_, data, digest := r.once("ann", 50_000)
		pass(time.Minute)
		if o, _, _ := r.offer(); before.Host.DiskFree-o.Host.DiskFree < 2*50_000/10*9 {
			t.Errorf("the offer promised %d bytes of disk, and %d beside an image", before.Host.DiskFree, o.Host.DiskFree)
		}
		r.stop()
		r.start() // who brought it is not forgotten
		pass(12 * time.Hour)
		if !r.again("ann", digest, len(data)) {
			t.Error("the renter has to bring it again")
		}
		pass(23 * time.Hour)
		r.wantBrought(digest)
		pass(2 * time.Hour)
		r.wantBrought()
		if o, _, _ := r.offer(); o.Host.DiskFree != before.Host.DiskFree {
			t.Errorf("the offer promises %d bytes of disk, and not %d", o.Host.DiskFree, before.Host.DiskFree)
		}
		if images, err := r.engine.Images(t.Context()); err != nil || len(images) != 1 {
			t.Errorf("of the owner's there are %v: %v", images, err)
		}
	})
}

func TestWhoHasOnlySaidThatItWouldBringAnImageHasNoProofOfItAfterARestart(t *testing.T) {
	bringing(t, nil, func(t *testing.T, r *rig) {
		_, data, digest := r.once("ann", 50_000)
		eve := newRenter(r, "eve")
		eve.bring(digest, len(data))
		eve.say(market.StopMessage{})
		pass(time.Second)
		r.stop()
		r.start()
		pass(time.Second)
		if r.again("eve", digest, len(data)) {
			t.Error("it is started from the image of another")
		}
	})
}

func TestOfTooManyImagesTheOldestThatNoLeaseNeedsGoes(t *testing.T) {
	bringing(t, nil, func(t *testing.T, r *rig) {
		data, needed := imageOf(t, "needed", 1000)
		a := newRenter(r, "zoe")
		a.bring(needed, len(data))
		if err := a.upload(data); err != nil {
			t.Fatal(err)
		}
		a.say(market.BeginMessage{})
		want := []string{needed}
		for n := range 10 {
			_, _, digest := r.once("renter"+strconv.Itoa(n), 1000)
			want = append(want, digest)
			pass(time.Minute)
		}
		r.wantBrought(slices.Concat(want[:1], want[4:])...)
		a.wantState(market.JobRunning, "")
	})
}

func TestImagesThatNoLeaseNeedsGoWhenTheDiskIsShort(t *testing.T) {
	var room atomic.Int64
	room.Store(50_000_000)
	bringing(t, func(r *rig) {
		r.config.SpoolSpace = func() (int64, int64, error) { return room.Load(), 100_000_000, nil }
	}, func(t *testing.T, r *rig) {
		_, _, first := r.once("ann", 1000)
		data, second := imageOf(t, "bob", 1000)
		b := newRenter(r, "bob")
		b.bring(second, len(data))
		if err := b.upload(data); err != nil {
			t.Fatal(err)
		}
		b.say(market.BeginMessage{})
		r.wantBrought(first, second)
		room.Store(9_000_000)
		pass(market.OfferRenewal + time.Second)
		r.wantBrought(second)
	})
}

func TestAnImageMakesRoomForTheNext(t *testing.T) {
	const size = 10_000_000
	var r *rig
	bringing(t, func(created *rig) {
		r = created
		r.config.SpoolSpace = func() (int64, int64, error) {
			images, err := r.engine.Images(context.Background())
			free := int64(50_000_000)
			for _, i := range images {
				if strings.HasPrefix(i.Name, "brought-") {
					free -= 2 * i.Size
				}
			}
			return free, 100_000_000, err
		}
	}, func(t *testing.T, r *rig) {
		_, _, first := r.once("ann", size)
		r.wantBrought(first)
		_, _, second := r.once("bob", size)
		r.wantBrought(second)
	})
}

func TestAnImageStaysWhileItsLeaseIsPaused(t *testing.T) {
	bringing(t, nil, func(t *testing.T, r *rig) {
		data, digest := imageOf(t, "ours", 1000)
		a := newRenter(r, "ann")
		a.orderImage(digest, len(data))
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.accept()
		if err := a.upload(data); err != nil {
			t.Fatal(err)
		}
		a.say(market.BeginMessage{})
		pass(time.Second)
		a.keep()
		pass(30 * time.Minute)
		r.wantBrought(digest)
		a.say(market.ResumeMessage{})
		pass(time.Second)
		a.wantState(market.JobRunning, "")
	})
}

func TestAnImageThatNobodyCanUseGoesAndTheOwnersStay(t *testing.T) {
	data, digest := imageOf(t, "both", 1000)
	bringing(t, func(r *rig) {
		addImage(r.engine, "brought-3")
		addImage(r.engine, "brought-4")
		for _, name := range []string{"brought-5", "ours"} {
			if _, err := r.engine.Import(r.t.Context(), name, bytes.NewReader(data)); err != nil {
				r.t.Fatal(err)
			}
		}
	}, func(t *testing.T, r *rig) {
		pass(time.Hour)
		r.wantBrought(digest) // by its other name it is the owner's
		if o, _, _ := r.offer(); len(o.Host.Images) != 2 {
			t.Errorf("the offer lists %v", o.Host.Images)
		}
	})
}

// lingering takes its time to remove an image.
type lingering struct {
	*runtimetest.Fake
	begun, over chan struct{}
}

func (l *lingering) RemoveImage(ctx context.Context, digest string) error {
	close(l.begun)
	<-l.over
	return l.Fake.RemoveImage(ctx, digest)
}

func TestAnImageThatComesBackWhileItIsRemovedIsNotRemoved(t *testing.T) {
	var l *lingering
	bringing(t, func(r *rig) {
		l = &lingering{r.engine, make(chan struct{}), make(chan struct{})}
		r.config.Runtime = l
	}, func(t *testing.T, r *rig) {
		_, data, digest := r.once("ann", 1000)
		pass(25 * time.Hour)
		select {
		case <-l.begun:
		default:
			t.Fatal("it is not removed")
		}
		b := newRenter(r, "bob")
		b.bring(digest, len(data))
		uploaded := make(chan error, 1)
		go func() { uploaded <- b.upload(data) }()
		pass(time.Second)
		close(l.over)
		if err := <-uploaded; err != nil {
			t.Fatal(err)
		}
		r.wantBrought(digest)
		b.say(market.BeginMessage{})
		pass(time.Second)
		b.wantState(market.JobRunning, "")
	})
}
