package renter_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// collected reports whether all of a lease has come home or was given up.
func collected(l view.Lease) bool {
	for _, c := range l.Collects {
		if !c.Done {
			return false
		}
	}
	return ended(l)
}

func collecting(dirs ...string) func(*view.BidRequest) {
	return func(r *view.BidRequest) {
		for i := 0; i < len(dirs); i += 2 {
			r.Collect = append(r.Collect, view.Collect{Remote: dirs[i], Local: dirs[i+1]})
		}
	}
}

func TestWhatAJobLeftComesHome(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = time.Minute }), func(t *testing.T, h *house) {
		home := t.TempDir()
		l := h.mustBid(collecting("out", filepath.Join(home, "out"), "/work/notes.txt", home, "none", home))
		rig := h.rigLease(0)
		write(t, rig.work, map[string]string{"out/a/b": "model", "notes.txt": "well"})
		l = h.until(l.ID, "collected", collected)
		wantFile(t, filepath.Join(home, "out/a/b"), "model")
		wantFile(t, filepath.Join(home, "notes.txt"), "well")
		if c := l.Collects; c[0].Files != 1 || c[0].Bytes != 5 || c[0].Error != "" || c[2].Error != "the job left no none" {
			t.Errorf("collected: %+v", c)
		}
		h.until(l.ID, "settled", settled)
		pass(time.Minute)
		if n := h.agent.OpenLeases(); n != 0 {
			t.Errorf("%d leases are open", n)
		}
	})
}

func TestAnAgentStaysForWhatHasToComeHome(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) {
		r.run, r.shut = time.Minute, market.NewError(market.CodeEngineDown)
	}), func(t *testing.T, h *house) {
		home := t.TempDir()
		l := h.mustBid(collecting("out", home))
		write(t, h.rigLease(0).work, map[string]string{"out/a": "model"})
		h.until(l.ID, "settled", settled)
		pass(time.Hour)
		if h.agent.OpenLeases() != 1 || h.lease(l.ID).Collects[0].Error == "" {
			t.Errorf("%d leases are open: %+v", h.agent.OpenLeases(), h.lease(l.ID).Collects)
		}
		h.down()
		h.rig(0).set(func() { h.rig(0).shut = nil })
		h.up()
		h.until(l.ID, "collected", collected)
		wantFile(t, filepath.Join(home, "a"), "model")
		pass(time.Second)
		if h.agent.OpenLeases() != 0 {
			t.Error("the agent stays for nothing")
		}
	})
}

func TestNothingIsAwaitedFromADiskThatIsGone(t *testing.T) {
	for name, c := range map[string]func(*testing.T, *house, view.Lease){
		"the rig never answers": func(_ *testing.T, h *house, _ view.Lease) {
			h.rig(0).set(func() { h.rig(0).shut = market.NewError(market.CodeEngineDown) })
		},
		"the rig is away": func(_ *testing.T, h *house, l view.Lease) {
			h.until(l.ID, "settled", settled)
			h.rig(0).setDown(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, oneRig(func(r *testRig) { r.run, r.shut = time.Minute, market.NewError(market.CodeEngineDown) }), func(t *testing.T, h *house) {
				l := h.mustBid(collecting("out", t.TempDir()))
				c(t, h, l)
				h.until(l.ID, "settled", settled)
				pass(25 * time.Hour)
				l = h.lease(l.ID)
				if !l.Collects[0].Done || l.Collects[0].Error == "" || h.agent.OpenLeases() != 0 {
					t.Errorf("after a day: %+v, %d open", l.Collects, h.agent.OpenLeases())
				}
			})
		})
	}
}

func TestCopiesBothWaysAndStopsWithItsCaller(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(func(r *view.BidRequest) { r.Name = "trial" })
		h.until(l.ID, "running", running)
		src := write(t, t.TempDir(), map[string]string{"data/x": "12345"})
		var last view.Progress
		report, err := h.agent.Copy(t.Context(), "trial", view.CopyRequest{Push: true, From: filepath.Join(src, "data"), To: "/work/in"},
			func(p view.Progress) { last = p })
		if err != nil || report.Files != 1 || report.Bytes != 5 || last.BytesDone != 5 {
			t.Fatalf("report %+v, %v, progress %+v", report, err, last)
		}
		wantFile(t, filepath.Join(h.rigLease(0).work, "in/data/x"), "12345")
		home := t.TempDir()
		if _, err := h.agent.Copy(t.Context(), l.ID, view.CopyRequest{From: "in/data/", To: home}, nil); err != nil {
			t.Fatal(err)
		}
		wantFile(t, filepath.Join(home, "x"), "12345")

		_, err = h.agent.Copy(t.Context(), l.ID, view.CopyRequest{From: "nothing", To: home}, nil)
		wantCode(t, err, market.CodeFileNotFound)
		_, err = h.agent.Copy(t.Context(), l.ID, view.CopyRequest{From: "in", To: "home"}, nil)
		wantCode(t, err, market.CodeBadRequest)
		h.rig(0).set(func() { h.rig(0).shut = market.NewError(market.CodeTooManyTunnels, "most", "96") })
		_, err = h.agent.Copy(t.Context(), l.ID, view.CopyRequest{From: "in", To: home}, nil)
		wantCode(t, err, market.CodeTooManyTunnels)
		if entries, err := os.ReadDir(home); err != nil || len(entries) != 1 {
			t.Errorf("at home: %v, %v", entries, err)
		}
	})
}
