//go:build linux

package containerd_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"haggle/runtime"
)

// parcel is an image as a stranger may put it together. Its fields may lie.
type parcel struct {
	layers   [][]byte // uncompressed
	packed   bool     // layers are compressed
	config   v1.ImageConfig
	diffs    []digest.Digest // nil: those of the layers
	sizeLie  int64           // added to the stated size of each layer
	leaveOut bool            // the layers are not in the archive
	extra    int             // more files in the archive
}

func (p parcel) archive(t *testing.T) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(name string, b []byte) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(b))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	blob := func(mediaType string, b []byte, present bool) v1.Descriptor {
		d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
		if present {
			add("blobs/sha256/"+d.Digest.Encoded(), b)
		}
		return d
	}
	encode := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	image := v1.Image{Platform: v1.Platform{OS: "linux", Architecture: goruntime.GOARCH}, Config: p.config, RootFS: v1.RootFS{Type: "layers"}}
	var layers []v1.Descriptor
	for _, l := range p.layers {
		image.RootFS.DiffIDs = append(image.RootFS.DiffIDs, digest.FromBytes(l))
		kind := v1.MediaTypeImageLayer
		if p.packed {
			kind, l = v1.MediaTypeImageLayerGzip, compress(t, l)
		}
		d := blob(kind, l, !p.leaveOut)
		d.Size += p.sizeLie
		layers = append(layers, d)
	}
	if p.diffs != nil {
		image.RootFS.DiffIDs = p.diffs
	}
	version := specs.Versioned{SchemaVersion: 2}
	config := blob(v1.MediaTypeImageConfig, encode(image), true)
	manifest := blob(v1.MediaTypeImageManifest, encode(v1.Manifest{
		Versioned: version, MediaType: v1.MediaTypeImageManifest, Config: config, Layers: layers,
	}), true)
	for n := range p.extra {
		add(fmt.Sprintf("blobs/sha256/%064d", n), []byte{byte(n), byte(n >> 8)})
	}
	add("index.json", encode(v1.Index{Versioned: version, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{manifest}}))
	add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

