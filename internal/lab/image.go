package lab

import (
	"errors"
	"fmt"
	"io"
	"os"

	"haggle/runtime/archive"
)

// writeImage makes the lab's job image: this very program, whose hidden subcommand train is the job. No registry and no
// download are needed.
func writeImage(path, haggle string) (err error) {
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
