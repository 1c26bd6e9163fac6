//go:build !linux

package assemble

import "haggle/market"

// Boot returns nil: only Linux tells of a clock that goes on while the machine sleeps, and of the boot that it counts from.
func Boot() func() (int64, market.Nonce) { return nil }
