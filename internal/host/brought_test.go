package host_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/host"
	"haggle/market"
)

func TestAnArchiveIsTakenInItsTimeOnly(t *testing.T) {
	data, digest := imageOf(t, "ours", 50_000)
	bringing(t, nil, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		_, _, err := a.imageTunnel() // the rig has that image
		wantCode(t, err, market.CodeBadRequest)
		b := newRenter(r, "bob")
		b.orderImage(digest, len(data))
		if err := b.send(); err != nil {
			t.Fatal(err)
		}
		_, _, err = b.imageTunnel() // not signed within 10 s
		wantCode(t, err, market.CodeBadState)
		b.accept()
		if err := b.upload(data); err != nil {
			t.Fatal(err)
		}
		s, at, err := b.imageTunnel() // again, as if the answer had been lost
		if err != nil || at != int64(len(data)) {
			t.Fatalf("offset %d: %v", at, err)
		}
		_ = s.Send(t.Context(), market.EndMessage{})
		if m, err := s.Receive(t.Context()); err != nil || m != (market.EndMessage{}) {
			t.Errorf("got %v: %v", m, err)
		}
		b.say(market.StopMessage{})
		pass(time.Second)
		_, _, err = b.imageTunnel()
		wantCode(t, err, market.CodeLeaseEnded)
	})
}

func TestAnImageIsBroughtOnlyWhereItsOwnerAndItsDiskAllowIt(t *testing.T) {
	data, digest := imageOf(t, "ours", 50_000)
	for name, c := range map[string]struct {
		change func(r *rig)
		code   market.Code
	}{
		"the owner takes none": {func(r *rig) { r.config.Bring = false }, market.CodeNoBring},
		"its digest is denied": {func(r *rig) { r.config.Images = host.ImageRules{Deny: []string{digest}} }, market.CodeImageRefused},
		"others are allowed":   {func(r *rig) { r.config.Images = host.ImageRules{Allow: []string{"lab"}} }, market.CodeImageRefused},
		"the disk is full": {func(r *rig) {
			r.config.SpoolSpace = func() (int64, int64, error) { return 10_040_000, 100_000_000, nil }
		}, market.CodeNoRoom},
	} {
		t.Run(name, func(t *testing.T) {
			bringing(t, c.change, func(t *testing.T, r *rig) {
				a := newRenter(r, "ann")
				a.orderImage(digest, len(data))
				wantCode(t, a.send(), c.code)
				if r.free() != 2 {
					t.Errorf("%d slots are free", r.free())
				}
			})
		})
	}
}

func TestADiskThatFillsUpEndsTheTransferAndNotTheLease(t *testing.T) {
	data, digest := imageOf(t, "ours", 50_000)
	room := int64(50_000_000)
	bringing(t, func(r *rig) {
		r.config.SpoolSpace = func() (int64, int64, error) { return room, 100_000_000, nil }
	}, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.bring(digest, len(data))
		synctest.Wait()
		room = 10_000_000
		s, _, err := a.imageTunnel()
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Receive(t.Context())
		wantCode(t, err, market.CodeNoRoom)
		room = 50_000_000
		if err := a.upload(data); err != nil {
			t.Error(err)
		}
	})
}

func TestAWholeArchiveOutlivesARestart(t *testing.T) {
	data, digest := imageOf(t, "ours", 50_000)
	bringing(t, nil, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.bring(digest, len(data))
		r.engine.SetDown(true)
		s, _, err := a.imageTunnel()
		if err != nil {
			t.Fatal(err)
		}
		_ = chunks(t, s, data, market.MaxChunk)
		_ = s.Send(t.Context(), market.EndMessage{})
		pass(5 * time.Second)
		r.stop()
		stray := filepath.Join(r.config.Spool, "stray")
		if err := os.WriteFile(stray, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r.engine.SetDown(false)
		r.start()
		pass(time.Second)
		a.connect()
		if s := a.status(); !s.Ready {
			t.Errorf("status %+v", s)
		}
		if left := r.spooled(); len(left) > 0 {
			t.Errorf("%v bytes are left in the spool", left)
		}
	})
}

func TestWhoSendsOnAfterTheEndIsNotHeardAndTheJobIsMade(t *testing.T) {
	data, digest := imageOf(t, "ours", 50_000)
	bringing(t, nil, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.bring(digest, len(data))
		r.engine.SetDown(true)
		s, _, err := a.imageTunnel()
		if err != nil {
			t.Fatal(err)
		}
		_ = chunks(t, s, data, market.MaxChunk)
		_ = s.Send(t.Context(), market.EndMessage{})
		_ = s.Send(t.Context(), market.ChunkMessage{Data: data[:10]})
		if _, err := s.Receive(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("got %v", err)
		}
		r.engine.SetDown(false)
		pass(15 * time.Second)
		if s := a.status(); !s.Ready {
			t.Errorf("status %+v", s)
		}
	})
}
