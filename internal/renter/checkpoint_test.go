package renter_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"haggle/internal/tunnel"
	"haggle/internal/view"
	"haggle/market"
)

func everyMinute(to ...string) func(*view.BidRequest) {
	return func(r *view.BidRequest) { r.Checkpoint = &view.Checkpoint{EveryMs: 60_000, To: to} }
}

func TestCheckpointsAreTakenKeptAndResumedElsewhere(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(everyMinute())
		h.until(l.ID, "running", running)
		disk := h.rigLease(0).work
		for _, step := range []string{"1", "2", "3", "4", "5"} {
			write(t, disk, map[string]string{"ckpt/step": step, "ckpt/half.tmp": "no"})
			pass(2 * time.Minute) // the second look finds nothing new
		}
		list, err := h.agent.Checkpoints(t.Context(), l.ID)
		if err != nil || len(list) != 3 || list[2].Seq != 5 || list[2].Where != "renter" {
			t.Fatalf("checkpoints: %+v, %v", list, err)
		}
		files, err := filepath.Glob(filepath.Join(h.dir, "checkpoints", l.ID, "*.age"))
		if err != nil || len(files) != 3 {
			t.Errorf("files: %v, %v", files, err)
		}
		if info, err := os.Stat(filepath.Join(h.dir, "key")); err != nil || info.Mode() != 0o600 {
			t.Errorf("key: %v, %v", info, err)
		}
		now, err := h.agent.CheckpointNow(t.Context(), l.ID)
		if err != nil || now.Seq != 5 {
			t.Errorf("a checkpoint of the same state: %+v, %v", now, err)
		}
		h.rig(0).set(func() {
			h.rig(0).final = func(dir string) { write(t, dir, map[string]string{"ckpt/step": "6"}) }
		})
		if _, err := h.agent.Stop(t.Context(), l.ID, false); err != nil {
			t.Fatal(err)
		}
		h.until(l.ID, "settled", settled)
		pass(time.Second)

		next := h.mustBid(func(r *view.BidRequest) { r.Resume = l.ID[:6] })
		h.until(next.ID, "running", running)
		rig := h.rig(0)
		var second *rigLease
		rig.set(func() {
			for id, l := range rig.leases {
				if id.String() == next.ID {
					second = l
				}
			}
		})
		wantFile(t, filepath.Join(second.work, "ckpt/step"), "6") // what it wrote when it was told to end
		if !slices.Contains(second.env, "HAGGLE_RESUME=1") || !slices.Contains(second.env, "HAGGLE_ATTEMPT=2") {
			t.Errorf("the job's environment is %v", second.env)
		}
		if h.lease(next.ID).Resumed != l.ID {
			t.Errorf("resumed: %+v", h.lease(next.ID))
		}
		if open, _ := filepath.Glob(filepath.Join(h.dir, "checkpoints", ".open-*")); len(open) > 0 {
			t.Errorf("an opened checkpoint stays: %v", open)
		}
	})
}

func TestACheckpointOnAnotherLeasesDiskComesBack(t *testing.T) {
	inHouse(t, rigs(
		func() *testRig { return newRig(1, "attic", 400_000) },
		func() *testRig { return newRig(2, "cellar", 500_000) },
	), func(t *testing.T, h *house) {
		safe := h.mustBid(func(r *view.BidRequest) { r.Query, r.Name = "dph>0.45", "safe" })
		h.until(safe.ID, "running", running)
		l := h.mustBid(everyMinute("lease:safe"))
		h.until(l.ID, "running", running)
		write(t, h.rigLease(0).work, map[string]string{"ckpt/step": "9"})
		pass(2 * time.Minute)
		list, err := h.agent.Checkpoints(t.Context(), l.ID)
		if err != nil || len(list) != 1 || list[0].Where != "lease:safe" {
			t.Fatalf("checkpoints: %+v, %v", list, err)
		}
		if files, _ := filepath.Glob(filepath.Join(h.dir, "checkpoints", l.ID, "*.age")); len(files) != 0 {
			t.Errorf("this machine keeps %v", files)
		}
		data, err := os.ReadFile(filepath.Join(h.rigLease(1).work, ".haggle-checkpoints", l.ID, "000001.age"))
		if err != nil || !strings.HasPrefix(string(data), "age-encryption.org/v1") {
			t.Errorf("on the other disk: %.30q, %v", data, err)
		}
		h.rig(0).setDown(true) // the first rig is lost
		next := h.mustBid(func(r *view.BidRequest) { r.Query, r.Resume = "dph>0.45", l.ID })
		h.until(next.ID, "running", running)
		var second *rigLease
		h.rig(1).set(func() {
			for id, l := range h.rig(1).leases {
				if id.String() == next.ID {
					second = l
				}
			}
		})
		wantFile(t, filepath.Join(second.work, "ckpt/step"), "9")
	})
}

