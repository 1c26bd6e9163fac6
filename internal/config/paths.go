package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"

	"github.com/adrg/xdg"
)

// maxSocket is the longest path of a socket that is used as it is. Systems allow 103 to 107 bytes.
const maxSocket = 100

// The longest names below a run folder: what is added to a folder must fit into a socket's path.
const (
	agentSocket      = "haggle.sock"
	rigSocket        = "haggled.sock"
	containerdSocket = "containerd/containerd.sock"
	containerdLonger = containerdSocket + ".ttrpc" // containerd's second socket
	helperSocket     = "helper.sock"
)

// The places of the helper where no home is given. They are root's: no user whom the helper serves can put a link there.
const (
	helperData = "/var/lib/haggled-helper"
	helperRun  = "/run/haggled-helper"
)

// Paths is where a program's files lie. All paths are absolute.
type Paths struct {
	Home     string // the folder that was asked for; "" where the system's own places are used
	Config   string // the configuration file
	Key      string // the program's private key
	Database string
	Log      string
	Run      string // the folder of sockets and of what need not outlive a reboot
	Socket   string // of the local API

	// Of rigs alone:
	Images     string // the folder of OCI archives that the rig makes itself
	Jobs       string // the folder of jobs' logs and files
	Volumes    string // the folder of jobs' disks
	Containerd ContainerdPaths
	Helper     string // where the helper's socket is without being configured; "" where it must be

	shared string // a folder of ours inside one that everybody may write to, or ""
}

// ContainerdPaths is where the rig's own containerd keeps its files.
type ContainerdPaths struct {
	Root   string // what outlives a reboot
	State  string
	Socket string
	Runc   string // runc's root
}

// AgentPaths returns the places of `haggle`: all below home, or where the system has such files if home is "".
func AgentPaths(home string) (Paths, error) {
	if home == "" {
		data, state := filepath.Join(xdg.DataHome, "haggle"), filepath.Join(xdg.StateHome, "haggle")
		run := state
		if isFolder(xdg.RuntimeDir) {
			run = filepath.Join(xdg.RuntimeDir, "haggle")
		}
		p := Paths{
			Config: filepath.Join(xdg.ConfigHome, "haggle", "config.toml"),
			Key:    filepath.Join(data, "key"), Database: filepath.Join(data, "haggle.db"), Log: filepath.Join(state, "agent.log"),
		}
		return p.agent(run), nil
	}
	home, err := filepath.Abs(home)
	if err != nil {
		return Paths{}, fmt.Errorf("find home: %w", err)
	}
	p := Paths{
		Home: home, Config: filepath.Join(home, "config.toml"), Key: filepath.Join(home, "key"),
		Database: filepath.Join(home, "haggle.db"), Log: filepath.Join(home, "agent.log"),
	}
	return p.agent(filepath.Join(home, "run")), nil
}

func (p Paths) agent(run string) Paths {
	p.Run, p.shared = shorten(run, len(agentSocket))
	p.Socket = filepath.Join(p.Run, agentSocket)
	return p
}

// LabHome returns the folder of this user's lab where none is named: `lab` in the state folder.
func LabHome() string { return filepath.Join(xdg.StateHome, "haggle", "lab") }

// RigPaths returns the places of `haggled`: all below home, or the system's if home is "".
func RigPaths(home string) (Paths, error) {
	if home == "" {
		p := Paths{Config: "/etc/haggle/haggled.toml", Helper: filepath.Join(helperRun, helperSocket)}
		return rig(p, "/var/lib/haggled", "/run/haggled"), nil
	}
	home, err := filepath.Abs(home)
	if err != nil {
		return Paths{}, fmt.Errorf("find home: %w", err)
	}
	return rig(Paths{Home: home, Config: filepath.Join(home, "haggled.toml")}, home, filepath.Join(home, "run")), nil
}

