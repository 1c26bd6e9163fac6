package config_test

import (
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"haggle/internal/config"
)

func TestAHomeHoldsEveryFile(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "hg") //nolint:usetesting // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a, err := config.AgentPaths(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := config.RigPaths(filepath.Join(dir, "r"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		a.Home, a.Config, a.Key, a.Database, a.Log, a.Run, a.Socket,
		r.Home, r.Config, r.Key, r.Database, r.Log, r.Run, r.Socket, r.Images, r.Jobs, r.Volumes,
		r.Containerd.Root, r.Containerd.State, r.Containerd.Socket, r.Containerd.Runc,
	} {
		if !strings.HasPrefix(path, dir+"/") {
			t.Errorf("%q is not below the home", path)
		}
	}
	for _, p := range []config.Paths{a, r} {
		if err := p.Make(); err != nil {
			t.Fatal(err)
		}
		for _, folder := range []string{filepath.Dir(p.Database), p.Run} {
			if info, err := os.Stat(folder); err != nil || info.Mode().Perm()&0o066 != 0 {
				t.Errorf("folder %s: %v, %v", folder, info.Mode(), err)
			}
		}
	}
}

func TestALongHomeHasShortSockets(t *testing.T) {
	long := "/srv/" + strings.Repeat("a-folder-with-a-long-name/", 8)
	a, err := config.AgentPaths(long)
	if err != nil {
		t.Fatal(err)
	}
	r, err := config.RigPaths(long)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{a.Socket, r.Socket, r.Containerd.Socket + ".ttrpc"} {
		if len(path) > 100 {
			t.Errorf("%s has %d bytes", path, len(path))
		}
	}
	for _, path := range []string{a.Key, a.Database, r.Key, r.Database, r.Containerd.Root} {
		if !strings.HasPrefix(path, filepath.Clean(long)+"/") {
			t.Errorf("%s moved out of the home", path)
		}
	}
	same, err := config.RigPaths(long)
	if err != nil || same != r {
		t.Errorf("the same home has other paths: %+v, %v", same, err)
	}
	other, err := config.RigPaths(long + "b")
	if err != nil || other.Socket == r.Socket {
		t.Errorf("two homes share socket %s, %v", other.Socket, err)
	}
}

func TestTheSystemsPlaces(t *testing.T) {
	r, err := config.RigPaths("")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		r.Config: "/etc/haggle/haggled.toml", r.Key: "/var/lib/haggled/key", r.Database: "/var/lib/haggled/haggled.db",
		r.Socket: "/run/haggled/haggled.sock", r.Volumes: "/var/lib/haggled/volumes", r.Containerd.Root: "/var/lib/haggled/containerd",
	}
	for got, path := range want {
		if got != path {
			t.Errorf("got %s, want %s", got, path)
		}
	}
	a, err := config.AgentPaths("")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(filepath.Dir(a.Config)) != "haggle" || filepath.Base(a.Config) != "config.toml" || len(a.Socket) > 100 {
		t.Errorf("agent's places are %+v", a)
	}
}

func TestTheHelpersFilesAreNotWhereTheRigsAre(t *testing.T) {
	for _, home := range []string{"", "/srv/helper"} {
		h, err := config.HelperPaths(home)
		if err != nil {
			t.Fatal(err)
		}
		r, err := config.RigPaths("")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{h.Helper, h.Jobs, h.Volumes, h.Run, h.Containerd.Root, h.Containerd.State, h.Containerd.Socket, h.Containerd.Runc} {
			for _, folder := range []string{filepath.Dir(r.Key), r.Run} {
				if strings.HasPrefix(path+"/", folder+"/") {
					t.Errorf("with home %q %s is in a folder of the rig", home, path)
				}
			}
		}
		if home == "" && h.Helper != r.Helper {
			t.Errorf("the helper listens on %s, the rig looks for it at %s", h.Helper, r.Helper)
		}
	}
	if r, err := config.RigPaths("/srv/rig"); err != nil || r.Helper != "" {
		t.Errorf("a rig with a home looks for a helper at %q, unasked: %v", r.Helper, err)
	}
}

func TestTheHelperReadsTheRigsConfigurationAndHasItsOwnPlaces(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "haggled.toml")
	if err := os.WriteFile(file, []byte("[helper]\nuser = \"1234\"\nsocket = \"/run/other.sock\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := config.LoadHelper(config.Flags{Home: home, Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	if r.Helper != (config.Helper{Socket: "/run/other.sock", User: "1234"}) || r.Paths.Helper == "" {
		t.Errorf("%+v, %+v", r.Helper, r.Paths)
	}
	for _, bad := range []string{"relative", "/a/../b", "/" + strings.Repeat("a", 100)} {
		_, err := config.LoadRig(config.Flags{Home: home, Env: variables(), Values: map[string]string{"helper.socket": bad}})
		var fault *config.Error
		if !errors.As(err, &fault) || fault.Key != "helper.socket" {
			t.Errorf("socket %.20q: %v", bad, err)
		}
	}
}

func TestAFolderThatAStrangerMayUseIsNotTaken(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("needs file modes")
	}
	dir := t.TempDir()
	mine, open, link := filepath.Join(dir, "mine"), filepath.Join(dir, "open"), filepath.Join(dir, "link")
	if err := config.Claim(mine); err != nil {
		t.Errorf("a new folder: %v", err)
	}
	if err := config.Claim(mine); err != nil {
		t.Errorf("a folder of ours: %v", err)
	}
	if err := errors.Join(os.Mkdir(open, 0o755), os.Symlink(mine, link)); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{open, link} {
		if config.Claim(folder) == nil {
			t.Errorf("%s was taken", folder)
		}
	}
}
