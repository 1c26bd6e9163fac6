//go:build linux

package netlab_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"haggle/runtime/archive"
)

// toolImage is an image with a shell and rsync, made of this machine's own programs: nothing is downloaded. It is made once.
var toolImage = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "tools.tar")
	return path, writeTools(path, "sh", "rsync", "sha256sum", "sleep", "cat", "seq", "dd", "stat")
})

// library finds the paths in what ldd prints.
var library = regexp.MustCompile(`(/\S+) \(0x`)

// writeTools writes an image with some programs and what they link.
func writeTools(path string, names ...string) (err error) {
	files := map[string]string{} // where it lies on this machine, by its place in the image
	for _, name := range names {
		program, err := exec.LookPath(name)
		if err != nil {
			return err
		}
		files["/bin/"+name] = program
		out, err := exec.CommandContext(context.Background(), "ldd", program).Output()
		if err != nil {
			return fmt.Errorf("what %s links: %w", program, err)
		}
		for _, found := range library.FindAllStringSubmatch(string(out), -1) {
			files[found[1]] = found[1]
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	image := archive.Image{Name: "tools", Cmd: []string{"/bin/sleep", "infinity"}, Workdir: "/work", Env: []string{"PATH=/bin"}}
	for place, from := range files {
		info, err := os.Stat(from) // behind links
		if err != nil {
			return err
		}
		image.Files = append(image.Files, archive.File{
			Path: place, Mode: 0o755, Size: info.Size(), Open: func() (io.ReadCloser, error) { return os.Open(from) },
		})
	}
	slices.SortFunc(image.Files, func(a, b archive.File) int { return strings.Compare(a.Path, b.Path) })
	_, err = archive.Write(f, image)
	return err
}
