package door

import "os"

// unlinked makes a file and takes its name away, where the system can before it is closed.
func unlinked(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "spool-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name())
	return f, nil
}
