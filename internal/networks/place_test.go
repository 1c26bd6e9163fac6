package networks_test

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/networks"
	"haggle/market"
)

// home is a program's place in a temporary folder.
func home(t *testing.T, seed byte) (networks.Place, *networks.Settings) {
	settings := &networks.Settings{Network: market.NetworkMain}
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune('a'+seed)), ed25519.SeedSize)))
	clock := time.UnixMilli(1_800_000_000_000)
	return networks.Place{
		Folder: networks.FolderBeside(filepath.Join(t.TempDir(), "some.db")),
		Key:    func() (ed25519.PrivateKey, error) { return key, nil },
		Read:   func() (networks.Settings, error) { return *settings, nil },
		Write:  func(s networks.Settings) error { *settings = s; return nil },
		Now:    func() time.Time { return clock },
	}, settings
}

func keyOf(t *testing.T, p networks.Place) market.Key {
	key, err := p.Key()
	if err != nil {
		t.Fatal(err)
	}
	return market.KeyOf(key)
}

func TestANetworkIsMadeInvitedToJoinedAndLeft(t *testing.T) {
	ada, adas := home(t, 0)
	bob, bobs := home(t, 1)
	bobs.Bootstrap = []string{"/ip4/198.51.100.9/tcp/4701/p2p/" + keyOf(t, ada).String()}
	before := *bobs
	name, err := ada.Create("club")
	if err != nil {
		t.Fatal(err)
	}
	if adas.Network != name || adas.Creator != keyOf(t, ada).String() {
		t.Errorf("the creator's settings are %+v", *adas)
	}
	at := "/ip4/198.51.100.7/tcp/4701/p2p/" + keyOf(t, ada).String()
	i, err := ada.Invite([]market.Key{keyOf(t, bob)}, "attic", []string{at})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bob.Join(i.String()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(networks.Settings{Network: name, Creator: keyOf(t, ada).String(), Bootstrap: []string{at}}, *bobs); diff != "" {
		t.Error(diff)
	}
	_, list, err := ada.Members()
	if err != nil || list == nil || list.Name(keyOf(t, bob)) != "attic" {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if _, list, err := bob.Members(); err != nil || list != nil {
		t.Errorf("before the first list came: %+v, %v", list, err)
	}
	all, err := bob.Networks()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]networks.Network{{Name: name, Creator: keyOf(t, ada), Current: true}}, all); diff != "" {
		t.Error(diff)
	}
	if left, err := bob.Leave(); err != nil || left != name {
		t.Errorf("left %q, %v", left, err)
	}
	if diff := cmp.Diff(before, *bobs); diff != "" {
		t.Errorf("back where it was: %s", diff)
	}
	if err := bob.Return(name); market.CodeOf(err) != market.CodeBadInvitation {
		t.Errorf("a network that was left is still known: %v", err)
	}
	if _, err := ada.Leave(); err != nil {
		t.Fatal(err)
	}
	if err := ada.Return(name); err != nil || adas.Network != name {
		t.Errorf("the creator does not get back: %v", err)
	}
}

func TestOnlyTheCreatorChangesTheListAndItsNumberOnlyGrows(t *testing.T) {
	ada, _ := home(t, 0)
	bob, _ := home(t, 1)
	if _, err := ada.Create("club"); err != nil {
		t.Fatal(err)
	}
	var seqs []int64
	seq := func() {
		_, list, err := ada.Members()
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, list.Seq)
	}
	seq()
	i, err := ada.Invite([]market.Key{keyOf(t, bob)}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	seq()
	if absent, err := ada.Remove([]market.Key{keyOf(t, bob), {9}}); err != nil || len(absent) != 1 {
		t.Errorf("absent are %v, %v", absent, err)
	}
	seq()
	if !slices.IsSorted(seqs) || len(slices.Compact(slices.Clone(seqs))) != 3 {
		t.Errorf("the numbers are %v", seqs)
	}
	if _, err := bob.Join(i.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := bob.Invite([]market.Key{keyOf(t, bob)}, "", nil); market.CodeOf(err) != market.CodeNotCreator {
		t.Errorf("got %v, want code not_creator", err)
	}
	public, _ := home(t, 2)
	if _, err := public.Invite(nil, "", nil); market.CodeOf(err) != market.CodeBadRequest {
		t.Errorf("got %v on the public network", err)
	}
}

func TestAnInvitationNamesAddressesThatOthersCanCall(t *testing.T) {
	ada, _ := home(t, 0)
	if _, err := ada.Create("club"); err != nil {
		t.Fatal(err)
	}
	one, two := "/p2p/"+keyOf(t, ada).String(), "/p2p/"+market.Key{1}.String()
	i, err := ada.Invite(nil, "", []string{
		"/ip4/127.0.0.1/tcp/1" + one, "/ip4/192.168.1.7/tcp/2" + one, "/ip6/::1/tcp/3" + one, "/ip4/0.0.0.0/tcp/4" + one,
		"/ip4/198.51.100.7/tcp/5" + one, "/ip4/198.51.100.8/tcp/6/p2p/" + market.Key{2}.String() + "/p2p-circuit" + one,
		"/ip4/198.51.100.7/udp/7/quic-v1" + one, "/ip4/198.51.100.9/tcp/8" + two, "/ip4/192.168.1.8/tcp/9" + two, "nonsense", "/ip4/1.2.3.4/tcp/9",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/ip4/198.51.100.7/tcp/5" + one, "/ip4/198.51.100.9/tcp/8" + two, "/ip4/198.51.100.7/udp/7/quic-v1" + one, "/ip4/192.168.1.7/tcp/2" + one,
	}
	if diff := cmp.Diff(want, i.Bootstrap); diff != "" {
		t.Error(diff)
	}
}

func TestALoaderSeesAListThatChangesAndOutlivesOneThatIsGone(t *testing.T) {
	folder := networks.Folder(t.TempDir())
	load := folder.Loader("club")
	if got := load(); got != nil {
		t.Errorf("got %q of nothing", got)
	}
	for _, list := range []string{"one", "another"} {
		if err := folder.Save("club", []byte(list)); err != nil {
			t.Fatal(err)
		}
		if got := load(); string(got) != list || string(load()) != list {
			t.Errorf("got %q, want %q", got, list)
		}
	}
	if err := folder.Save("club", make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if got := load(); string(got) != "another" {
		t.Errorf("got %d bytes of a file that is too large", len(got))
	}
	if err := os.Remove(filepath.Join(string(folder), "club.members")); err != nil {
		t.Fatal(err)
	}
	if got := load(); string(got) != "another" {
		t.Errorf("got %q", got)
	}
	if err := folder.Save("../club", nil); err == nil {
		t.Error("a list is kept outside the folder")
	}
}
