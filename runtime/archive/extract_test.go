package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"haggle/runtime/archive"
)

func TestExtractWritesTheFilesOfAnImage(t *testing.T) {
	var b bytes.Buffer
	id, err := archive.Write(&b, sample())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	info, err := archive.Extract(bytes.NewReader(b.Bytes()), dir, 1<<20)
	if err != nil || info.Digest != id {
		t.Fatalf("%+v: %v", info, err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "bin", "hello"))
	if err != nil || string(got) != "#!hello" {
		t.Errorf("got %q: %v", got, err)
	}
	if stat, err := os.Stat(filepath.Join(dir, "bin", "hello")); err != nil || stat.Mode().Perm()&0o100 == 0 {
		t.Errorf("the program cannot be run: %v: %v", stat, err)
	}
}

// entry is one entry of a layer that archive.Write would not write.
type entry struct {
	name, text string
	kind       byte
}

// hostile makes an archive with a layer of any entries, packed by gzip.
func hostile(t testing.TB, spoil func([]byte), entries ...entry) []byte {
	t.Helper()
	var layer bytes.Buffer
	z := gzip.NewWriter(&layer)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.text)), Mode: 0o7777}
		if e.kind == tar.TypeSymlink {
			h.Linkname, h.Size, e.text = e.text, 0, ""
		}
		if err := errors.Join(w.WriteHeader(h), second(w.Write([]byte(e.text)))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	put := func(name string, data []byte) {
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(data)), Mode: 0o644}
		if err := errors.Join(archive.WriteHeader(h), second(archive.Write(data))); err != nil {
			t.Fatal(err)
		}
	}
	blob := func(mediaType string, data []byte, written func([]byte)) v1.Descriptor {
		d := digest.FromBytes(data)
		size := int64(len(data))
		if written != nil {
			written(data)
		}
		put("blobs/sha256/"+d.Encoded(), data)
		return v1.Descriptor{MediaType: mediaType, Digest: d, Size: size}
	}
	document := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	packed := blob(v1.MediaTypeImageLayerGzip, layer.Bytes(), spoil)
	config := blob(v1.MediaTypeImageConfig, document(v1.Image{}), nil)
	manifest := blob(v1.MediaTypeImageManifest, document(v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, Config: config, Layers: []v1.Descriptor{packed},
	}), nil)
	put(v1.ImageIndexFile, document(v1.Index{Manifests: []v1.Descriptor{manifest}}))
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func second(_ int, err error) error { return err }

func TestAnImageWithoutADigestIsRefused(t *testing.T) {
	for _, d := range []string{"", "sha256", "sha256:", ":", "md5:00"} {
		index, err := json.Marshal(v1.Index{Manifests: []v1.Descriptor{{Digest: digest.Digest(d)}}})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		h := &tar.Header{Name: v1.ImageIndexFile, Typeflag: tar.TypeReg, Size: int64(len(index)), Mode: 0o644}
		if err := errors.Join(w.WriteHeader(h), second(w.Write(index)), w.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Inspect(&out); !errors.Is(err, archive.ErrNotArchive) {
			t.Errorf("%q: %v", d, err)
		}
	}
}

func TestExtractStaysInsideItsFolder(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "in")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	data := hostile(t, nil,
		entry{"../../above", "climbs", tar.TypeReg},
		entry{"link", parent, tar.TypeSymlink},
		entry{"link/through", "follows", tar.TypeReg},
		entry{"/absolute", "roots", tar.TypeReg},
		entry{"twice", "first", tar.TypeReg}, entry{"twice", "second", tar.TypeReg},
	)
	if _, err := archive.Extract(bytes.NewReader(data), dir, 1<<20); err != nil {
		t.Fatal(err)
	}
	if all, err := os.ReadDir(parent); err != nil || len(all) != 1 {
		t.Errorf("files beside the folder: %v: %v", all, err)
	}
	for name, want := range map[string]string{"above": "climbs", "absolute": "roots", "link/through": "follows", "twice": "second"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q: %v", name, got, err)
		}
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode() != info.Mode()&0o755 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestExtractRefusesWhatItCannotKeep(t *testing.T) {
	big := entry{"big", string(make([]byte, 3000)), tar.TypeReg}
	for name, data := range map[string][]byte{
		"more bytes than the limit":    hostile(t, nil, big, big),
		"a file that deletes another":  hostile(t, nil, entry{".wh.other", "", tar.TypeReg}),
		"a layer that is not its name": hostile(t, func(b []byte) { b[9] ^= 1 }, entry{"a", "a", tar.TypeReg}), // gzip's field for the system: it unpacks all the same
		"a layer that is cut":          hostile(t, func(b []byte) { clear(b[len(b)/2:]) }, big),
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			if _, err := archive.Extract(bytes.NewReader(data), t.TempDir(), 4096); !errors.Is(err, archive.ErrNotArchive) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzExtractWritesWithinBounds(f *testing.F) {
	f.Add(hostile(f, nil, entry{"a", "a", tar.TypeReg}))
	var b bytes.Buffer
	if _, err := archive.Write(&b, sample()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 10_000
		dir := t.TempDir()
		_, _ = archive.Extract(io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data))), dir, limit)
		var size int64
		err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				size += info.Size()
			}
			return err
		})
		if err != nil || size > limit {
			t.Errorf("%d bytes: %v", size, err)
		}
	})
}
