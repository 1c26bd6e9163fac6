//go:build linux

package e2e_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"haggle/internal/config"
)

// A network that nobody else is in, and no way to reach anybody.
const alone = "network = \"lab-alone\"\nlisten = [\"/ip4/127.0.0.1/tcp/0\"]\n"

// somebody is an address at which nobody answers.
const somebody = "/ip4/127.0.0.1/tcp/9/p2p/12D3KooWHYPdkufDBheJygFysHictsc8Bd4G74Y2xx3g5Dg3RNg2"

// badStart is a program that cannot start.
type badStart struct {
	name    string
	prepare func(t *testing.T, home string)
	env     string
	args    []string // of the program; the home is in its environment
	code    int
	says    string
	hint    string
}

// withConfig writes a configuration file.
func withConfig(file, text string) func(t *testing.T, home string) {
	return func(t *testing.T, home string) {
		t.Helper()
		write(t, filepath.Join(home, file), text)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnAgentThatCannotStartSaysWhyInOneLine(t *testing.T) {
	t.Parallel()
	requireLab(t)
	taken := takenPort(t)
	run, offers := []string{"agent", "run"}, []string{"offers"}
	for _, c := range []badStart{
		{"a key that others can read", badKeyMode, "", run, 1, "/key can be used by others (mode 0644)", "run `chmod 600 "},
		{"a key that others can read, behind a command", badKeyMode, "", offers, 5, "the agent did not start: key ", "its log is "},
		{"a key that is none", func(t *testing.T, home string) { write(t, home+"/key", "hello") }, "", run, 1, "/key is not a PEM private key", "put back your copy"},
		{"an unknown key", withConfig("config.toml", "networx = \"main\""), "", offers, 2, "networx is not a key", "did you mean network?"},
		{"an unknown key, with run", withConfig("config.toml", "networx = \"main\""), "", []string{"run", "--image", "lab"}, 125, "networx is not a key", "did you mean network?"},
		{"a mistyped word", withConfig("config.toml", "log_level = \"inof\""), "", offers, 2, "log_level is \"inof\"", "did you mean info?"},
		{"a mistyped time", withConfig("config.toml", "idle_exit = \"1hh\""), "", offers, 2, "\"1hh\" is not a time such as 90s, 2h or 7d", "leaves after"},
		{"no TOML", withConfig("config.toml", "network = main"), "", offers, 2, "is not TOML: line 1", "need quotes"},
		{"a mistyped variable", nil, "HAGGLE_NETWRK=lab-x", offers, 2, "HAGGLE_NETWRK is not a variable of this program", "did you mean HAGGLE_NETWORK?"},
		{"a bad bootstrap address", withConfig("config.toml", alone+"bootstrap = [\"/ip4/127.0.0.1/tcp/9/p2p/12D3KooWnobody\"]"), "", run, 1, "bootstrap address \"/ip4/127.0.0.1/tcp/9/p2p/12D3KooWnobody\" cannot be used", "correct `bootstrap`"},
		{"a port in use", withConfig("config.toml", fmt.Sprintf("network = \"lab-alone\"\nlisten = [%q]", taken)), "", run, 1, taken + " is in use by another program", "choose another port with `listen`"},
		{"a damaged database", damagedAgent, "", run, 1, "haggle.db is damaged", "move it away with the files beside it"},
		{"a damaged database, behind a command", damagedAgent, "", offers, 5, "the agent did not start: ", "move it away with the files beside it"},
		{"a rig's database", foreignDatabase, "", run, 1, "haggle.db belongs to another program", "different folders with --home"},
	} {
		t.Run(c.name, func(t *testing.T) { c.try(t, "haggle", "HAGGLE_HOME") })
	}
}

func TestARigThatCannotStartSaysWhyInOneLine(t *testing.T) {
	t.Parallel()
	requireLab(t)
	taken := takenPort(t)
	serve := []string{"serve"}
	cards := "network = \"lab-alone\"\n[cards]\nsimulated = [{profile = \"RTX_4090\", count = 1}]\n"
	for _, c := range []badStart{
		{"a key that others can read", func(t *testing.T, home string) {
			badKeyMode(t, home)
			write(t, home+"/haggled.toml", cards)
		}, "", serve, 1, "/key can be used by others (mode 0644)", "run `chmod 600 "},
		{"an unknown key", withConfig("haggled.toml", "[prices]\nslott = \"0.40\""), "", serve, 2, "prices.slott is not a key", "did you mean prices.slot?"},
		{"an unknown key, with status", withConfig("haggled.toml", "[prices]\nslott = \"0.40\""), "", []string{"status"}, 2, "prices.slott is not a key", "did you mean prices.slot?"},
		{"a mistyped price", withConfig("haggled.toml", "[prices]\nslot = \"0,40\""), "", serve, 2, "prices.slot is not a price", "What a slot costs"},
		{"a mistyped variable", nil, "HAGGLED_RULES_MAXX=1h", serve, 2, "HAGGLED_RULES_MAXX is not a variable of this program", "did you mean HAGGLED_RULES_MAX?"},
		{"a port in use", withConfig("haggled.toml", fmt.Sprintf("listen = [%q]\n", taken)+cards), "", serve, 1, taken + " is in use by another program", "choose another port with `listen`"},
		{"a damaged database", func(t *testing.T, home string) {
			damage(t, home, "haggled.db")
			write(t, home+"/haggled.toml", cards)
		}, "", serve, 1, "haggled.db is damaged", "move it away with the files beside it"},
		{"nobody runs", nil, "", []string{"status"}, 5, "haggled is not running", "haggled serve"},
	} {
		t.Run(c.name, func(t *testing.T) { c.try(t, "haggled", "HAGGLED_HOME") })
	}
}

// try starts the program in a new home. What it finds there is there afterwards, byte for byte.
func (c badStart) try(t *testing.T, program, variable string) {
	t.Helper()
	home := shortDir(t)
	if c.prepare != nil {
		c.prepare(t, home)
	}
	before := snapshot(t, home)
	p := start(t, []string{variable + "=" + home, c.env}, program, c.args...).wants(c.code)
	wantSaid(t, p, c.says, c.hint)
	for path, data := range before {
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, data) {
			t.Errorf("%s has changed (%v)", path, err)
		}
	}
}

// snapshot reads all files of a folder but logs, and locks, which whoever starts takes.
func snapshot(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		if ext := filepath.Ext(f); ext == ".log" || ext == ".lock" {
			continue
		}
		if data, err := os.ReadFile(f); err == nil { // and not a folder
			all[f] = data
		}
	}
	return all
}

