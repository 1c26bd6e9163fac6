package renter_test

import (
	"testing"
	"time"

	"haggle/internal/view"
)

func TestARigThatFallsSilentIsSpokenTo(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		h.until(l.ID, "with a receipt", func(l view.Lease) bool { return l.Receipts > 0 })
		repeats := func() (n int) {
			h.rig(0).set(func() { n = h.rig(0).repeats })
			return n
		}
		pass(time.Minute)
		if n := repeats(); n > 0 {
			t.Errorf("a rig that speaks got its newest receipt %d times again", n)
		}
		h.rig(0).set(func() { h.rig(0).cheat.mute = true })
		pass(14 * time.Second) // its last word may be 5 s old
		if n := repeats(); n == 0 || n > 2 {
			t.Errorf("a silent rig got its newest receipt %d times again", n)
		}
	})
}
