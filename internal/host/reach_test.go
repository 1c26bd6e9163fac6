package host_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestTheOfferSaysHowTheRigIsReachedNow(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var kind atomic.Value
		kind.Store("")
		r.stop()
		r.config.Reach = func() string { return kind.Load().(string) }
		r.start()
		if o, _, _ := r.offer(); o.Net.Reach != "" {
			t.Errorf("before anybody knows it is %q", o.Net.Reach)
		}
		first, _, _ := r.offer()
		kind.Store("punched")
		r.Refresh()
		synctest.Wait()
		if o, _, _ := r.offer(); o.Net.Reach != "punched" || o.Seq <= first.Seq {
			t.Errorf("afterwards it is %q", o.Net.Reach)
		}
	})
}
