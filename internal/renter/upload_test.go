package renter_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// write makes files below a folder, by name.
func write(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s: %q, %v; want %q", path, got, err, want)
	}
}

func running(l view.Lease) bool { return l.State == string(market.JobRunning) }

func bringing(r *testRig) { r.update(func(o *market.Offer) { o.Rules.Brings = true }) }

func TestAFolderIsInTheJobBeforeItBegins(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = time.Minute }), func(t *testing.T, h *house) {
		src := write(t, t.TempDir(), map[string]string{"main.py": "print(1)", "lib/a.py": "a", "junk.log": "x", ".gitignore": "*.log\n"})
		l := h.mustBid(func(r *view.BidRequest) { r.Src, r.SrcIgnore = src, true })
		l = h.until(l.ID, "running", running)
		rig := h.rigLease(0)
		wantFile(t, filepath.Join(rig.work, "lib/a.py"), "a")
		if _, err := os.Stat(filepath.Join(rig.work, "junk.log")); err == nil {
			t.Error("what .gitignore names was sent")
		}
		if rig.job.Workdir != "/work" || rig.state.Terms.Upload != int64(len("print(1)a*.log\n"))+1 {
			t.Errorf("the job begins in %q, of %d bytes", rig.job.Workdir, rig.state.Terms.Upload)
		}
		if l.Uploading != nil {
			t.Errorf("still uploading: %+v", l.Uploading)
		}
	})
}

func TestAnImageIsBroughtAndGoesOnWhereItBroke(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { bringing(r); r.hurt = errCut }), func(t *testing.T, h *house) {
		image := filepath.Join(t.TempDir(), "mine.tar")
		data := bytes.Repeat([]byte("layer"), 50_000)
		if err := os.WriteFile(image, data, 0o600); err != nil {
			t.Fatal(err)
		}
		l := h.mustBid(func(r *view.BidRequest) { r.Image, r.ImageFile = "", image })
		h.until(l.ID, "running", running)
		rig := h.rigLease(0)
		if !bytes.Equal(rig.image, data) || h.rig(0).imaged != int64(len(data)) {
			t.Errorf("%d bytes came for an image of %d", h.rig(0).imaged, len(data))
		}
		if l := h.lease(l.ID); l.Image != "mine.tar" {
			t.Errorf("the image is called %q", l.Image)
		}
	})
}

func TestARigThatTakesNoImagesGetsNoBid(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		image := filepath.Join(write(t, t.TempDir(), map[string]string{"i.tar": "i"}), "i.tar")
		_, err := h.bid(func(r *view.BidRequest) { r.Image, r.ImageFile = "", image })
		wantCode(t, err, market.CodeNoBring)
		_, err = h.bid(func(r *view.BidRequest) { r.ImageFile = image })
		wantCode(t, err, market.CodeBadRequest)
	})
}

func TestAnUploadThatCannotBeDoneEndsTheLeaseForNothing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, h *house, src, image string)
		code  market.Code
	}{
		"the image has changed": {func(t *testing.T, _ *house, _, image string) {
			write(t, filepath.Dir(image), map[string]string{"i.tar": "other bytes"})
		}, market.CodeFileChanged},
		"the folder is gone": {func(t *testing.T, _ *house, src, _ string) {
			if err := os.RemoveAll(src); err != nil {
				t.Error(err)
			}
		}, market.CodeFileNotFound},
		"another image of the same size": {func(t *testing.T, _ *house, _, image string) {
			write(t, filepath.Dir(image), map[string]string{"i.tar": "I"})
		}, market.CodeArchiveMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, oneRig(bringing), func(t *testing.T, h *house) {
				src := write(t, filepath.Join(t.TempDir(), "src"), map[string]string{"f": "f"})
				image := filepath.Join(write(t, t.TempDir(), map[string]string{"i.tar": "i"}), "i.tar")
				h.rig(0).set(func() {
					h.rig(0).cheat.grant = func(*market.Terms) { c.spoil(t, h, src, image) }
				})
				l := h.mustBid(func(r *view.BidRequest) { r.Image, r.ImageFile, r.Src = "", image, src })
				l = h.until(l.ID, "settled", settled)
				if l.Error == nil || l.Error.Code != string(c.code) || l.Signed.Micro != 0 {
					t.Errorf("at the end %+v: %s", l.Error, l.Signed.Text)
				}
			})
		})
	}
}

func TestAnAgentThatRestartsGoesOnWithItsUpload(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) {
		bringing(r)
		r.shut = market.NewError(market.CodeNoDoor, "state", "preparing")
	}), func(t *testing.T, h *house) {
		src := write(t, t.TempDir(), map[string]string{"f": "f"})
		image := filepath.Join(write(t, t.TempDir(), map[string]string{"i.tar": "i"}), "i.tar")
		l := h.mustBid(func(r *view.BidRequest) { r.Image, r.ImageFile, r.Src = "", image, src })
		pass(20 * time.Second)
		if h.rig(0).doors == 0 || h.lease(l.ID).State != "preparing" {
			t.Fatalf("after a while: %+v", h.lease(l.ID))
		}
		h.down()
		h.rig(0).set(func() { h.rig(0).shut = nil })
		h.up()
		h.until(l.ID, "running", running)
		wantFile(t, filepath.Join(h.rigLease(0).work, "f"), "f")
		if h.rig(0).imaged != 1 {
			t.Errorf("%d bytes of an image of 1 came", h.rig(0).imaged)
		}
	})
}

