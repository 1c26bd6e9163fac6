package market

import (
	"bytes"
	"strings"

	"github.com/mr-tron/base58"
)

// Bounds of an invitation.
const (
	invitationPrefix = "hgn1"
	maxInvitation    = 2048 // characters of the line
	maxInvitedAddrs  = 4
	maxInvitedAddr   = 256 // bytes
	checksumSize     = 4   // bytes of the hash: a line that was copied badly is told apart from one that leads nowhere
)

// Invitation is what leads to a private network: one line that is handed from person to person. It is no secret and lets nobody in:
// who belongs to the network stands on the creator's list.
type Invitation struct {
	Network   string   `cbor:"1,keyasint"`
	Creator   Key      `cbor:"2,keyasint"`
	Bootstrap []string `cbor:"3,keyasint"` // at most 4 multiaddrs that end in /p2p/ID
}

// String returns the invitation as a line of letters and digits: hgn1 and, in base58, the record and 4 bytes of its hash.
func (i Invitation) String() string {
	body := encode(i)
	hash := HashOf(body)
	return invitationPrefix + base58.Encode(append(body, hash[:checksumSize]...))
}

// Validate reports, with code CodeBadInvitation, what is wrong with an invitation.
func (i Invitation) Validate() error {
	switch {
	case CheckNetwork(i.Network) != nil || IsLab(i.Network):
		return badInvitation("its network's name is not one")
	case !IsCreator(i.Network, i.Creator):
		return badInvitation("the network's name does not belong to its creator's key")
	case len(i.Bootstrap) > maxInvitedAddrs:
		return badInvitation("it has too many addresses")
	}
	for _, addr := range i.Bootstrap {
		_, id, ends := strings.Cut(addr, "/p2p/")
		if len(addr) > maxInvitedAddr || !strings.HasPrefix(addr, "/") || !ends || id == "" || strings.ContainsFunc(addr, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' || r == ',' }) {
			return badInvitation("it holds something that is not an address")
		}
	}
	return nil
}

// ParseInvitation reads a line as Invitation.String writes it; space around it does not matter. The error has code
// CodeBadInvitation.
func ParseInvitation(line string) (Invitation, error) {
	var i Invitation
	line = strings.TrimSpace(line)
	text, ok := strings.CutPrefix(line, invitationPrefix)
	switch {
	case len(line) > maxInvitation:
		return i, badInvitation("it is too long")
	case !ok:
		return i, badInvitation("it does not begin with " + invitationPrefix)
	}
	raw, err := base58.Decode(text)
	if err != nil || len(raw) <= checksumSize {
		return i, badInvitation("a character is wrong or missing")
	}
	body, sum := raw[:len(raw)-checksumSize], raw[len(raw)-checksumSize:]
	if hash := HashOf(body); !bytes.Equal(hash[:checksumSize], sum) {
		return i, badInvitation("a character is wrong or missing")
	}
	if err := decodeStrict(body, &i); err != nil {
		return Invitation{}, badInvitation("a newer program made it")
	}
	if err := i.Validate(); err != nil {
		return Invitation{}, err
	}
	return i, nil
}

func badInvitation(why string) error { return NewError(CodeBadInvitation, "why", why) }
