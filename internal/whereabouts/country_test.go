package whereabouts_test

import (
	"net/netip"
	"testing"

	"haggle/internal/whereabouts"
)

func TestTellsTheCountryOfWellKnownAddresses(t *testing.T) {
	for addr, want := range map[string]string{
		"193.0.6.139":           "NL", // RIPE's web server
		"::ffff:193.0.6.139":    "NL",
		"2001:67c:2e8:22::1":    "NL",
		"202.12.29.194":         "AU", // APNIC's
		"203.119.101.61":        "AU",
		"2001:dc0:2001:11::194": "AU",
	} {
		if got := whereabouts.Country(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is in %q, want %q", addr, got, want)
		}
	}
}

func TestTellsNothingOfAddressesThatAreNobodys(t *testing.T) {
	for _, addr := range []string{
		"127.0.0.1", "::1", "10.1.2.3", "192.168.1.1", "169.254.1.1", "fe80::1%eth0", "fd00::1", "100.64.0.1", "192.0.2.1", "198.18.0.1",
		"198.51.100.7", "203.0.113.9", "224.0.0.1", "255.255.255.255", "0.0.0.0", "::", "::ffff:10.0.0.1",
	} {
		if got := whereabouts.Country(netip.MustParseAddr(addr)); got != "" {
			t.Errorf("%s is in %q", addr, got)
		}
	}
	if got := whereabouts.Country(netip.Addr{}); got != "" {
		t.Errorf("no address is in %q", got)
	}
}