// HelperPaths returns the places of the helper, which keeps the engine's files where a rig is two programs: all below home, or
// the system's if home is "". Only root may write to them.
func HelperPaths(home string) (Paths, error) {
	var p Paths
	if home == "" {
		p = rig(Paths{Config: "/etc/haggle/haggled.toml"}, helperData, helperRun)
	} else {
		var err error
		if p, err = RigPaths(home); err != nil {
			return Paths{}, err
		}
	}
	p.Helper = filepath.Join(p.Run, helperSocket)
	return p, nil
}

func rig(p Paths, data, run string) Paths {
	p.Run, p.shared = shorten(run, len(containerdLonger))
	p.Key, p.Database, p.Log = filepath.Join(data, "key"), filepath.Join(data, "haggled.db"), filepath.Join(data, "haggled.log")
	p.Socket = filepath.Join(p.Run, rigSocket)
	p.Images, p.Jobs, p.Volumes = filepath.Join(data, "images"), filepath.Join(data, "jobs"), filepath.Join(data, "volumes")
	p.Containerd = ContainerdPaths{
		Root: filepath.Join(data, "containerd"), State: filepath.Join(p.Run, "containerd"),
		Socket: filepath.Join(p.Run, filepath.FromSlash(containerdSocket)), Runc: filepath.Join(p.Run, "runc"),
	}
	return p
}

// shorten returns a run folder below which a socket's name of some length fits. A folder that is too long is replaced by
// one with a short name, which is a hash of the long one: every program that is given the same home finds it. The second
// result is the folder to be wary of, if the short one lies where everybody may write.
func shorten(run string, name int) (folder, shared string) {
	if len(run)+1+name <= maxSocket {
		return run, ""
	}
	sum := sha256.Sum256([]byte(run))
	short := hex.EncodeToString(sum[:6])
	uid := os.Getuid()
	if goruntime.GOOS == "linux" && uid == 0 {
		return filepath.Join("/run/haggle", short), ""
	}
	if own := filepath.Join(xdg.RuntimeDir, "haggle", short); isFolder(xdg.RuntimeDir) && len(own)+1+name <= maxSocket {
		return own, ""
	}
	shared = filepath.Join(os.TempDir(), "haggle-"+strconv.Itoa(uid))
	if len(shared)+1+len(short)+1+name > maxSocket && goruntime.GOOS != "windows" {
		shared = filepath.Join("/tmp", "haggle-"+strconv.Itoa(uid))
	}
	return filepath.Join(shared, short), shared
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Make makes the folders of the key, the database, the log and the sockets, each for the owner alone; others may pass
// through a rig's run folder, to reach the socket whose mode decides who may use it.
func (p Paths) Make() error {
	if p.shared != "" {
		if err := claim(p.shared); err != nil {
			return err
		}
	}
	for _, file := range []string{p.Key, p.Database, p.Log} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return unmade(filepath.Dir(file), err)
		}
	}
	mode := os.FileMode(0o700)
	if p.Containerd.Root != "" {
		mode = 0o711
	}
	if err := os.MkdirAll(p.Run, mode); err != nil {
		return unmade(p.Run, err)
	}
	return nil
}

// ErrFolder means that a folder of the program cannot be made; the error names it and the reason.
var ErrFolder = errors.New("cannot be made")

// unmade tells why a folder cannot be made, without the system's words around it.
func unmade(folder string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err // folder is the path that counts
	}
	return fmt.Errorf("folder %s %w: %w", folder, ErrFolder, err)
}

// checkHome refuses a home that is there and is no folder. One that is not there is made when it is needed.
func checkHome(home string) error {
	info, err := os.Stat(home)
	if home == "" || err != nil || info.IsDir() {
		return nil
	}
	return &Error{Source: home, Problem: "is a file, and should be a folder", Hint: "name a folder with --home; it is made if need be"}
}

// claim makes a folder where everybody may make folders, and refuses one that somebody else has made there first.
func claim(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !os.IsExist(err) {
		return fmt.Errorf("make folder: %w", err)
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if !info.IsDir() || !ours(info) {
		return &Error{Source: folder, Problem: "is not a folder of yours alone", Hint: "have it removed, or choose a shorter --home"}
	}
	return nil
}
