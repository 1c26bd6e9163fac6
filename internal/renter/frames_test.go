package renter_test

import (
	"testing"

	"haggle/internal/renter"
)

// FuzzFrames holds that a log means the same in whatever pieces it comes, and that the offset to go on from is always the
// end of a record.
func FuzzFrames(f *testing.F) {
	f.Add(testLog(5), 3)
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 2, 'h'}, 9)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 1}, 8)
	f.Add([]byte{9, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, 1)
	f.Fuzz(func(t *testing.T, log []byte, cut int) {
		cut = max(0, min(cut, len(log)))
		taken, end, ended, err := renter.Frames(log)
		taken2, end2, ended2, err2 := renter.Frames(log[:cut], log[cut:])
		if (err == nil) != (err2 == nil) {
			t.Fatalf("whole: %v, in pieces: %v", err, err2)
		}
		if err != nil {
			return
		}
		if taken != taken2 || end != end2 || ended != ended2 {
			t.Errorf("whole: %d %d %v, in pieces: %d %d %v", taken, end, ended, taken2, end2, ended2)
		}
		if taken > len(log) || end > int64(taken) || !atRecord(log, end) {
			t.Errorf("took %d of %d bytes, going on from %d", taken, len(log), end)
		}
	})
}
