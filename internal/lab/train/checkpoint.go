package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	checkpointFormat = "haggle-train/1"
	maxCheckpoint    = 4 << 20 // bytes; a real one has about 120 KiB
)

// checkpoint is everything that a later run needs to go on as if this one had not stopped.
type checkpoint struct {
	Format string `json:"format"`
	Seed   uint64 `json:"seed"`
	Step   int    `json:"step"`
	Model  *model `json:"model"`
}

// save replaces the file at path in one step, so that a reader or a crash finds the old checkpoint or the new one, never a
// half of it.
func (c *checkpoint) save(path string) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".ckpt-*")
	if err != nil {
		return fmt.Errorf("save checkpoint %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("save checkpoint %s: %w", path, errors.Join(err, os.Remove(file.Name())))
		}
	}()
	err = json.NewEncoder(file).Encode(c)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// load reads the checkpoint at path. The error is fs.ErrNotExist where there is none.
func load(path string) (*checkpoint, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	c := new(checkpoint)
	err = json.NewDecoder(io.LimitReader(file, maxCheckpoint)).Decode(c)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read checkpoint %s: %w", path, err)
	case c.Format != checkpointFormat:
		return nil, fmt.Errorf("read checkpoint %s: format %q, want %q", path, c.Format, checkpointFormat)
	case c.Step < 0 || c.Model == nil:
		return nil, fmt.Errorf("read checkpoint %s: it holds no model", path)
	}
	return c, nil
}