func TestSecretsReachTheJobAndNoStore(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.dropAccept = true }), func(t *testing.T, h *house) {
		l := h.mustBid(func(r *view.BidRequest) { r.Secrets = []view.Secret{{Name: "token", Value: []byte("hush-hush")}} })
		h.until(l.ID, "running", running)
		rig := h.rigLease(0)
		if len(rig.secrets) != 1 || string(rig.secrets[0].Value) != "hush-hush" || rig.job.Secrets != 1 {
			t.Errorf("the rig has %v for a job of %d", rig.secrets, rig.job.Secrets)
		}
		for _, r := range h.store.records {
			if data := market.EncodeState(r); bytes.Contains(data, []byte("hush")) || bytes.Contains(data, []byte("token")) {
				t.Error("the store holds a secret")
			}
		}
	})
}

func TestALeaseWhoseSecretsWereLostNeverBegins(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.cheat.grant = func(*market.Terms) { r.dropAccept = true } }), func(t *testing.T, h *house) {
		h.rig(0).set(func() {
			h.rig(0).cheat.grant = func(*market.Terms) { h.rig(0).dropAccept = true; h.rig(0).down = true }
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = h.bid(func(r *view.BidRequest) { r.Secrets = []view.Secret{{Name: "token", Value: []byte("hush")}} })
		}()
		pass(2 * time.Second)
		h.down()
		<-done
		h.rig(0).setDown(false)
		h.up()
		pass(5 * time.Second)
		list, err := h.agent.Leases(t.Context(), true)
		if err != nil || len(list) != 1 || list[0].Error == nil || list[0].Error.Code != string(market.CodeSecretsLost) {
			t.Fatalf("leases: %+v, %v", list, err)
		}
		pass(time.Minute)
		if list, _ = h.agent.Leases(t.Context(), true); list[0].BilledMs != 0 || h.agent.OpenLeases() != 0 {
			t.Errorf("it goes on: %+v", list[0])
		}
	})
}

func TestRefusesAnInsideThatCannotBe(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		for name, c := range map[string]struct {
			change func(*view.BidRequest)
			code   market.Code
		}{
			"a name with a blank":       {func(r *view.BidRequest) { r.Name = "my job" }, market.CodeBadName},
			"too many labels":           {func(r *view.BidRequest) { r.Labels = strings.Split(strings.Repeat("a,", 17), ",") }, market.CodeBadRequest},
			"port 0":                    {func(r *view.BidRequest) { r.Ports = []view.Port{{}} }, market.CodeBadRequest},
			"two ports of one name":     {func(r *view.BidRequest) { r.Ports = []view.Port{{Name: "ui", Port: 1}, {Name: "ui", Port: 2}} }, market.CodeBadRequest},
			"a relative folder":         {func(r *view.BidRequest) { r.Src = "src" }, market.CodeBadRequest},
			"a folder that is not":      {func(r *view.BidRequest) { r.Src = filepath.Join(h.dir, "none") }, market.CodeFileNotFound},
			"collecting from above":     {func(r *view.BidRequest) { r.Collect = []view.Collect{{Remote: "../x", Local: h.dir}} }, market.CodeBadRequest},
			"collecting to nowhere":     {func(r *view.BidRequest) { r.Collect = []view.Collect{{Remote: "out", Local: "out"}} }, market.CodeBadRequest},
			"a secret without a name":   {func(r *view.BidRequest) { r.Secrets = []view.Secret{{}} }, market.CodeBadRecord},
			"secrets that are too much": {func(r *view.BidRequest) { r.Secrets = []view.Secret{{Name: "a", Value: make([]byte, 49<<10)}} }, market.CodeBadRecord},
			"checkpoints of all":        {func(r *view.BidRequest) { r.Checkpoint = &view.Checkpoint{Dir: "/work"} }, market.CodeBadRequest},
			"checkpoints to a file":     {func(r *view.BidRequest) { r.Checkpoint = &view.Checkpoint{To: []string{"/tmp"}} }, market.CodeBadRequest},
			"checkpoints to no lease":   {func(r *view.BidRequest) { r.Checkpoint = &view.Checkpoint{To: []string{"lease:abcdef"}} }, market.CodeLeaseUnknown},
			"resuming nothing":          {func(r *view.BidRequest) { r.Resume = "abcdef" }, market.CodeLeaseUnknown},
		} {
			_, err := h.bid(c.change)
			if market.CodeOf(err) != c.code {
				t.Errorf("%s: %v, want code %s", name, err, c.code)
			}
		}
		if h.rig(0).bids != 0 {
			t.Errorf("%d bids were sent", h.rig(0).bids)
		}
	})
}
