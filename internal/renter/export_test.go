package renter

// Frames lets tests pass a log through the frame reader in pieces. It returns how many bytes belong to the log, the offset
// behind the last whole record and whether the end mark has passed.
func Frames(pieces ...[]byte) (taken int, end int64, ended bool, err error) {
	var f frames
	for _, p := range pieces {
		n, err := f.pass(p)
		taken += n
		if err != nil {
			return taken, f.end, f.ended, err
		}
	}
	return taken, f.end, f.ended, nil
}
