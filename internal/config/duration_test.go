package config_test

import (
	"strings"
	"testing"
	"time"

	"haggle/internal/config"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "2h": 2 * time.Hour, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "1.5h": 90 * time.Minute,
		"500ms": 500 * time.Millisecond, "0": 0, "0s": 0, "0d": 0, "106751d": 106751 * 24 * time.Hour,
	} {
		if got, err := config.ParseDuration(text); err != nil || got != want {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "60", "2 h", "-1s", "+1s", "d", "1.5d", "1h1d", "1d1d", "1w", "forever", "1e3s", "106752d", "99999999999d",
		"106751d24h", "9999999h", strings.Repeat("1", 40) + "s",
	} {
		if got, err := config.ParseDuration(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"90s", "2h", "7d", "1d12h", "1.5h", "1ns", "", "-1s", "106751d23h47m16.854775807s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := config.ParseDuration(text)
		if err != nil {
			return
		}
		if d < 0 {
			t.Fatalf("%q is %v", text, d)
		}
		if again, err := config.ParseDuration(config.FormatDuration(d)); err != nil || again != d {
			t.Fatalf("%q is %v, written %q, read as %v, %v", text, d, config.FormatDuration(d), again, err)
		}
	})
}

func FuzzReadRig(f *testing.F) {
	f.Add("network = 'lab-a'\n[cards]\nsimulated = [{profile = 'X', count = 1}]\n[host]\nmemory = '1GiB'\n")
	f.Add("images = [{name = 'a', archive = 'b'}]\n[rules]\nmax_unattended = 'unlimited'")
	f.Fuzz(func(t *testing.T, text string) {
		dir := home(t, "haggled.toml", text)
		r, err := config.LoadRig(config.Flags{Home: dir, Env: variables()})
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n") {
				t.Fatalf("%q is more than a line", err)
			}
			return
		}
		if err := config.WriteRig(dir+"/again.toml", r); err != nil {
			t.Skip(err) // a path that is not UTF-8 cannot be written
		}
		if _, err := config.LoadRig(config.Flags{Home: dir, File: dir + "/again.toml", Env: variables()}); err != nil {
			t.Fatalf("%q was read, and not again: %v", text, err)
		}
	})
}
