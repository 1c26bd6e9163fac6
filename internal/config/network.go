package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// keptEnding is added to the name of a configuration file's last state.
const keptEnding = ".old"

// SetNetwork changes the network that an agent's configuration file names, its private network's creator ("" for a public one) and
// the members that are asked first. Only what stands in the file is written, not what flags or the environment say. The file is
// written anew with every knob; what was there is kept beside it.
func (a Agent) SetNetwork(file, network, creator string, bootstrap []string) error {
	if file == "" {
		file = a.Paths.Config
	}
	c, err := LoadAgent(Flags{Home: a.Paths.Home, File: present(file), Env: noVariables})
	if err != nil {
		return err
	}
	c.Network, c.Sources.Creator, c.Bootstrap = network, creator, bootstrap
	if err := keep(file); err != nil {
		return err
	}
	return WriteAgent(file, c)
}

// SetNetwork is Agent.SetNetwork for a rig's configuration file.
func (r Rig) SetNetwork(file, network, creator string, bootstrap []string) error {
	if file == "" {
		file = r.Paths.Config
	}
	c, err := LoadRig(Flags{Home: r.Paths.Home, File: present(file), Env: noVariables})
	if err != nil {
		return err
	}
	c.Network, c.Sources.Creator, c.Bootstrap = network, creator, bootstrap
	if err := keep(file); err != nil {
		return err
	}
	return WriteRig(file, c)
}

func noVariables(string) (string, bool) { return "", false }

// present returns a file's path, or that of an empty one where there is none yet.
func present(file string) string {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return os.DevNull
	}
	return file
}

// keep copies a file to one beside it, if there is one.
func keep(file string) error {
	data, err := readFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", file, err)
	}
	return replace(file+keptEnding, string(data))
}
