package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"haggle/internal/config"
)

// alike compares what a rig was told, and neither where it was told nor where its files are.
func alike() cmp.Option {
	return cmp.Options{cmpopts.IgnoreUnexported(config.Rig{}), cmpopts.IgnoreFields(config.Rig{}, "Paths"), cmpopts.EquateEmpty()}
}

func TestAWrittenFileReadsTheSame(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "deep", "haggled.toml")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,20}`)
		price := rapid.StringMatching(`[0-9]{1,5}(\.[0-9]{1,6})?`)
		address := rapid.StringMatching(`/[!-~]{0,30}/p2p/[A-Za-z0-9]{1,10}`)
		span := func(most time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(int64(time.Second), int64(most)).Draw(t, "time"))
		}
		r, err := config.LoadRig(config.Flags{Home: dir, File: os.DevNull, Env: variables()})
		if err != nil {
			t.Fatal(err)
		}
		r.Network = "lab-" + rapid.StringMatching(`[a-z0-9-]{1,20}`).Draw(t, "network")
		r.Name = name.Draw(t, "name")
		r.Bootstrap = rapid.SliceOfN(address, 0, 3).Draw(t, "bootstrap")
		r.Listen = rapid.SliceOfN(address, 0, 3).Draw(t, "listen")
		r.Prices.Slot, r.Prices.Disk = price.Draw(t, "slot"), price.Draw(t, "disk")
		r.Rules.Interval = span(time.Hour)
		r.Rules.First = min(span(time.Hour), r.Rules.Interval)
		r.Rules.MaxUnattended = rapid.SampledFrom([]time.Duration{0, config.Unlimited, 36 * time.Hour}).Draw(t, "unattended")
		r.Host = config.Share{Threads: rapid.Int64Range(0, 4096).Draw(t, "threads"), Memory: rapid.Int64Range(0, 1<<44).Draw(t, "memory")}
		r.Containerd.Address = rapid.StringMatching(`[ -~\t]{0,30}`).Draw(t, "address")
		for i, profile := range rapid.SliceOfN(name, 0, 3).Draw(t, "cards") {
			r.Cards.Simulated = append(r.Cards.Simulated, config.Simulated{Profile: profile, Count: i + 1})
		}
		for _, image := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID).Draw(t, "images") {
			r.Images = append(r.Images, config.Image{Name: image, Archive: `/srv/a "b" \c ` + image})
		}
		if err := config.WriteRig(path, r); err != nil {
			t.Fatal(err)
		}
		got, err := config.LoadRig(config.Flags{Home: dir, File: path, Env: variables()})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, got, alike()); diff != "" {
			t.Fatalf("(-written +read):\n%s", diff)
		}
	})
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("besides the file there are %v, %v", left, err)
	}
}

func TestAFreshFileExplainsEveryKnobAndSetsNone(t *testing.T) {
	dir := t.TempDir()
	r, err := config.LoadRig(config.Flags{Home: dir, Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	r.Name = ""
	path := filepath.Join(dir, "haggled.toml")
	if err := config.WriteRig(path, r); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range config.RigKnobs() {
		key := k.Name[strings.LastIndex(k.Name, ".")+1:]
		set := k.Kind == config.KindPrograms // each program has a table of its own
		if !strings.Contains(string(data), "\n# "+k.Doc) || !set && !strings.Contains(string(data), "\n# "+key+" = ") {
			t.Errorf("%s is not explained, or is set", k.Name)
		}
	}
	again, err := config.LoadRig(config.Flags{Home: dir, Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range again.Values() {
		if v.Origin != config.FromDefault {
			t.Errorf("%s comes from %s", v.Name, v.Origin)
		}
	}
}

func TestAPathThatTOMLCannotHoldIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "haggled.toml")
	var e *config.Error
	err := config.WriteRig(path, config.Rig{Images: []config.Image{{Name: "a", Archive: "/srv/\xff.tar"}}})
	if !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
}