// takenPort listens on a port of loopback until the test ends.
func takenPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // closed with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port)
}

// usedHome makes a home of an agent that has run.
func usedHome(t *testing.T, home string) {
	t.Helper()
	write(t, filepath.Join(home, "config.toml"), alone)
	env := []string{"HAGGLE_HOME=" + home}
	start(t, env, "haggle", "offers").wants(5)
	start(t, env, "haggle", "agent", "stop").wants(0)
	await(t, "the end of the agent", func() bool { return !exists(filepath.Join(home, "haggle.db-wal")) })
}

func badKeyMode(t *testing.T, home string) {
	t.Helper()
	usedHome(t, home)
	if err := os.Chmod(filepath.Join(home, "key"), 0o644); err != nil { // which the program must notice
		t.Fatal(err)
	}
}

// damage leaves a database of which the middle was overwritten.
func damage(t *testing.T, home, name string) {
	t.Helper()
	from := shortDir(t)
	usedHome(t, from)
	data, err := os.ReadFile(filepath.Join(from, "haggle.db"))
	if err != nil || len(data) < 3*4096 {
		t.Fatalf("a database of %d bytes, %v", len(data), err)
	}
	for i := 4096; i < len(data)-4096; i++ {
		data[i] = 0xa5
	}
	write(t, filepath.Join(home, name), string(data))
}

func damagedAgent(t *testing.T, home string) {
	t.Helper()
	write(t, filepath.Join(home, "config.toml"), alone)
	damage(t, home, "haggle.db")
}

// foreignDatabase puts a rig's database where the agent's belongs.
func foreignDatabase(t *testing.T, home string) {
	t.Helper()
	rig := shortDir(t)
	write(t, filepath.Join(rig, "haggled.toml"), "network = \"lab-alone\"\n[cards]\nsimulated = [{profile = \"RTX_4090\", count = 1}]\n")
	p := start(t, nil, "haggle", "lab-rig", "serve", "--home", rig)
	await(t, "the rig's database", func() bool { return strings.Contains(p.err.String(), "rig is up") })
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.wants(0)
	data, err := os.ReadFile(filepath.Join(rig, "haggled.db"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, "haggle.db"), string(data))
	write(t, filepath.Join(home, "config.toml"), alone)
}

// nobody is a user who may write nowhere.
const nobody = 65534

