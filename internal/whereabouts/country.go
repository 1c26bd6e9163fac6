package whereabouts

import (
	"net/netip"

	"github.com/phuslu/iploc"
)

// TableDate says of which month the table is, as year-month: that of the module's version, which is made from a month's data. An address
// that has changed hands since is told wrong.
const TableDate = "2026-09"

// Country returns the country in which a public address is registered, as two capital letters; "" for an address that is not public, and
// for one that the table does not know. It is the word of a table, not a measurement: addresses are moved, let and routed on.
func Country(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if !isPublic(addr) {
		return ""
	}
	country := iploc.IPCountry(addr)
	if len(country) != 2 || country == "ZZ" {
		return ""
	}
	return country
}

// isPublic reports whether an address can belong to somebody: not those of private networks, of carriers' shared space (RFC 6598), of
// documents and benchmarks, of this machine or of a group.
func isPublic(addr netip.Addr) bool {
	if !addr.IsValid() || !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return false
	}
	for _, special := range []netip.Prefix{
		prefix(100, 64, 0, 0, 10), prefix(192, 0, 2, 0, 24), prefix(198, 18, 0, 0, 15), prefix(198, 51, 100, 0, 24), prefix(203, 0, 113, 0, 24),
		prefix(240, 0, 0, 0, 4),
	} {
		if special.Contains(addr) {
			return false
		}
	}
	return true
}

func prefix(a, b, c, d byte, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{a, b, c, d}), bits)
}
