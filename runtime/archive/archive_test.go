package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"haggle/runtime/archive"
)

func text(path, s string) archive.File {
	return archive.File{Path: path, Mode: 0o755, Size: int64(len(s)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(s)), nil
	}}
}

func sample() archive.Image {
	return archive.Image{
		Name:         "example.test/hello:1",
		Files:        []archive.File{text("/bin/hello", "#!hello"), text("opt/data/x", "x"), text("/bin/also", "")},
		Entrypoint:   []string{"/bin/hello"},
		Cmd:          []string{"world"},
		Env:          []string{"A=1"},
		Workdir:      "/opt",
		Labels:       map[string]string{"b": "2", "a": "1"},
		Architecture: "amd64",
	}
}

func TestTheDigestDependsOnTheInputAlone(t *testing.T) {
	const golden = "sha256:7135e5813efa4f1aceba59f0610d16a6a70eae2f01fd5e1fd58d3caa7432f2e8"
	img := sample()
	for range 2 {
		var b bytes.Buffer
		got, err := archive.Write(&b, img)
		if err != nil {
			t.Fatal(err)
		}
		if got != golden {
			t.Errorf("digest %s, want %s", got, golden)
		}
		img.Files[0], img.Files[1] = img.Files[1], img.Files[0] // order is no part of the input
	}
}

func TestInspectTellsWhatWriteWrote(t *testing.T) {
	var b bytes.Buffer
	id, err := archive.Write(&b, sample())
	if err != nil {
		t.Fatal(err)
	}
	info, err := archive.Inspect(&b)
	if err != nil {
		t.Fatal(err)
	}
	if info.Digest != id || info.Name != "example.test/hello:1" || info.Size == 0 ||
		info.Config.Entrypoint[0] != "/bin/hello" || info.Config.Cmd[0] != "world" || info.Config.WorkingDir != "/opt" ||
		!strings.HasPrefix(info.Config.Env[0], "PATH=") || info.Config.Env[1] != "A=1" {
		t.Errorf("got %+v", info)
	}
}

func TestTheLayerHoldsWhatEveryProgramExpects(t *testing.T) {
	var b bytes.Buffer
	if _, err := archive.Write(&b, sample()); err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	outer := tar.NewReader(&b)
	for h, err := outer.Next(); err == nil; h, err = outer.Next() {
		if h.Size < 4096 { // the layer is the one large entry
			continue
		}
		inner := tar.NewReader(outer)
		for h, err := inner.Next(); err == nil; h, err = inner.Next() {
			modes[h.Name] = h.Mode
			if h.ModTime.Unix() != 0 || h.Uid != 0 || h.Gid != 0 {
				t.Errorf("%s carries a time or an owner", h.Name)
			}
		}
	}
	for name, want := range map[string]int64{
		"tmp/": 0o1777, "dev/": 0o755, "proc/": 0o755, "sys/": 0o755, "root/": 0o700, "etc/passwd": 0o644, "etc/group": 0o644,
		"bin/": 0o755, "bin/hello": 0o755, "opt/data/": 0o755,
	} {
		if got, ok := modes[name]; !ok || got != want {
			t.Errorf("%s has mode %o (present: %v), want %o", name, got, ok, want)
		}
	}
}

func TestRefusesFilesThatAreNotClean(t *testing.T) {
	grown, changing := text("a", "long"), text("a", "same")
	grown.Size = 2
	calls := 0
	changing.Open = func() (io.ReadCloser, error) {
		calls++
		return io.NopCloser(strings.NewReader([]string{"same", "diff"}[calls-1])), nil
	}
	for name, files := range map[string][]archive.File{
		"a path with dots":        {text("/a/../../b", "")},
		"an empty path":           {text("/", "")},
		"a path with two slashes": {text("//a", "")},
		"a device":                {text("/dev/null", "")},
		"a whiteout":              {text("/a/.wh.b", "")},
		"the same path twice":     {text("/a", ""), text("a", "")},
		"a file that is a folder": {text("/a", ""), text("a/b", "")},
		"the folder for tmp":      {text("/tmp", "")},
		"no content":              {{Path: "a"}},
		"a file that grew":        {grown},
		"a file that shrank":      {{Path: "a", Size: 9, Open: text("a", "b").Open}},
		"a file that changed":     {changing},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			if _, err := archive.Write(io.Discard, archive.Image{Files: files}); !errors.Is(err, archive.ErrInvalidImage) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzInspectIsBounded(f *testing.F) {
	var b bytes.Buffer
	if _, err := archive.Write(&b, sample()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("no tar"))
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := archive.Inspect(bytes.NewReader(data))
		if err != nil && !errors.Is(err, archive.ErrNotArchive) {
			t.Errorf("an error without a class: %v", err)
		}
		if err == nil && !strings.HasPrefix(info.Digest, "sha256:") {
			t.Errorf("accepted with digest %q", info.Digest)
		}
	})
}
