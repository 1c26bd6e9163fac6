package market_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haggle/market"
)

// signer returns a private key that depends on a number alone.
func signer(n int) ed25519.PrivateKey {
	seed := market.HashOf(fmt.Appendf(nil, "member %d", n))
	return ed25519.NewKeyFromSeed(seed[:])
}

func private(t *testing.T, creator ed25519.PrivateKey) string {
	t.Helper()
	network, err := market.PrivateNetwork("attic", market.KeyOf(creator))
	if err != nil {
		t.Fatal(err)
	}
	return network
}

func listOf(network string, seq int64, members ...int) market.Members {
	m := market.Members{Network: network, Seq: seq, Issued: 1}
	for _, n := range members {
		m.List = append(m.List, market.Member{Key: market.KeyOf(signer(n)), Name: fmt.Sprintf("rig %d", n)})
	}
	return m
}

func TestAListOfMembersIsReadBackAsItsCreatorSignedIt(t *testing.T) {
	creator := signer(0)
	network := private(t, creator)
	sealed, err := market.SealMembers(creator, listOf(network, 7, 3, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	got, err := market.OpenMembers(network, market.KeyOf(creator), sealed.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if got.Seq != 7 || len(got.List) != 3 {
		t.Errorf("got %+v", got)
	}
	for n := 1; n <= 3; n++ {
		if key := market.KeyOf(signer(n)); !got.Has(key) || got.Name(key) != fmt.Sprintf("rig %d", n) {
			t.Errorf("member %d is not on the list", n)
		}
	}
	if stranger := market.KeyOf(signer(9)); got.Has(stranger) || got.Name(stranger) != "" {
		t.Error("a stranger is on the list")
	}
}

func TestAListThatIsNotTheCreatorsIsRefused(t *testing.T) {
	creator, other := signer(0), signer(1)
	network := private(t, creator)
	good, err := market.SealMembers(creator, listOf(network, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	forged := market.SealAny(network, market.KindMembers, market.RoleOwner, other, listOf(network, 2, 1, 2))
	for name, c := range map[string]struct {
		network string
		creator market.Key
		raw     []byte
		want    market.Code
	}{
		"signed by another":              {network, market.KeyOf(creator), forged.Encode(), market.CodeBadSignature},
		"of another network":             {private(t, other), market.KeyOf(other), good.Encode(), market.CodeWrongNetwork},
		"of a name that is not its own":  {"main", market.KeyOf(creator), market.SealAny("main", market.KindMembers, market.RoleOwner, creator, listOf("main", 1, 2)).Encode(), market.CodeBadRecord},
		"for another record":             {network, market.KeyOf(creator), market.SealAny(network, market.KindDelegate, market.RoleOwner, creator, listOf(network, 1, 2)).Encode(), market.CodeBadRecord},
		"longer than any":                {network, market.KeyOf(creator), make([]byte, 1<<20), market.CodeTooLarge},
		"cut":                            {network, market.KeyOf(creator), good.Encode()[:40], market.CodeBadEncoding},
		"naming another network inside":  {network, market.KeyOf(creator), market.SealAny(network, market.KindMembers, market.RoleOwner, creator, listOf("main", 1, 2)).Encode(), market.CodeBadRecord},
		"without a number":               {network, market.KeyOf(creator), market.SealAny(network, market.KindMembers, market.RoleOwner, creator, listOf(network, 0, 2)).Encode(), market.CodeBadRecord},
		"with a member twice":            {network, market.KeyOf(creator), market.SealAny(network, market.KindMembers, market.RoleOwner, creator, listOf(network, 1, 2, 2)).Encode(), market.CodeBadRecord},
		"with a name that moves cursors": {network, market.KeyOf(creator), market.SealAny(network, market.KindMembers, market.RoleOwner, creator, market.Members{Network: network, Seq: 1, List: []market.Member{{Key: market.KeyOf(other), Name: "\x1b[2J"}}}).Encode(), market.CodeBadRecord},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := market.OpenMembers(c.network, c.creator, c.raw); market.CodeOf(err) != c.want {
				t.Errorf("got %v, want code %s", err, c.want)
			}
		})
	}
}

func TestTheLargestListFitsIntoOneFrameAndALargerOneIsNotMade(t *testing.T) {
	creator := signer(0)
	network := private(t, creator)
	m := market.Members{Network: network, Seq: 1<<62 - 1, Issued: 1 << 50}
	for n := range market.MaxMembers {
		m.List = append(m.List, market.Member{Key: market.KeyOf(signer(n + 1)), Name: strings.Repeat("x", market.MaxMemberName)})
	}
	sealed, err := market.SealMembers(creator, m)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := market.EncodeMessage(market.MembersMessage{Members: sealed.Encode()})
	if err != nil {
		t.Fatal(err)
	}
	back, err := market.DecodeMessage(frame)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := market.OpenMembers(network, market.KeyOf(creator), back.(market.MembersMessage).Members); err != nil {
		t.Error(err)
	}
	m.List = append(m.List, market.Member{Key: market.KeyOf(signer(100_000))})
	if _, err := market.SealMembers(creator, m); market.CodeOf(err) != market.CodeBadRecord {
		t.Errorf("got %v for one member too many", err)
	}
	for n := range 10_000 {
		m.List = append(m.List, market.Member{Key: market.Key{1, byte(n), byte(n >> 8)}})
	}
	huge := market.SealAny(network, market.KindMembers, market.RoleOwner, creator, m)
	if _, err := market.OpenMembers(network, market.KeyOf(creator), huge.Encode()); market.CodeOf(err) != market.CodeTooLarge {
		t.Errorf("got %v for ten thousand members", err)
	}
}

func TestAPrivateNetworkIsNamedByItsCreator(t *testing.T) {
	creator := market.KeyOf(signer(0))
	network, err := market.PrivateNetwork("attic", creator)
	if err != nil || !strings.HasPrefix(network, "attic-") || len(network) != len("attic-")+8 {
		t.Fatalf("got %q, %v", network, err)
	}
	if !market.IsCreator(network, creator) || market.IsCreator(network, market.KeyOf(signer(1))) || market.IsCreator("main", creator) {
		t.Error("the name does not tell its creator")
	}
	for _, name := range []string{"", "-", "Attic", "a/b", "attic-", "lab-x", strings.Repeat("x", 41), "ä"} {
		if got, err := market.PrivateNetwork(name, creator); market.CodeOf(err) != market.CodeBadRequest {
			t.Errorf("%q becomes %q, %v", name, got, err)
		}
	}
}

func invitation(t *testing.T) market.Invitation {
	creator := signer(0)
	id := market.KeyOf(creator).String()
	return market.Invitation{Network: private(t, creator), Creator: market.KeyOf(creator), Bootstrap: []string{
		"/ip4/192.0.2.7/tcp/4701/p2p/" + id, "/ip6/2001:db8::7/udp/4701/quic-v1/p2p/" + id,
	}}
}

func TestAnInvitationIsOneLineThatIsReadBack(t *testing.T) {
	want := invitation(t)
	line := want.String()
	if !strings.HasPrefix(line, "hgn1") || strings.ContainsAny(line, " +/=\n") {
		t.Errorf("%q is not a word", line)
	}
	got, err := market.ParseInvitation("  " + line + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestALineThatWasCopiedBadlyIsRefused(t *testing.T) {
	good := invitation(t)
	line := good.String()
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(0, len(line)-1).Draw(t, "at")
		by := rapid.StringMatching(`[1-9A-HJ-NP-Za-km-z]`).Draw(t, "by")
		if by == line[at:at+1] {
			return
		}
		if _, err := market.ParseInvitation(line[:at] + by + line[at+1:]); market.CodeOf(err) != market.CodeBadInvitation {
			t.Errorf("character %d may be %s: %v", at, by, err)
		}
	})
	for name, change := range map[string]func(*market.Invitation){
		"another's name": func(i *market.Invitation) { i.Creator = market.KeyOf(signer(3)) },
		"main":           func(i *market.Invitation) { i.Network = "main" },
		"a lab":          func(i *market.Invitation) { i.Network = "lab-" + i.Network },
		"five addresses": func(i *market.Invitation) { i.Bootstrap = make([]string, 5) },
		"a command":      func(i *market.Invitation) { i.Bootstrap = []string{"/ip4/1.2.3.4/tcp/1/p2p/x\nnetwork = \"main\""} },
		"no peer":        func(i *market.Invitation) { i.Bootstrap = []string{"/ip4/192.0.2.7/tcp/4701"} },
	} {
		i := good
		change(&i)
		if _, err := market.ParseInvitation(i.String()); !errors.Is(err, &market.Error{Code: market.CodeBadInvitation}) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, line := range []string{"", "hgn1", "hgn11111", line[4:], line[:len(line)-1], line + line, "hgn1" + strings.Repeat("z", 4096)} {
		if _, err := market.ParseInvitation(line); market.CodeOf(err) != market.CodeBadInvitation {
			t.Errorf("%.20q…: got %v", line, err)
		}
	}
}

// FuzzInvitation reads hostile lines. What is read must be written as it was.
func FuzzInvitation(f *testing.F) {
	creator := signer(0)
	network, err := market.PrivateNetwork("attic", market.KeyOf(creator))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(market.Invitation{Network: network, Creator: market.KeyOf(creator)}.String())
	f.Add("hgn1")
	f.Fuzz(func(t *testing.T, line string) {
		i, err := market.ParseInvitation(line)
		if err == nil && i.String() != strings.TrimSpace(line) {
			t.Fatalf("%q is read and written as %q", line, i.String())
		}
	})
}

// FuzzMembers opens hostile bytes as the body of a list behind a good signature.
func FuzzMembers(f *testing.F) {
	creator := signer(0)
	network, err := market.PrivateNetwork("attic", market.KeyOf(creator))
	if err != nil {
		f.Fatal(err)
	}
	sealed, err := market.SealMembers(creator, listOf(network, 1, 1, 2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed.Body)
	f.Fuzz(func(t *testing.T, body []byte) {
		var m market.Members
		if market.DecodeStrict(body, &m) != nil {
			return
		}
		raw := market.SealAny(network, market.KindMembers, market.RoleOwner, creator, m).Encode()
		if opened, err := market.OpenMembers(network, market.KeyOf(creator), raw); err == nil && len(opened.List) > market.MaxMembers {
			t.Fatalf("a list of %d members opens", len(opened.List))
		}
	})
}