func TestAHomeThatIsNoneIsSaidSo(t *testing.T) {
	t.Parallel()
	requireLab(t)
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil { // others may look, and not write
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	write(t, file, "")
	readOnly := smallDisk(t, 1<<20)
	if err := syscall.Mount("", readOnly, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	user := &syscall.Credential{Uid: nobody, Gid: nobody}
	for _, c := range []struct {
		name, program string
		as            *syscall.Credential
		home          string
		args          []string
		code          int
		says, hint    string
	}{
		{"an agent's home that is a file", "haggle", nil, file, []string{"offers"}, 2, file + ": is a file, and should be a folder", "--home"},
		{"a rig's home that is a file", "haggled", nil, file, []string{"status"}, 2, file + ": is a file, and should be a folder", "--home"},
		{"a home that cannot be made", "haggle", user, dir + "/new", []string{"offers"}, 1, "folder " + dir + "/new cannot be made: permission denied", "choose a folder"},
		{"a lab that cannot be made", "haggle", user, dir + "/new", []string{"lab", "up", "--engine", "process"}, 1, dir + "/new: permission denied", "--home"},
		{"a read-only disk", "haggle", nil, readOnly + "/new", []string{"offers"}, 1, "read-only file system", "mount that disk for writing"},
		{"a rig without root", "haggled", user, dir + "/new", []string{"serve"}, 2, "needs root", "sudo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startAs(t, c.as, []string{strings.ToUpper(c.program) + "_HOME=" + c.home}, c.program, c.args...).wants(c.code)
			wantSaid(t, p, c.says, c.hint)
		})
	}
}

func TestNobodyToAskIsUnreachableWithItsReason(t *testing.T) {
	t.Parallel()
	requireLab(t)
	for name, c := range map[string]struct{ knobs, hint string }{
		"no bootstrap peer at all":                  {alone, "no bootstrap peer is configured"},
		"a bootstrap peer that does not answer":     {alone + "bootstrap = [\"" + somebody + "\"]\n", "does not answer"},
		"a home whose path is too long for sockets": {alone, "no bootstrap peer is configured"},
	} {
		t.Run(name, func(t *testing.T) {
			home := shortDir(t)
			if strings.Contains(name, "path") {
				home = filepath.Join(home, strings.Repeat("long", 30))
				if err := os.Mkdir(home, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			write(t, filepath.Join(home, "config.toml"), c.knobs)
			paths, err := config.AgentPaths(home)
			if err != nil || len(paths.Socket) > 107 {
				t.Fatalf("socket %s, %v", paths.Socket, err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(paths.Run) }) // that of the long home lies elsewhere
			env := []string{"HAGGLE_HOME=" + home}
			stopAgent(t, env)
			wantSaid(t, start(t, env, "haggle", "offers").wants(5), "no peer of network lab-alone answers", c.hint)
			wantSaid(t, start(t, env, "haggle", order("bid", nil)...).wants(5), "no peer of network lab-alone answers", c.hint)
			wantSaid(t, start(t, env, "haggle", order("run", nil)...).wants(125), "no peer of network lab-alone answers", c.hint)
			p := start(t, env, "haggle", "status").wants(0)
			if !strings.Contains(p.out.String(), "lab-alone, not ready: ") || !strings.Contains(p.out.String(), c.hint) {
				t.Errorf("status does not say why:\n%s", p.out.String())
			}
		})
	}
}

func TestASecondInstanceIsRefusedAndTheFirstGoesOn(t *testing.T) {
	t.Parallel()
	l := newProcessLab(t, 1)
	agent, err := l.agent.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rig := l.rigStatus(1)
	p := l.haggle("agent", "run").wants(1)
	wantSaid(t, p, fmt.Sprintf("it runs already: open agent's database: %s/haggle.db is in use by process %d", l.home, agent.PID), "`haggle agent status` shows it")
	inUse := fmt.Sprintf("it runs already: open rig's database: %s/haggled.db is in use by process %d", l.rigHome(1), rig.PID)
	wantSaid(t, start(t, nil, "haggle", "lab-rig", "serve", "--home", l.rigHome(1)).wants(1), inUse, "another --home")
	wantSaid(t, l.haggled(1, "serve").wants(1), inUse, "`haggled status` shows it")
	if now := l.rigStatus(1); now.PID != rig.PID || now.Free != rig.Free {
		t.Errorf("the rig was %+v and is %+v", rig, now)
	}
	l.haggle(order("run", nil)...).wants(0)
}
