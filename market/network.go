package market

import (
	"regexp"
	"strings"
)

const (
	maxNetworkName = 64
	labPrefix      = "lab-"
)

// NetworkMain is the public network.
const NetworkMain = "main"

// networkName is compiled once and never written to again.
var networkName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// CheckNetwork reports whether a name may be a network's: small letters, digits and dashes, at most 63. A slash would let
// one network's signatures pass for another's.
func CheckNetwork(name string) error {
	if !networkName.MatchString(name) {
		return NewError(CodeBadRequest, "why", "a network's name is made of small letters, digits and dashes, at most 63")
	}
	return nil
}

// IsLab reports whether a network is a lab: a whole market on one machine with simulated cards.
func IsLab(network string) bool { return strings.HasPrefix(network, labPrefix) }
