package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haggle/internal/config"
)

func TestTheNetworkChangesInTheFileAndNothingElse(t *testing.T) {
	creator := "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
	boot := []string{"/ip4/198.51.100.7/tcp/4701/p2p/" + creator}
	dir := home(t, "config.toml", "# mine\ncurrency = 'EUR'\n")
	flags := config.Flags{Home: dir, Env: variables("HAGGLE_LOG_LEVEL", "warn"), Values: map[string]string{"idle_exit": "5m"}}
	before, err := config.LoadAgent(flags)
	if err != nil {
		t.Fatal(err)
	}
	if err := before.SetNetwork("", "club-abcdefgh", creator, boot); err != nil {
		t.Fatal(err)
	}
	after, err := config.LoadAgent(config.Flags{Home: dir, Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	if after.Network != "club-abcdefgh" || after.Sources.Creator != creator || len(after.Bootstrap) != 1 || after.Currency != "EUR" {
		t.Errorf("got %+v", after)
	}
	if after.LogLevel != "info" || after.IdleExit == before.IdleExit {
		t.Error("what the environment or a flag said was written to the file")
	}
	old, err := os.ReadFile(filepath.Join(dir, "config.toml.old"))
	if err != nil || !strings.Contains(string(old), "# mine") {
		t.Errorf("what was there is not kept: %q, %v", old, err)
	}

	rig, err := config.LoadRig(config.Flags{Home: t.TempDir(), Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	if err := rig.SetNetwork("", "club-abcdefgh", creator, nil); err != nil {
		t.Fatal(err)
	}
	again, err := config.LoadRig(config.Flags{Home: rig.Paths.Home, Env: variables()})
	if err != nil || again.Network != "club-abcdefgh" || again.Sources.Creator != creator {
		t.Errorf("got %+v, %v", again, err)
	}
}

func TestThePublicDHTIsAskedOnMainAlone(t *testing.T) {
	for _, c := range []struct {
		public, network string
		want            bool
	}{
		{"", "main", true}, {"", "club-abcdefgh", false}, {config.Yes, "club-abcdefgh", true}, {config.No, "main", false},
	} {
		if got := (config.Sources{Public: c.public}).AskPublic(c.network); got != c.want {
			t.Errorf("%q on %s: %t", c.public, c.network, got)
		}
	}
}
