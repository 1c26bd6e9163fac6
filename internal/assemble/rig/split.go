//go:build linux

package rig

import (
	"context"
	"os"
	"time"

	"haggle/internal/config"
	"haggle/runtime/remote"
)

// allInOne is what an owner is told whose rig is root as a whole.
const allInOne = "haggled runs as root, the part that talks with the network too; the service units split it: " +
	"`make install`, then `systemctl enable --now haggled`"

// HelperSocket returns the socket of the helper that a rig is to use, or "" where the rig itself must be root: the one that is
// configured, or the one that is there where this program is not root.
func HelperSocket(cfg config.Rig) string {
	if cfg.Helper.Socket != "" {
		return cfg.Helper.Socket
	}
	if os.Geteuid() == 0 || cfg.Paths.Helper == "" {
		return ""
	}
	if _, err := os.Stat(cfg.Paths.Helper); err != nil {
		return ""
	}
	return cfg.Paths.Helper
}

// warnings are sentences for the owner that hold as long as the rig runs. A home is for labs and trials, where being root is no
// news.
func warnings(cfg config.Rig) []string {
	if cfg.Paths.Home == "" && os.Geteuid() == 0 {
		return []string{allInOne}
	}
	return nil
}

// privilege looks at who starts the containers.
func privilege(ctx context.Context, cfg config.Rig) Finding {
	socket := HelperSocket(cfg)
	switch {
	case socket != "":
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		helper := remote.Dial(ctx, socket)
		defer helper.Close()
		if _, err := helper.Probe(ctx); err != nil {
			return Finding{"root", LevelBad, err.Error(), "start the helper: `systemctl start haggled-helper`; `journalctl -u haggled-helper` says what it met"}
		}
		return Finding{"root", LevelGood, "the helper at " + socket + " alone", ""}
	case os.Geteuid() != 0:
		return Finding{"root", LevelBad, "not root, and no helper", "run haggled with sudo, or as a service: `make install` brings its units"}
	case cfg.Paths.Home == "":
		return Finding{"root", LevelNote, "all of haggled", allInOne}
	}
	return Finding{"root", LevelGood, "yes", ""}
}
