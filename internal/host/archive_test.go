package host_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"haggle/market"
	"haggle/runtime/archive"
)

// imageOf makes an archive with an image whose entry point is the probe, padded by so many bytes.
func imageOf(t *testing.T, word string, pad int) (data []byte, digest string) {
	t.Helper()
	content := bytes.Repeat([]byte(word), pad/len(word)+1)
	var out bytes.Buffer
	digest, err := archive.Write(&out, archive.Image{Name: "mine", Entrypoint: []string{"probe"}, Files: []archive.File{{
		Path: "data", Mode: 0o644, Size: int64(len(content)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), digest
}

// bringing is a rig that takes images.
func bringing(t *testing.T, change func(r *rig), test func(t *testing.T, r *rig)) {
	t.Helper()
	spool := filepath.Join(t.TempDir(), "spool")
	inBubbleOf(t, func(r *rig) {
		r.config.Bring, r.config.Spool = true, spool
		if change != nil {
			change(r)
		}
	}, test)
}

// orderImage bids for a job whose image the renter brings.
func (a *renter) orderImage(digest string, size int) {
	a.order([]string{"polite"}, func(b *market.Bid, m *market.BidMessage) {
		m.Job.Image, m.Job.Archive = digest, int64(size)
		b.Job, b.Upload = m.Job.Hash(), int64(size)+1
	})
}

// bring rents with an image of the renter's own, up to where it can be sent.
func (a *renter) bring(digest string, size int) {
	a.t.Helper()
	a.orderImage(digest, size)
	if err := a.send(); err != nil {
		a.t.Fatal(err)
	}
	a.accept()
	synctest.Wait()
}

// imageTunnel opens the way for an archive and returns where it is to go on.
func (a *renter) imageTunnel() (*pipe, int64, error) {
	s := ask(a.t, a.rig.open(a.self(), a.rig.ServeTunnel), market.TunnelRequest{Lease: a.id, Kind: market.TunnelImage})
	m, err := s.Receive(a.t.Context())
	if err != nil {
		return s, 0, err
	}
	open, ok := m.(market.OpenMessage)
	if !ok {
		return s, 0, market.Unexpected(m)
	}
	return s, open.Offset, nil
}

// chunks sends bytes until the rig does not take them any more.
func chunks(t *testing.T, s *pipe, data []byte, size int) error {
	t.Helper()
	for len(data) > 0 {
		n := min(size, len(data))
		if err := s.Send(t.Context(), market.ChunkMessage{Data: data[:n]}); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// upload sends a whole archive from where the rig has it, and returns the rig's last word.
func (a *renter) upload(data []byte) error {
	s, at, err := a.imageTunnel()
	if err != nil {
		return err
	}
	if err := chunks(a.t, s, data[at:], market.MaxChunk); err == nil {
		_ = s.Send(a.t.Context(), market.EndMessage{})
	}
	m, err := s.Receive(a.t.Context())
	if err != nil {
		return err
	}
	if _, ok := m.(market.EndMessage); !ok {
		return market.Unexpected(m)
	}
	return nil
}

// spooled lists what lies in the rig's spool.
func (r *rig) spooled() []string {
	r.t.Helper()
	list, err := os.ReadDir(r.config.Spool)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	var names []string
	for _, f := range list {
		info, err := f.Info()
		if err != nil {
			r.t.Fatal(err)
		}
		names = append(names, strconv.FormatInt(info.Size(), 10))
	}
	return names
}

func TestARenterBringsItsImage(t *testing.T) {
	data, digest := imageOf(t, "ours", 300_000)
	bringing(t, nil, func(t *testing.T, r *rig) {
		if o, _, _ := r.offer(); !o.Rules.Brings {
			t.Error("the offer does not say that it takes images")
		}
		a := newRenter(r, "ann")
		a.bring(digest, len(data))
		a.wantState(market.JobPreparing, "")
		// The first stream breaks, the second goes on from there.
		s, at, err := a.imageTunnel()
		if err != nil || at != 0 {
			t.Fatalf("offset %d: %v", at, err)
		}
		if err := chunks(t, s, data[:2*market.MaxChunk], market.MaxChunk); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.stop() // and the rig is started anew
		r.start()
		pass(time.Second)
		a.connect()
		s, at, err = a.imageTunnel()
		if err != nil || at != 2*market.MaxChunk {
			t.Fatalf("offset %d: %v", at, err)
		}
		s.Close()
		synctest.Wait()
		if err := a.upload(data); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := a.status(); s.State != market.JobPreparing || !s.Ready {
			t.Errorf("status %+v", s)
		}
		if left := r.spooled(); len(left) > 0 {
			t.Errorf("%v bytes are left in the spool", left)
		}
		if o, _, _ := r.offer(); len(o.Host.Images) != 1 {
			t.Errorf("the offer lists %v", o.Host.Images)
		}
		a.say(market.BeginMessage{})
		pass(time.Second)
		a.wantState(market.JobRunning, "")

		// The same renter need not send it again. Another must show that it has it.
		b := newRenter(r, "ann")
		b.key = private("ann")
		a.say(market.StopMessage{Kill: true})
		pass(time.Second)
		b.order(nil, nil)
		b.orderImage(digest, len(data))
		b.bid.Nonce = market.Nonce{9}
		b.sent.Bid = market.SealBid(network, b.key, b.bid).Encode()
		if err := b.send(); err != nil {
			t.Fatal(err)
		}
		b.accept()
		synctest.Wait()
		if s := b.status(); !s.Ready {
			t.Errorf("status %+v", s)
		}
		eve := newRenter(r, "eve")
		eve.bring(digest, len(data))
		if s := eve.status(); s.Ready {
			t.Errorf("status %+v", s)
		}
		if _, at, err := eve.imageTunnel(); err != nil || at != 0 {
			t.Errorf("offset %d: %v", at, err)
		}
	})
}

func TestAnArchiveThatIsNotWhatWasSaidStartsNothing(t *testing.T) {
	data, digest := imageOf(t, "ours", 100_000)
	other, _ := imageOf(t, "evil", 100_000)
	garbage := bytes.Repeat([]byte{7}, len(data))
	for name, c := range map[string]struct {
		send []byte
		code market.Code // of the tunnel
		end  market.Code // of the lease; empty: it still waits
	}{
		"another image": {other, market.CodeArchiveMismatch, market.CodeArchiveMismatch},
		"garbage":       {garbage, market.CodeArchiveMismatch, market.CodeArchiveMismatch},
		"too long":      {append(bytes.Clone(data), 1), market.CodeTooLarge, ""},
		"too short":     {data[:len(data)-1], market.CodeBadRequest, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bringing(t, nil, func(t *testing.T, r *rig) {
				a := newRenter(r, "ann")
				a.bring(digest, len(data))
				wantCode(t, a.upload(c.send), c.code)
				synctest.Wait()
				if c.end == "" {
					a.wantState(market.JobPreparing, "")
					a.say(market.StopMessage{})
					pass(time.Second)
				} else {
					a.wantState(market.JobEnded, market.ReasonPrepare)
					if s := a.status(); s.Code != c.end || s.Total != 0 {
						t.Errorf("status %+v", s)
					}
				}
				images, err := r.engine.Images(t.Context())
				if err != nil || len(images) != 1 {
					t.Errorf("the engine has %v: %v", images, err)
				}
				if left := r.spooled(); len(left) > 0 {
					t.Errorf("%v bytes are left in the spool", left)
				}
			})
		})
	}
}

func TestARenterThatSendsAnImageBadlyIsCutOff(t *testing.T) {
	data, digest := imageOf(t, "ours", 100_000)
	for name, c := range map[string]struct {
		send func(t *testing.T, s *pipe)
		code market.Code
	}{
		"nothing":          {func(*testing.T, *pipe) {}, market.CodeTooSlow},
		"an empty chunk":   {func(t *testing.T, s *pipe) { _ = s.Send(t.Context(), market.ChunkMessage{}) }, market.CodeBadRequest},
		"a hello":          {func(t *testing.T, s *pipe) { _ = s.Send(t.Context(), market.Hello{}) }, market.CodeUnexpected},
		"a byte at a time": {func(t *testing.T, s *pipe) { _ = chunks(t, s, data, 1) }, market.CodeTooMany},
	} {
		t.Run(name, func(t *testing.T) {
			bringing(t, nil, func(t *testing.T, r *rig) {
				a := newRenter(r, "ann")
				a.bring(digest, len(data))
				s, _, err := a.imageTunnel()
				if err != nil {
					t.Fatal(err)
				}
				c.send(t, s)
				_, err = s.Receive(t.Context())
				wantCode(t, err, c.code)
				if err := a.upload(data); err != nil { // nothing is spoiled
					t.Error(err)
				}
				synctest.Wait()
				if !a.status().Ready {
					t.Errorf("status %+v", a.status())
				}
			})
		})
	}
}

func TestANewStreamTakesAnArchiveOver(t *testing.T) {
	data, digest := imageOf(t, "ours", 200_000)
	bringing(t, nil, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.bring(digest, len(data))
		old, _, err := a.imageTunnel()
		if err != nil {
			t.Fatal(err)
		}
		_ = chunks(t, old, data[:market.MaxChunk], market.MaxChunk)
		synctest.Wait()
		_, at, err := a.imageTunnel()
		if err != nil || at != market.MaxChunk {
			t.Fatalf("offset %d: %v", at, err)
		}
		select {
		case <-old.shut.done:
		default:
			t.Error("the old stream is still open")
		}
		if err := a.upload(data); err != nil {
			t.Error(err)
		}
	})
}
