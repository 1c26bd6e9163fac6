package renter_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// record frames a payload as rigs keep it.
func record(stream byte, payload []byte) []byte {
	head := make([]byte, 8)
	head[0] = stream
	binary.BigEndian.PutUint32(head[4:], uint32(len(payload)))
	return append(head, payload...)
}

func testLog(records int) []byte {
	var log []byte
	for i := range records {
		log = append(log, record(byte(1+i%2), bytes.Repeat([]byte{byte(i)}, 1+i*37%3000))...)
	}
	return append(log, record(0, nil)...)
}

func TestALogOverBrokenTunnelsHasNoGapAndNoRepetition(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		rig, tunnels := h.rig(0), int64(0)
		rig.mu.Lock()
		rig.log = testLog(100)
		rig.logCut = func(int64) int64 { tunnels++; return 3500 + tunnels*7 } // more than a record, so that it gets on
		rig.mu.Unlock()
		r, err := h.agent.Log(t.Context(), l.ID, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, rig.log) {
			t.Errorf("read %d bytes of %d, %v", len(got), len(rig.log), err)
		}
		if tunnels < 10 {
			t.Errorf("only %d tunnels", tunnels)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestALogGoesOnAtAnOffset(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		rig := h.rig(0)
		rig.set(func() { rig.log = testLog(10) })
		offset := int64(len(record(1, make([]byte, 1))))
		r, err := h.agent.Log(t.Context(), l.ID, offset, false)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, rig.log[offset:]) {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
	})
}

func TestAFollowedLogSurvivesARigThatIsAwayForMinutes(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		rig := h.rig(0)
		rig.mu.Lock()
		rig.log = testLog(50)
		rig.logCut = func(int64) int64 { return 5000 }
		rig.mu.Unlock()
		r, err := h.agent.Log(t.Context(), l.ID, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		first := make([]byte, 4000)
		if _, err := io.ReadFull(r, first); err != nil {
			t.Fatal(err)
		}
		rig.setDown(true)
		time.AfterFunc(4*time.Minute, func() {
			rig.mu.Lock()
			rig.logCut = nil
			rig.mu.Unlock()
			rig.setDown(false)
		})
		rest, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(append(first, rest...), rig.log) {
			t.Errorf("read %d bytes of %d, %v", len(first)+len(rest), len(rig.log), err)
		}
	})
}

func TestAFollowedLogThatIsOpenedWhileItsRigIsAwayWaitsForIt(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		rig := h.rig(0)
		rig.mu.Lock()
		rig.log = testLog(50)
		rig.mu.Unlock()
		rig.setDown(true)
		r, err := h.agent.Log(t.Context(), l.ID, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		time.AfterFunc(4*time.Minute, func() { rig.setDown(false) })
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, rig.log) {
			t.Errorf("read %d bytes of %d, %v", len(got), len(rig.log), err)
		}
	})
}

func TestALogOfARigThatIsAwayFails(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		h.rig(0).setDown(true)
		_, err := h.agent.Log(t.Context(), l.ID, 0, false)
		wantCode(t, err, market.CodeUnreachable)
		_, err = h.agent.Log(t.Context(), l.ID, -1, false)
		wantCode(t, err, market.CodeBadRequest)
	})
}

func TestClosingALogUnblocksItsReader(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		h.rig(0).set(func() { h.rig(0).logHold = true })
		r, err := h.agent.Log(t.Context(), l.ID, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { _ = r.Close() })
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
	})
}

func TestBytesThatAreNoLogAreRefused(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		l := h.mustBid(func(r *view.BidRequest) { r.GPUs = 2 })
		h.rig(0).set(func() { h.rig(0).log = bytes.Repeat([]byte{0xff}, 100) })
		r, err := h.agent.Log(t.Context(), l.ID, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		_, err = io.ReadAll(r)
		wantCode(t, err, market.CodeBadRecord)
	})
}
