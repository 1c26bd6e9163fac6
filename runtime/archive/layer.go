package archive

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const (
	passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
	group  = "root:x:0:\nnogroup:x:65534:\n"

	defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// layerPlan is the content of the layer in the order of writing: parents before children.
type layerPlan []layerEntry

type layerEntry struct {
	path string // without leading slash
	dir  bool
	mode fs.FileMode
	file File
}

// planLayer puts the files in order, adds what is missing and refuses what is not clean.
func planLayer(files []File) (layerPlan, error) {
	entries := map[string]layerEntry{}
	for _, d := range []string{"dev", "proc", "sys", "etc"} {
		entries[d] = layerEntry{path: d, dir: true, mode: 0o755}
	}
	entries["root"] = layerEntry{path: "root", dir: true, mode: 0o700}
	entries["tmp"] = layerEntry{path: "tmp", dir: true, mode: 0o777 | fs.ModeSticky}
	for _, f := range files {
		p, err := cleanPath(f)
		if err != nil {
			return nil, err
		}
		if _, taken := entries[p]; taken {
			return nil, fmt.Errorf("%w: two entries at /%s", ErrInvalidImage, p)
		}
		entries[p] = layerEntry{path: p, mode: f.Mode.Perm(), file: f}
	}
	for p, text := range map[string]string{"etc/passwd": passwd, "etc/group": group} {
		if _, own := entries[p]; !own {
			entries[p] = layerEntry{path: p, mode: 0o644, file: textFile(p, text)}
		}
	}
	if err := addParents(entries); err != nil {
		return nil, err
	}
	plan := make(layerPlan, 0, len(entries))
	for _, e := range entries {
		plan = append(plan, e)
	}
	slices.SortFunc(plan, func(a, b layerEntry) int { return strings.Compare(a.path, b.path) })
	return plan, nil
}

// addParents adds the folders that files need and refuses a file where a folder is needed.
func addParents(entries map[string]layerEntry) error {
	var files []string
	for p, e := range entries {
		if !e.dir {
			files = append(files, p)
		}
	}
	for _, p := range files {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			e, ok := entries[dir]
			if ok && !e.dir {
				return fmt.Errorf("%w: /%s is a file and a folder", ErrInvalidImage, dir)
			}
			if !ok {
				entries[dir] = layerEntry{path: dir, dir: true, mode: 0o755}
			}
		}
	}
	return nil
}

func cleanPath(f File) (string, error) {
	p := strings.TrimPrefix(f.Path, "/")
	top, _, _ := strings.Cut(p, "/")
	switch {
	case p == "" || p == "." || path.Clean("/"+p) != "/"+p || strings.ContainsAny(p, "\\\x00\n"):
		return "", fmt.Errorf("%w: path %.200q is not clean", ErrInvalidImage, f.Path)
	case top == "dev" || top == "proc" || top == "sys":
		return "", fmt.Errorf("%w: /%s belongs to the system", ErrInvalidImage, p)
	case strings.HasPrefix(path.Base(p), ".wh."):
		return "", fmt.Errorf("%w: /%s would delete a file", ErrInvalidImage, p)
	case f.Size < 0 || f.Open == nil:
		return "", fmt.Errorf("%w: /%s has no content", ErrInvalidImage, p)
	}
	return p, nil
}

func (plan layerPlan) write(w io.Writer) error {
	out := tar.NewWriter(w)
	for _, e := range plan {
		if err := e.write(out); err != nil {
			return fmt.Errorf("pack /%s: %w", e.path, err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("end layer: %w", err)
	}
	return nil
}

func (e layerEntry) write(out *tar.Writer) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: e.path, Mode: int64(e.mode.Perm()), Size: e.file.Size}
	if e.mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	if e.dir {
		h.Typeflag, h.Name = tar.TypeDir, e.path+"/"
	}
	if err := out.WriteHeader(h); err != nil || e.dir {
		return err
	}
	r, err := e.file.Open()
	if err != nil {
		return err
	}
	defer r.Close()

	n, err := io.Copy(out, io.LimitReader(r, e.file.Size))
	if err != nil {
		return err
	}
	if extra, _ := io.CopyN(io.Discard, r, 1); n != e.file.Size || extra > 0 {
		return fmt.Errorf("%w: its size is not %d bytes", ErrInvalidImage, e.file.Size)
	}
	return nil
}

func textFile(p, text string) File {
	return File{Path: p, Mode: 0o644, Size: int64(len(text)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader([]byte(text))), nil
	}}
}

func withPath(env []string) []string {
	if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "PATH=") }) {
		return env
	}
	return append([]string{defaultPath}, env...)
}