func TestADoorIsToldWhichURLCheckpointsGoTo(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(everyMinute("https://bucket.example/ckpt-{seq}?signature=x"))
		h.until(l.ID, "running", running)
		pass(time.Minute)
		data, err := os.ReadFile(filepath.Join(h.rigLease(0).work, "pushed.json"))
		if err != nil || !strings.Contains(string(data), `"url":"https://bucket.example/ckpt-{seq}?signature=x"`) || !strings.Contains(string(data), `"every_ms":60000`) {
			t.Errorf("the door was told %s, %v", data, err)
		}
		k, err := h.agent.CheckpointNow(t.Context(), l.ID)
		if err != nil || k.Seq != 4 || k.Where != "url" {
			t.Errorf("pushed now: %+v, %v", k, err)
		}
		if got := h.lease(l.ID).Checkpoints; len(got) != 1 || got[0].Seq != 4 {
			t.Errorf("checkpoints: %+v", got)
		}
	})
}

func TestThereIsNoCheckpointOfAJobThatWroteNone(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = 5 * time.Minute }), func(t *testing.T, h *house) {
		l := h.mustBid(everyMinute())
		h.until(l.ID, "running", running)
		_, err := h.agent.CheckpointNow(t.Context(), l.ID)
		wantCode(t, err, market.CodeCheckpointNone)
		h.until(l.ID, "settled", settled)
		_, err = h.bid(func(r *view.BidRequest) { r.Resume = l.ID })
		wantCode(t, err, market.CodeCheckpointNone)
	})
}

func TestAHostileDoorGivesNoCheckpoint(t *testing.T) {
	header := `{"digest":"` + strings.Repeat("d", 64) + `","files":1,"bytes":1,"follows":true}` + "\n"
	for name, c := range map[string]struct {
		spoil func(io.Writer) error
		code  market.Code
	}{
		"a line without end": {func(w io.Writer) error { return endless(w, "x") }, market.CodeUnexpected},
		"no JSON":            {func(w io.Writer) error { _, err := io.WriteString(w, "hello\n"); return err }, market.CodeUnexpected},
		"a digest too long": {func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Replace(header, "dd", strings.Repeat("d", 999), 1))
			return err
		}, market.CodeUnexpected},
		"no digest": {func(w io.Writer) error { _, err := io.WriteString(w, "{}\n"); return err }, market.CodeUnexpected},
		"more than the disk": {func(w io.Writer) error {
			_, err := io.WriteString(w, header)
			return errors.Join(err, endless(w, strings.Repeat("x", 64<<10)))
		}, market.CodeCopyFailed},
		"an error in the middle": {func(w io.Writer) error {
			_, err := io.WriteString(w, header+"some")
			return errors.Join(err, &tunnel.Error{Code: tunnel.CodeFailed, Message: "\x1b[2Jno"})
		}, market.CodeCopyFailed},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, oneRig(func(r *testRig) { r.spoil = c.spoil }), func(t *testing.T, h *house) {
				l := h.mustBid(func(r *view.BidRequest) { r.DiskMB = 1 })
				h.until(l.ID, "running", running)
				_, err := h.agent.CheckpointNow(t.Context(), l.ID)
				wantCode(t, err, c.code)
				if strings.ContainsRune(err.Error(), 0x1b) {
					t.Errorf("the error carries control characters: %q", err)
				}
				files, _ := filepath.Glob(filepath.Join(h.dir, "checkpoints", "*", "*"))
				hidden, _ := filepath.Glob(filepath.Join(h.dir, "checkpoints", "*", ".*"))
				if len(files)+len(hidden) > 0 {
					t.Errorf("there is %v %v", files, hidden)
				}
			})
		})
	}
}

func endless(w io.Writer, piece string) error {
	for {
		if _, err := io.WriteString(w, piece); err != nil {
			return err
		}
	}
}

func TestTheKeyOfCheckpointsIsMadeOnceAndReadAgain(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(everyMinute())
		h.until(l.ID, "running", running)
		write(t, h.rigLease(0).work, map[string]string{"ckpt/step": "1"})
		if _, err := h.agent.CheckpointNow(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(filepath.Join(h.dir, "key"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(h.dir, "checkpoints", ".open-1", "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		h.down()
		h.up()
		pass(time.Second)
		if left, _ := filepath.Glob(filepath.Join(h.dir, "checkpoints", ".open-*")); len(left) > 0 {
			t.Errorf("what a crash left stays: %v", left)
		}
		write(t, h.rigLease(0).work, map[string]string{"ckpt/step": "2"})
		if k, err := h.agent.CheckpointNow(t.Context(), l.ID); err != nil || k.Seq != 2 {
			t.Errorf("%+v, %v", k, err)
		}
		wantFile(t, filepath.Join(h.dir, "key"), string(before))
		write(t, h.dir, map[string]string{"key": "not a key"})
		write(t, h.rigLease(0).work, map[string]string{"ckpt/step": "3"})
		if _, err := h.agent.CheckpointNow(t.Context(), l.ID); market.CodeOf(err) != market.CodeInternal {
			t.Errorf("with a broken key: %v", err)
		}
	})
}
