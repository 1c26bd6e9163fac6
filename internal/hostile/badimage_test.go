//go:build linux

package hostile_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"haggle/runtime"
)

// lies are images whose parts are not what they say.
func (h *house) lies() map[string]image {
	next := 0
	file := func() [][]entry { // each another: what the engine holds already would hide what is missing
		next++
		return [][]entry{{{name: "file", data: bytes.Repeat(fmt.Appendf(nil, "text %d ", next), 2000)}}}
	}
	many := make([][]entry, 130)
	for i := range many {
		many[i] = []entry{{name: fmt.Sprintf("f%d", i), data: []byte("x")}}
	}
	first := func(d *documents) map[string]any { return d.manifest["layers"].([]any)[0].(map[string]any) }
	return map[string]image{
		"a layer with another content than its digest says": {layers: file(), spoil: func(d *documents) {
			wrong := packLayer([]entry{{name: "other", data: []byte("else")}})
			d.blobs[strings.TrimPrefix(first(d)["digest"].(string), "sha256:")] = wrong
		}},
		"a layer of another size than is said": {layers: file(), spoil: func(d *documents) { first(d)["size"] = 7 }},
		"a layer of a size below zero":         {layers: file(), spoil: func(d *documents) { first(d)["size"] = -1 }},
		"a layer that is missing": {layers: file(), spoil: func(d *documents) {
			delete(d.blobs, strings.TrimPrefix(first(d)["digest"].(string), "sha256:"))
		}},
		"a layer that unpacks to another than the config says": {layers: file(), gzip: true, spoil: func(d *documents) {
			d.config["rootfs"] = map[string]any{"type": "layers", "diff_ids": []any{"sha256:" + digestOf([]byte("another"))}}
		}},
		"more layers than the config has": {layers: file(), spoil: func(d *documents) {
			d.manifest["layers"] = append(d.manifest["layers"].([]any), first(d))
		}},
		"fewer layers than the config has": {layers: file(), spoil: func(d *documents) { d.manifest["layers"] = []any{} }},
		"a config that is another":         {layers: file(), spoil: func(d *documents) { d.manifest["config"] = descriptor(typeConfig, []byte("{}x")) }},
		"a config of a megabyte less than it says": {layers: file(), spoil: func(d *documents) {
			c := document(d.config)
			entry := descriptor(typeConfig, c)
			entry["size"] = len(c) + 1<<20
			d.manifest["config"] = entry
		}},
		"a digest that is a path": {layers: file(), spoil: func(d *documents) { first(d)["digest"] = "sha256:../../../../" + strings.Repeat("a", 52) }},
		"a digest of no kind":     {layers: file(), spoil: func(d *documents) { first(d)["digest"] = "none" }},
		"an index of an index of itself": {layers: file(), spoil: func(d *documents) {
			inner := document(map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []any{descriptor(typeIndex, []byte("{}"))}})
			d.blobs[digestOf(inner)], d.blobs[digestOf([]byte("{}"))] = inner, []byte("{}")
			d.index["manifests"] = []any{descriptor(typeIndex, inner)}
		}},
		"an image for another machine": {layers: file(), spoil: func(d *documents) {
			d.config["architecture"] = "s390x"
			d.index["manifests"] = []any{map[string]any{
				"mediaType": typeManifest, "digest": "sha256:" + digestOf([]byte("x")), "size": 1,
				"platform": map[string]any{"os": "linux", "architecture": "s390x"},
			}}
		}},
		"130 layers": {layers: many},
		"a tar that ends in the middle of a file": {layers: file(), spoil: func(d *documents) {
			for name, b := range d.blobs {
				cut := b[:len(b)/3]
				delete(d.blobs, name)
				d.blobs[digestOf(cut)] = cut
				e := descriptor(typeLayer, cut)
				d.manifest["layers"] = []any{e}
				d.config["rootfs"] = map[string]any{"type": "layers", "diff_ids": []any{e["digest"]}}
			}
		}},
	}
}

