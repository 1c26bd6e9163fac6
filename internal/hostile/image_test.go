//go:build linux

package hostile_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	goruntime "runtime"
)

// entry is one entry of a layer, as hostile as tar can write it.
type entry struct {
	name  string
	kind  byte // 0 is a file
	link  string
	data  []byte
	mode  int64 // 0 is 0755
	major int64
	minor int64
	zeros int64 // so many zero bytes in place of data
}

// image is an image archive in the making. Its lies are made at the end.
type image struct {
	layers     [][]entry
	entrypoint []string
	env        []string
	user       string
	gzip       bool
	// spoil changes the documents and blobs before they are written: by their place in the archive.
	spoil func(*documents)
}

// documents are an archive's parts. Digests in them are what their makers say, true or not.
type documents struct {
	config, manifest, index map[string]any
	blobs                   map[string][]byte // by hex digest
}

// attackerImage holds the attacker, the honest probe, and what attacks need lying around.
func (h *house) attackerImage() image {
	return image{layers: [][]entry{h.base(), {
		{name: "suid", data: h.program("attacker"), mode: 0o4755},
	}}}
}

func (h *house) program(name string) []byte {
	b, err := os.ReadFile(h.programs[name])
	if err != nil {
		panic(err) // it was built a moment ago
	}
	return b
}

// base is the layer that every image with a job has.
func (h *house) base() []entry {
	return []entry{
		{name: "attacker", data: h.program("attacker")},
		{name: "probe", data: h.program("probe")},
		{name: "tmp/", kind: tar.TypeDir, mode: 0o1777},
		{name: "etc/", kind: tar.TypeDir},
		{name: "proc/", kind: tar.TypeDir},
		{name: "sys/", kind: tar.TypeDir},
		{name: "dev/", kind: tar.TypeDir},
		{name: "etc/passwd", data: []byte("root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n"), mode: 0o644},
	}
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func packLayer(entries []entry) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{
			Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: e.mode, Size: int64(len(e.data)), Devmajor: e.major, Devminor: e.minor,
			Format: tar.FormatPAX,
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		h.Size += e.zeros
		if err := w.WriteHeader(h); err != nil {
			panic(err) // a test that describes what tar cannot say
		}
		_, _ = w.Write(e.data)
		_, _ = io.CopyN(w, zeros{}, e.zeros)
	}
	_ = w.Close()
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func squeeze(b []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

func document(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return b
}

const (
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
	typeIndex    = "application/vnd.oci.image.index.v1+json"
)

func descriptor(kind string, b []byte) map[string]any {
	return map[string]any{"mediaType": kind, "digest": "sha256:" + digestOf(b), "size": len(b)}
}

// archive writes the image.
func (i image) archive() []byte {
	d := &documents{blobs: map[string][]byte{}}
	var layers, diffs []any
	for _, entries := range i.layers {
		plain := packLayer(entries)
		packed, kind := plain, typeLayer
		if i.gzip {
			packed, kind = squeeze(plain), typeLayer+"+gzip"
		}
		d.blobs[digestOf(packed)] = packed
		layers = append(layers, descriptor(kind, packed))
		diffs = append(diffs, "sha256:"+digestOf(plain))
	}
	d.config = map[string]any{
		"os": "linux", "architecture": goruntime.GOARCH, "rootfs": map[string]any{"type": "layers", "diff_ids": diffs},
		"config": map[string]any{"Entrypoint": i.entrypoint, "Env": i.env, "User": i.user},
	}
	d.manifest = map[string]any{"schemaVersion": 2, "mediaType": typeManifest, "layers": layers}
	d.index = map[string]any{"schemaVersion": 2, "mediaType": typeIndex}
	if i.spoil != nil {
		i.spoil(d)
	}
	config := document(d.config)
	if d.manifest["config"] == nil {
		d.manifest["config"] = descriptor(typeConfig, config)
	}
	d.blobs[digestOf(config)] = config
	manifest := document(d.manifest)
	if d.index["manifests"] == nil {
		d.index["manifests"] = []any{descriptor(typeManifest, manifest)}
	}
	d.blobs[digestOf(manifest)] = manifest
	return d.write()
}

func (d *documents) write() []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(name string, data []byte) {
		_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data))})
		_, _ = w.Write(data)
	}
	put("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	put("index.json", document(d.index))
	for name, data := range d.blobs {
		put("blobs/sha256/"+name, data)
	}
	_ = w.Close()
	return b.Bytes()
}
