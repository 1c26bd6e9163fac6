package rig

import (
	"crypto/ed25519"
	"os"
	"time"

	"haggle/internal/config"
	"haggle/internal/networks"
	"haggle/p2p"
)

// Networks returns where a rig keeps its networks. File is the configuration file where another than the usual one was named.
func Networks(c config.Rig, file string) networks.Place {
	return networks.Place{
		Folder: networks.FolderBeside(c.Paths.Database),
		Key: func() (ed25519.PrivateKey, error) {
			if _, err := MakeKey(c); err != nil {
				return nil, err
			}
			return p2p.LoadOrCreateKey(c.Paths.Key)
		},
		Read: func() (networks.Settings, error) {
			return networks.Settings{Network: c.Network, Creator: c.Sources.Creator, Bootstrap: c.Bootstrap}, nil
		},
		Write: func(s networks.Settings) error { return c.SetNetwork(file, s.Network, s.Creator, s.Bootstrap) },
		Now:   time.Now,
		Owned: func(paths ...string) error {
			if c.Paths.Home != "" || os.Geteuid() != 0 {
				return nil
			}
			return handOver(c.Helper.User, paths...)
		},
	}
}