func TestAnImageThatLiesIsRefused(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	for name, img := range h.lies() {
		t.Run(name, func(t *testing.T) {
			digest, err := h.bring(h.engine, "lie", img)
			if err != nil {
				if !errors.Is(err, runtime.ErrBadArchive) && !errors.Is(err, runtime.ErrImageTooBig) {
					t.Errorf("refused, but not for what it is: %v", err)
				}
				t.Log(err)
				return
			}
			t.Errorf("accepted as %s", digest)
		})
	}
	h.nothingImported(t, "lie")
}

// nothingImported wants that a refused image left no name behind.
func (h *house) nothingImported(t *testing.T, names ...string) {
	t.Helper()
	all, err := h.engine.Images(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, img := range all {
		for _, name := range names {
			if strings.Contains(img.Name, "/"+name+":") {
				t.Errorf("%s is listed", img.Name)
			}
		}
	}
}

func TestAnImageThatUnpacksToMoreThanAnyMayIsRefusedEarly(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	files := make([]entry, 0, size(5000, 50000))
	for i := range cap(files) {
		files = append(files, entry{name: fmt.Sprintf("d%d/f%d", i%7, i), mode: 0o644})
	}
	for name, img := range map[string]image{
		"a small file that unpacks to more than any disk": {gzip: true, layers: [][]entry{{{name: "bomb", zeros: int64(size(256, 1024)) << 20}}}},
		"many empty files": {gzip: true, layers: [][]entry{files}},
		"a large file in each of many layers": {gzip: true, layers: [][]entry{
			{{name: "a", zeros: 60 << 20}}, {{name: "b", zeros: 60 << 20}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := h.taken()
			if _, err := h.bring(h.engine, "bomb", img); !errors.Is(err, runtime.ErrImageTooBig) {
				t.Errorf("got %v", err)
			} else {
				t.Log(err)
			}
			if after, _ := h.taken(); after > before+128<<20 {
				t.Errorf("%d bytes of the host's disk are gone", after-before)
			}
		})
	}
	h.nothingImported(t, "bomb")
}

// traps are layers that try to write or delete outside the folder that they are unpacked into.
func (h *house) traps() map[string][]entry {
	c := h.canary
	up := strings.Repeat("../", 24)
	return map[string][]entry{
		"a file through a link to a folder of the host": {{name: "evil", kind: tar.TypeSymlink, link: c}, {name: "evil/planted", data: []byte("x")}},
		"a file through a link of dots":                 {{name: "evil", kind: tar.TypeSymlink, link: up + c}, {name: "evil/planted", data: []byte("x")}},
		"a file over a link to a file of the host":      {{name: "evil", kind: tar.TypeSymlink, link: c + "/open"}, {name: "evil", data: []byte("x")}},
		"a file with an absolute name":                  {{name: c + "/planted", data: []byte("x")}},
		"a file whose name climbs":                      {{name: up + c + "/planted", data: []byte("x")}},
		"a hard link to a file of the host":             {{name: "evil", kind: tar.TypeLink, link: c + "/secret"}, {name: "evil", data: []byte("x")}},
		"a hard link that climbs":                       {{name: "evil", kind: tar.TypeLink, link: up + c + "/secret"}},
		"a hard link through a link":                    {{name: "d", kind: tar.TypeSymlink, link: c}, {name: "evil", kind: tar.TypeLink, link: "d/secret"}},
		"a deletion through a link":                     {{name: "d", kind: tar.TypeSymlink, link: c}, {name: "d/.wh.open", data: nil}},
		"a folder made empty through a link":            {{name: "d", kind: tar.TypeSymlink, link: c}, {name: "d/.wh..wh..opq", data: nil}},
		"a deletion of what is above":                   {{name: ".wh...", data: nil}},
		"a deletion of itself":                          {{name: ".wh..", data: nil}},
		"a deletion of nothing":                         {{name: ".wh.", data: nil}},
		"a deletion that climbs":                        {{name: up + c + "/.wh.open", data: nil}},
		"a folder over a link that gives it away":       {{name: "d", kind: tar.TypeSymlink, link: c}, {name: "d", kind: tar.TypeDir, mode: 0o700}},
		"a link to itself and a file through it":        {{name: "d", kind: tar.TypeSymlink, link: "d"}, {name: "d/planted", data: []byte("x")}},
		"names with control characters":                 {{name: "a\x1b[2J\nb", data: []byte("x")}},
	}
}

func TestALayerWritesNothingOutsideItsImage(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	for name, layer := range h.traps() {
		t.Run(name, func(t *testing.T) {
			_, err := h.bring(h.engine, "trap", image{layers: [][]entry{layer}})
			if err != nil && !errors.Is(err, runtime.ErrBadArchive) {
				t.Errorf("refused, but not for what it is: %v", err)
			}
			t.Logf("import: %v", err)
			if now := h.sum(); now != h.canarySum {
				t.Errorf("files of the host changed from\n%s\nto\n%s", h.canarySum, now)
				h.canarySum = now
			}
			if planted, _ := filepath.Glob(h.canary + "/planted"); len(planted) > 0 {
				t.Error("a file was planted")
			}
		})
	}
}

// mountTraps are images in which places where the engine mounts something are links elsewhere.
func (h *house) mountTraps() map[string][]entry {
	link := func(name, to string) entry { return entry{name: name, kind: tar.TypeSymlink, link: to} }
	up := strings.Repeat("../", 24)
	return map[string][]entry{
		"its folder for work is a link to the host":        {link("work", h.canary)},
		"its folder for work climbs":                       {link("work", up+h.canary)},
		"its folder for secrets is a link to the host":     {{name: "run/", kind: tar.TypeDir}, link("run/secrets", h.canary)},
		"its names of resolvers are a link to the host":    {link("etc/resolv.conf", h.canary+"/open")},
		"its names of hosts are a link to a secret":        {link("etc/hosts", up+h.canary+"/secret")},
		"its shared memory is a link to the host":          {link("dev/shm", h.canary)},
		"its own name is a link to the host":               {link("etc/hostname", h.canary+"/passwd")},
		"its folder for passwords is a link to the host's": {link("etc/passwd", h.canary+"/passwd")},
	}
}

func TestLinksInAnImageLeadMountsNowhereElse(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	for name, links := range h.mountTraps() {
		t.Run(name, func(t *testing.T) {
			digest, err := h.bring(h.engine, "links", image{layers: [][]entry{h.base(), links}})
			if err != nil {
				t.Fatal(err)
			}
			spec := h.spec(h.engine, "/attacker", "attack", "climb="+h.canary+"/open")
			spec.Image, spec.Secrets = digest, map[string][]byte{"s": []byte("x")}
			o, err := h.tryRun(t, h.engine, spec)
			t.Logf("job: %v", err) // refused or not: it must reach nothing
			if err == nil {
				o.held(t, "climb")
			}
			if now := h.sum(); now != h.canarySum {
				t.Errorf("files of the host changed from\n%s\nto\n%s", h.canarySum, now)
				h.canarySum = now
			}
		})
	}
	t.Run("its folders for the kernel's file systems are links", func(t *testing.T) {
		base := h.base()
		for i, e := range base {
			if e.name == "proc/" || e.name == "sys/" {
				base[i] = entry{name: strings.TrimSuffix(e.name, "/"), kind: tar.TypeSymlink, link: "/tmp"}
			}
		}
		digest, err := h.bring(h.engine, "links", image{layers: [][]entry{base}})
		if err != nil {
			t.Fatal(err)
		}
		spec := h.spec(h.engine, "/attacker", "attack", "write-proc", "masked-paths")
		spec.Image = digest
		o, err := h.tryRun(t, h.engine, spec)
		t.Logf("job: %v, exit %+v, %q", err, o.exit, o.out)
		if err == nil && o.exit != nil && o.exit.Code == 0 {
			o.held(t, "write-proc")
			o.held(t, "masked-paths")
		}
	})
}

func TestDeviceNodesInAnImageDoNotOpen(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	o, err := h.withNodes(t, h.engine)
	if errors.Is(err, runtime.ErrBadArchive) {
		t.Logf("the image is refused: %v", err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	o.held(t, "node-in-image")
}

// withNodes runs a job from an image that brings device nodes: of memory, of a loop device, and a harmless one.
func (h *house) withNodes(t *testing.T, e *engine) (outcome, error) {
	t.Helper()
	digest, err := h.bring(e, "nodes", image{layers: [][]entry{h.base(), {
		{name: "memory", kind: tar.TypeChar, major: 1, minor: 1, mode: 0o666},
		{name: "tun", kind: tar.TypeChar, major: 10, minor: 229, mode: 0o666},
		{name: "disk", kind: tar.TypeBlock, major: 7, minor: 0, mode: 0o666},
	}}})
	if err != nil {
		return outcome{}, err
	}
	spec := h.spec(e, "/attacker", "attack", "node-in-image=/memory,/tun,/disk")
	spec.Image = digest
	return h.tryRun(t, e, spec)
}

func TestAWorkingFolderThatIsAnOpenFileLeadsNowhere(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	for _, fd := range []int{3, 7, 8, 9, 11} {
		t.Run(fmt.Sprintf("file %d", fd), func(t *testing.T) {
			spec := h.spec(h.engine, "/attacker", "attack", "climb="+h.canary+"/open")
			spec.Workdir = fmt.Sprintf("/proc/self/fd/%d", fd)
			o, err := h.tryRun(t, h.engine, spec)
			if err != nil {
				t.Logf("refused: %v", err)
				return
			}
			o.held(t, "climb")
		})
	}
}

func TestAnImageWhoseProgramIsTheOneThatStartsIt(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	for _, program := range []string{"/proc/self/exe", "/proc/1/exe", "/proc/self/fd/6"} {
		t.Run(program+" changes no program of the host", func(t *testing.T) {
			spec := h.spec(h.engine, "init")
			digest, err := h.bring(h.engine, "selfexe", image{layers: [][]entry{h.base()}, entrypoint: []string{program}})
			if err != nil {
				t.Fatal(err)
			}
			spec.Image = digest
			o, err := h.tryRun(t, h.engine, spec)
			t.Logf("job: %v, exit %+v, %.300q", err, o.exit, o.out)
			if err == nil && o.exit != nil && o.exit.Code == 0 && !strings.Contains(o.out, "usage") {
				t.Errorf("it ran well: %q", o.out)
			}
		})
	}
}

func TestTheEngineSurvivesAnArchiveOfNoise(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	whole := image{layers: [][]entry{{{name: "f", data: []byte("x")}}}}.archive()
	broken := bytes.Clone(whole)
	for i := 0; i < len(broken); i += 97 {
		broken[i] ^= 0x55
	}
	for name, b := range map[string][]byte{"no bytes": nil, "noise": broken, "half an image": whole[:len(whole)/2], "not a tar": []byte(strings.Repeat("haggle", 1000))} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_, err := h.engine.Import(ctx, "haggle.test/noise:1", bytes.NewReader(b))
			if !errors.Is(err, runtime.ErrBadArchive) {
				t.Errorf("got %v", err)
			}
		})
	}
	h.nothingImported(t, "noise")
	if left, _ := filepath.Glob(h.engine.cfg.Root + "/io.containerd.content.v1.content/ingest/*"); len(left) > 0 {
		t.Logf("half imported: %d", len(left)) // containerd's own collector clears them
	}
}
