//go:build linux && clients

package clients_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// imageTime bounds the making of an image.
const imageTime = 15 * time.Minute

// recipe is an image made of Debian's packages.
type recipe struct {
	name     string
	packages []string
}

// tools is what most tests work with: Python that learns, and rsync.
func tools() recipe { return recipe{"tools", []string{"python3", "python3-sklearn", "rsync"}} }

// notebook is a Jupyter server.
func notebook() recipe { return recipe{"notebook", []string{"jupyter-notebook", "python3-ipykernel"}} }

// leftOut tells whether a file stays out of images: what nobody reads in a job, and the compiler that comes with SciPy.
func leftOut(name string) bool {
	for _, folder := range []string{
		"usr/share/doc/", "usr/share/man/", "usr/share/locale/", "usr/share/info/", "usr/lib/gcc/", "usr/include/", "var/cache/apt/", "dev/", "proc/", "sys/",
	} {
		if strings.HasPrefix(name, folder) {
			return true
		}
	}
	tests := strings.HasPrefix(name, "usr/lib/python3/dist-packages/") && strings.Contains(name, "/tests/")
	return tests || strings.HasSuffix(name, ".a") || strings.Contains(path.Base(name), "-lto-dump") || strings.Contains(path.Base(name), "san.so.")
}

// archive returns the path of the image as an OCI archive. It is kept below .images, by a hash of what it is made of.
func (r recipe) archive(t *testing.T) string {
	t.Helper()
	require(t, "mmdebstrap")
	file := r.file(t)
	if _, err := os.Stat(file); err == nil {
		return file
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	root := r.bootstrap(t)
	if err := packImage(root, file+".new"); err != nil {
		t.Fatalf("make image %s: %v", r.name, err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("made %s of %s: %d MB in %s", filepath.Base(file), strings.Join(r.packages, ", "), info.Size()/1e6, time.Since(began).Round(time.Second))
	return file
}

// file names the archive by a hash of what it is made of.
func (r recipe) file(t *testing.T) string {
	t.Helper()
	const version = "1" // of how it is packed
	hash := sha256.Sum256([]byte(strings.Join(append([]string{version, runtime.GOARCH}, r.packages...), "\n")))
	folder, err := filepath.Abs("../../.images")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, r.name+"-"+hex.EncodeToString(hash[:6])+".oci")
}

// bootstrap makes the image's root as a tar file.
func (r recipe) bootstrap(t *testing.T) string {
	t.Helper()
	sources := "/etc/apt/sources.list.d/debian.sources"
	if _, err := os.Stat(sources); err != nil {
		sources = "/etc/apt/sources.list"
	}
	root := filepath.Join(t.TempDir(), "root.tar")
	ctx, cancel := context.WithTimeout(t.Context(), imageTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mmdebstrap", "--format=tar", "--variant=minbase", "--include="+strings.Join(r.packages, ","),
		`--aptopt=Acquire::Languages "none"`, `--aptopt=APT::Install-Recommends "false"`,
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*", "bookworm", root, sources)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("mmdebstrap: %v\n%s", err, out[max(0, len(out)-4000):])
	}
	return root
}

// packImage makes an OCI archive with one layer of a root.
func packImage(root, target string) (err error) {
	layer := root + ".layer"
	diff, size, err := packLayer(root, layer)
	if err != nil {
		return err
	}
	config := document(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Env": []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/root", "LANG=C.UTF-8"}, "WorkingDir": "/work"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{diff}},
	})
	manifest := document(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": descriptor("application/vnd.oci.image.config.v1+json", config),
		"layers": []any{map[string]any{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": diff, "size": size}},
	})
	index := document(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
		"manifests": []any{descriptor("application/vnd.oci.image.manifest.v1+json", manifest)},
	})
	f, err := os.Create(target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := tar.NewWriter(f)
	for _, d := range []struct {
		name string
		data []byte
	}{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", index},
		{blob(digest(manifest)), manifest},
		{blob(digest(config)), config},
	} {
		if err := writeEntry(out, d.name, int64(len(d.data)), bytes.NewReader(d.data)); err != nil {
			return err
		}
	}
	data, err := os.Open(layer)
	if err != nil {
		return err
	}
	defer data.Close()
	if err := writeEntry(out, blob(diff), size, data); err != nil {
		return err
	}
	return out.Close()
}

// packLayer copies a root without devices and what is left out.
func packLayer(root, target string) (diff string, size int64, err error) {
	from, err := os.Open(root)
	if err != nil {
		return "", 0, err
	}
	defer from.Close()
	to, err := os.Create(target)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	hash := sha256.New()
	in, out := tar.NewReader(from), tar.NewWriter(io.MultiWriter(to, hash))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", 0, err
		}
		if leftOut(strings.TrimPrefix(path.Clean("/"+h.Name), "/")) || h.Typeflag == tar.TypeChar || h.Typeflag == tar.TypeBlock {
			continue
		}
		h.PAXRecords, h.Format = nil, tar.FormatPAX
		if err := out.WriteHeader(h); err != nil {
			return "", 0, err
		}
		if _, err := io.Copy(out, in); err != nil {
			return "", 0, err
		}
	}
	if err := out.Close(); err != nil {
		return "", 0, err
	}
	size, err = to.Seek(0, io.SeekCurrent)
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), size, err
}

func writeEntry(out *tar.Writer, name string, size int64, data io.Reader) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err := io.Copy(out, data)
	return err
}

func document(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a document of maps and strings cannot be written: %v", err))
	}
	return data
}

func digest(data []byte) string {
	hash := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(hash[:])
}

func blob(digest string) string { return "blobs/sha256/" + strings.TrimPrefix(digest, "sha256:") }

func descriptor(kind string, data []byte) map[string]any {
	return map[string]any{"mediaType": kind, "digest": digest(data), "size": len(data)}
}