func compress(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// layer writes a layer of headers; a regular file gets its content from bodies.
func layer(t *testing.T, headers []tar.Header, bodies map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if body, ok := bodies[h.Name]; ok {
			h.Size = int64(len(body))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, bodies[h.Name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// probeLayer holds the test program and more files.
func probeLayer(t *testing.T, more ...tar.Header) []byte {
	t.Helper()
	b, err := os.ReadFile(probeBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	return layer(t, append([]tar.Header{{Name: "probe", Typeflag: tar.TypeReg}}, more...), map[string]string{
		"probe": string(b), "etc/passwd": "root:x:0:0::/:/bin/sh\ntrainer:x:1234:77::/:/bin/sh\n", "etc/group": "staff:x:88:\n",
	})
}

func (w *world) runParcel(t *testing.T, id string, p parcel, args ...string) runtime.Status {
	t.Helper()
	ctx := w.context(t)
	img, err := w.engine.Import(ctx, "haggle.test/"+id+":1", p.archive(t))
	if err != nil {
		t.Fatal(err)
	}
	spec := runtime.Spec{ID: id, Image: img.Digest, Args: args, DiskBytes: 32 << 20, Secrets: map[string][]byte{"s": []byte("secret\n")}}
	if err := errors.Join(w.engine.Create(ctx, spec), w.engine.Start(ctx, id)); err != nil {
		t.Fatal(err)
	}
	return w.awaitExit(t, id)
}

func TestAnImageOverTheBoundsIsRefusedBeforeItTakesRoom(t *testing.T) {
	w := newWorld(t)
	w.end()
	w.cfg.MaxImageBytes, w.cfg.MaxImageFiles = 32<<20, 300
	w.open(t)
	zeros := func(size int64) []byte {
		return layer(t, []tar.Header{{Name: "zeros", Typeflag: tar.TypeReg}}, map[string]string{"zeros": strings.Repeat("\x00", int(size))})
	}
	var many []tar.Header
	for n := range 301 {
		many = append(many, tar.Header{Name: fmt.Sprintf("d%d", n), Typeflag: tar.TypeDir})
	}
	var tall [][]byte
	for n := range 128 {
		tall = append(tall, layer(t, []tar.Header{{Name: fmt.Sprintf("f%d", n), Typeflag: tar.TypeReg}}, nil))
	}
	huge := layer(t, []tar.Header{{Name: "a", Typeflag: tar.TypeReg}}, nil)
	copy(huge[124:136], "77777777777\x00") // 8 GiB that are not there
	fixHeader(huge[:512])
	small := layer(t, []tar.Header{{Name: "a", Typeflag: tar.TypeReg}}, map[string]string{"a": "x"})
	for name, c := range map[string]struct {
		p    parcel
		want error
	}{
		"a bomb of zeros":                     {parcel{layers: [][]byte{zeros(200 << 20)}, packed: true}, runtime.ErrImageTooBig},
		"a bomb in two parts":                 {parcel{layers: [][]byte{zeros(20 << 20), zeros(21 << 20)}, packed: true}, runtime.ErrImageTooBig},
		"zeros after the end of a layer":      {parcel{layers: [][]byte{append(small, make([]byte, 40<<20)...)}, packed: true}, runtime.ErrImageTooBig},
		"too many files":                      {parcel{layers: [][]byte{layer(t, many, nil)}}, runtime.ErrImageTooBig},
		"a file that says it is huge":         {parcel{layers: [][]byte{huge}}, runtime.ErrImageTooBig},
		"too many layers":                     {parcel{layers: tall}, runtime.ErrBadArchive},
		"no layer":                            {parcel{}, runtime.ErrBadArchive},
		"a layer that is no archive":          {parcel{layers: [][]byte{bytes.Repeat([]byte("no"), 600)}}, runtime.ErrBadArchive},
		"a layer of another digest":           {parcel{layers: [][]byte{small}, diffs: []digest.Digest{digest.FromString("x")}}, runtime.ErrBadArchive},
		"a config that names no digest":       {parcel{layers: [][]byte{small}, diffs: []digest.Digest{"../../x"}}, runtime.ErrBadArchive},
		"a config of fewer layers":            {parcel{layers: [][]byte{small}, diffs: []digest.Digest{}}, runtime.ErrBadArchive},
		"a manifest that lies about sizes":    {parcel{layers: [][]byte{small}, sizeLie: -1}, runtime.ErrBadArchive},
		"a layer that the archive leaves out": {parcel{layers: [][]byte{small}, leaveOut: true}, runtime.ErrBadArchive},
		"an archive of many files":            {parcel{layers: [][]byte{small}, extra: 1100}, runtime.ErrBadArchive},
	} {
		_, err := w.engine.Import(w.context(t), "haggle.test/bad:1", c.p.archive(t))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if imgs, err := w.engine.Images(w.context(t)); err != nil || len(imgs) > 0 {
		t.Errorf("left %+v: %v", imgs, err)
	}
	for _, pattern := range []string{"content.v1.content/blobs/sha256/*", "content.v1.content/ingest/*", "snapshotter.v1.overlayfs/snapshots/*"} {
		if left, err := filepath.Glob(w.cfg.Root + "/io.containerd." + pattern); err != nil || len(left) > 0 {
			t.Errorf("left %d of %s: %v", len(left), pattern, err)
		}
	}
}

// fixHeader writes the checksum of a header of an archive.
func fixHeader(h []byte) {
	copy(h[148:156], "        ")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

func TestALayerThatLeadsOutOfItselfReachesNothing(t *testing.T) {
	w := newWorld(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.MkdirAll(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("of the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{"link/made": "x", "../../../../../.." + outside + "/made": "x", outside + "/made": "x", "up/made": "x"}
	for name, headers := range map[string][]tar.Header{
		"a link to a folder outside": {{Name: "link", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "link/made", Typeflag: tar.TypeReg}},
		"a relative link outside":    {{Name: "up", Typeflag: tar.TypeSymlink, Linkname: "../../../../../.." + outside}, {Name: "up/made", Typeflag: tar.TypeReg}},
		"a path that climbs":         {{Name: "../../../../../.." + outside + "/made", Typeflag: tar.TypeReg}},
		"an absolute path":           {{Name: outside + "/made", Typeflag: tar.TypeReg}},
		"a hard link outside":        {{Name: "hard", Typeflag: tar.TypeLink, Linkname: "../../../../../.." + secret}},
		"a hard link through a link": {{Name: "link", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "hard", Typeflag: tar.TypeLink, Linkname: "link/secret"}},
		"a mark that removes":        {{Name: "../../../../../.." + outside + "/.wh.secret", Typeflag: tar.TypeReg}},
		"a mark that empties": {
			{Name: "link", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "link/.wh..wh..opq", Typeflag: tar.TypeReg},
		},
	} {
		img, err := w.engine.Import(w.context(t), "haggle.test/odd:1", parcel{layers: [][]byte{layer(t, headers, bodies)}}.archive(t))
		if err != nil && !errors.Is(err, runtime.ErrBadArchive) {
			t.Errorf("%s: %v", name, err)
		}
		entries, err := os.ReadDir(outside)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%s: outside there are %v: %v", name, entries, err)
		}
		if b, err := os.ReadFile(secret); err != nil || string(b) != "of the host" {
			t.Fatalf("%s: the file outside is %q: %v", name, b, err)
		}
		found, err := filepath.Glob(w.cfg.Root + "/io.containerd.snapshotter.v1.overlayfs/snapshots/*/fs/hard")
		if err != nil || len(found) > 0 {
			t.Errorf("%s: the image %s holds %q: %v", name, img.Digest, found, err)
		}
	}
}

func TestTheImagesUserIsLookedUpInTheImage(t *testing.T) {
	w := newWorld(t)
	passwd := []tar.Header{{Name: "etc/passwd", Typeflag: tar.TypeReg, Mode: 0o644}, {Name: "etc/group", Typeflag: tar.TypeReg, Mode: 0o644}}
	for user, want := range map[string]string{"trainer": "1234 77", "trainer:staff": "1234 88", "9:9": "9 9"} {
		id := strings.NewReplacer(":", "-").Replace("u-" + user)
		p := parcel{layers: [][]byte{probeLayer(t, passwd...)}, config: v1.ImageConfig{Entrypoint: []string{"/probe"}, User: user}}
		w.runParcel(t, id, p, "stat", "/proc/self", "/run/secrets/s")
		out, _ := w.read(t, id, 0, "")
		if want := fmt.Sprintf("/proc/self %s 555\n/run/secrets/s %s 400\n", want, want); out != want {
			t.Errorf("user %s: %q", user, out)
		}
	}
	p := parcel{layers: [][]byte{probeLayer(t, passwd...)}, config: v1.ImageConfig{Entrypoint: []string{"/probe"}}}
	for user, want := range map[string]error{"nobody-here": runtime.ErrInvalidSpec, "70000:70000": runtime.ErrInvalidSpec} {
		p.config.User = user
		img, err := w.engine.Import(w.context(t), "haggle.test/bad:1", p.archive(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.engine.Create(w.context(t), runtime.Spec{ID: "bad", Image: img.Digest}); !errors.Is(err, want) {
			t.Errorf("user %s: %v", user, err)
		}
	}
}

func TestADeviceInAnImageIsNoDevice(t *testing.T) {
	w := newWorld(t)
	zero := tar.Header{Name: "zero", Typeflag: tar.TypeChar, Mode: 0o666, Devmajor: 1, Devminor: 5}
	odd := tar.Header{Name: "odd\x1b[31m\n", Typeflag: tar.TypeReg, Mode: 0o644}
	p := parcel{layers: [][]byte{probeLayer(t, zero, odd)}, config: v1.ImageConfig{Entrypoint: []string{"/probe"}}}
	// The device cgroup lets every job have a zero; it is the mount that makes no device of it.
	if st := w.runParcel(t, "reader", p, "cat", "/zero"); st.Exit == nil || st.Exit.Code != 1 {
		t.Errorf("reading it ended as %+v", st.Exit)
	}
}

func TestAnImageOfManyLayersStarts(t *testing.T) {
	w := newWorld(t)
	layers := [][]byte{probeLayer(t)}
	for n := range 126 {
		name := fmt.Sprintf("f%d", n)
		layers = append(layers, layer(t, []tar.Header{{Name: name, Typeflag: tar.TypeReg}, {Name: "same", Typeflag: tar.TypeReg}},
			map[string]string{name: "x", "same": fmt.Sprint(n)}))
	}
	p := parcel{layers: layers, config: v1.ImageConfig{Entrypoint: []string{"/probe"}}}
	if st := w.runParcel(t, "tall", p, "cat", "/f0", "/f125", "/same"); st.Exit == nil || st.Exit.Code != 0 {
		t.Errorf("it ended as %+v", st.Exit)
	}
	if out, _ := w.read(t, "tall", 0, ""); out != "xx125" {
		t.Errorf("the layers are %q", out)
	}
}
