package lab

import (
	"errors"
	"fmt"
	"io"
	"os"

	"haggle/runtime/archive"
)

// WriteImage writes the lab's job image to a file, as an OCI archive: the program haggle, whose hidden subcommand train is the
// job. No registry and no download are needed. A rig of one's own can offer it too.
func WriteImage(path, haggle string) (err error) {
	info, err := os.Stat(haggle)
	if err != nil {
		return fmt.Errorf("make the job image: %w", err)
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("make the job image: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = archive.Write(f, archive.Image{
		Name:       ImageName,
		Files:      []archive.File{{Path: "/bin/haggle", Mode: 0o755, Size: info.Size(), Open: func() (io.ReadCloser, error) { return os.Open(haggle) }}},
		Entrypoint: []string{"/bin/haggle"},
		Cmd:        []string{"train"},
		Workdir:    "/work",
	})
	if err != nil {
		return fmt.Errorf("make the job image: %w", err)
	}
	return nil
}
