//go:build linux

package rig

import (
	"archive/tar"
	"fmt"
	"os"

	"haggle/internal/config"
)

// images looks at the archives that the configuration names. A rig serves without them and cannot offer what they hold.
func images(cfg config.Rig) []Finding {
	var findings []Finding
	for _, image := range cfg.Images {
		f := Finding{"image " + image.Name, LevelGood, image.Archive, ""}
		if err := readable(image.Archive); err != nil {
			f.Level, f.Found = LevelNote, err.Error()
			f.Fix = "put an OCI archive there, or correct `images` in the configuration; without it the rig does not offer this image"
		}
		findings = append(findings, f)
	}
	return findings
}

// readable tells whether a file is there and begins as an archive does.
func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := tar.NewReader(f).Next(); err != nil {
		return fmt.Errorf("%s is no OCI archive: %w", path, err)
	}
	return nil
}
