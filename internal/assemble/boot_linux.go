package assemble

import (
	"encoding/hex"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"haggle/market"
)

// Boot returns a reader of the clock that goes on while the machine sleeps, in milliseconds since its boot, with the id of the boot.
// nil where the kernel does not tell.
func Boot() func() (int64, market.Nonce) {
	var id market.Nonce
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""))
	if err != nil || copy(id[:], raw) != len(id) {
		return nil
	}
	if _, err := bootMs(); err != nil {
		return nil
	}
	return func() (int64, market.Nonce) {
		ms, err := bootMs()
		if err != nil {
			return 0, market.Nonce{} // it answered before
		}
		return ms, id
	}
}

func bootMs() (int64, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return t.Nano() / 1e6, err
}
