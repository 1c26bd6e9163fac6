//go:build linux

package hostile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

const (
	cardClass = "haggle.test/card"
	firstCard = "card-aaaa-1111"
	otherCard = "card-bbbb-2222"
)

// cards are two that do not exist: character devices of a driver that is there, or is not, and says so.
type cards struct {
	nodes        string // folder below /dev
	descriptions string // folder of CDI descriptions
	programs     string // folder that only root can change, as far as the root folder
	hook         string // a program that writes down its environment
	record       string // where it does
}

func (h *house) makeCards() error {
	name := fmt.Sprintf("haggle-test-hgh%d", os.Getpid())
	c := &cards{nodes: "/dev/" + name, descriptions: h.dir + "/cdi", programs: "/var/lib/" + name}
	c.hook, c.record = c.programs+"/nvidia-cdi-hook", c.programs+"/record"
	h.cards = c
	for _, dir := range []string{c.nodes, c.descriptions, c.programs} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for node, minor := range map[string]uint32{"card-a": 234, "card-b": 235, "card-c": 183} { // of btrfs, autofs and random numbers
		path := filepath.Join(c.nodes, node)
		if err := errors.Join(unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(10, minor))), os.Chmod(path, 0o666)); err != nil {
			return fmt.Errorf("make %s: %w", path, err)
		}
	}
	script := "#!/bin/sh\n/usr/bin/env > " + c.record + "\n"
	if err := os.WriteFile(c.hook, []byte(script), 0o755); err != nil {
		return err
	}
	if err := c.forget(); err != nil {
		return err
	}
	device := func(id, node string) map[string]any {
		return map[string]any{"name": id, "containerEdits": map[string]any{
			"deviceNodes": []any{map[string]any{"path": filepath.Join(c.nodes, node)}},
			"hooks": []any{map[string]any{
				"hookName": "createContainer", "path": c.hook,
				"args": []string{"nvidia-cdi-hook", "create-symlinks", "--link", "libtest.so.1::/usr/lib/libtest.so"},
			}},
		}}
	}
	return c.describe("cards", map[string]any{
		"cdiVersion": "0.6.0", "kind": cardClass, "devices": []any{device(firstCard, "card-a"), device(otherCard, "card-b")},
	})
}

// forget empties the hook's record. Hooks run as the job's root, who is nobody here.
func (c *cards) forget() error {
	return errors.Join(os.WriteFile(c.record, nil, 0o666), os.Chmod(c.record, 0o666))
}

// describe writes a description of cards.
func (c *cards) describe(name string, v any) error {
	return os.WriteFile(filepath.Join(c.descriptions, name+".json"), document(v), 0o644)
}

func (c *cards) takeDown() error {
	if c == nil {
		return nil
	}
	return errors.Join(os.RemoveAll(c.nodes), os.RemoveAll(c.programs))
}

// withCard is a job that leases the first card.
func (h *house) withCard(e *engine, args ...string) runtime.Spec {
	s := h.spec(e, args...)
	s.Devices = []runtime.DeviceID{{Class: cardClass, UUID: firstCard}}
	return s
}

func TestALeasedCardOpensAndNoOther(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	a, b := h.cards.nodes+"/card-a", h.cards.nodes+"/card-b"
	attempts := []attempt{
		{"the leased card's node opens and the other's does not", "open-device=" + a + "," + b},
		{"nothing else in /dev opens", "devices=" + a},
		{"the other card's node cannot be made", "mknod=10:235"},
		{"nor made and opened", "mknod-open=10:235"},
	}
	o := h.run(t, h.engine, h.withCard(h.engine, append([]string{"/attacker", "attack"}, items(attempts)...)...))
	o.each(t, attempts)
}

func TestAHookDoesNotSeeTheJobsEnvironment(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	if held, found := h.hooked(t, h.engine); !held {
		t.Error(found)
	}
}

// hooked runs a job with LD_PRELOAD in its environment and a card whose hook writes its own down. A hook that has LD_PRELOAD
// runs the tenant's code as the host's root: CVE-2025-23266.
func (h *house) hooked(t *testing.T, e *engine) (bool, string) {
	t.Helper()
	if err := h.cards.forget(); err != nil {
		t.Fatal(err)
	}
	digest, err := h.bring(e, "preload", image{layers: [][]entry{h.base()}, env: []string{"LD_PRELOAD=/evil.so", "IMAGE_EVIL=1"}})
	if err != nil {
		t.Fatal(err)
	}
	spec := h.withCard(e, "/probe", "env")
	spec.Image, spec.Env = digest, []string{"LD_PRELOAD=/evil.so", "LD_AUDIT=/evil.so", "JOB_EVIL=1"}
	o, err := h.tryRun(t, e, spec)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(o.out, "JOB_EVIL=1") {
		t.Errorf("the job itself must have what it ordered: %q", o.out)
	}
	seen, err := os.ReadFile(h.cards.record)
	if err != nil || len(seen) == 0 {
		t.Fatalf("the hook did not run: %v", err)
	}
	for _, evil := range []string{"LD_PRELOAD", "LD_AUDIT", "IMAGE_EVIL", "JOB_EVIL"} {
		if strings.Contains(string(seen), evil) {
			return false, fmt.Sprintf("the hook's environment has %s: %q", evil, seen)
		}
	}
	return true, fmt.Sprintf("the hook's environment is %q", seen)
}

func TestACardBelongsToOneJob(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	if held, found := h.shared(t, h.engine); !held {
		t.Error(found)
	}
}

// shared leases one card to two jobs.
func (h *house) shared(t *testing.T, e *engine) (bool, string) {
	t.Helper()
	h.start(t, e, h.withCard(e, "/probe", "stubborn"))
	second := h.withCard(e, "/probe", "stubborn")
	err := e.Create(deadline(t), second)
	if rerr := e.Remove(deadline(t), second.ID); rerr != nil {
		t.Error(rerr)
	}
	return errors.Is(err, runtime.ErrDeviceBusy), fmt.Sprintf("second job: %v", err)
}

func TestADescriptionOfACardThatAsksForTheHostIsRefused(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	if err := h.cards.forget(); err != nil {
		t.Fatal(err)
	}
	for name, edits := range h.demands() {
		t.Run(name, func(t *testing.T) {
			err := h.demand(t, h.engine, edits)
			if !errors.Is(err, runtime.ErrPolicy) && !errors.Is(err, runtime.ErrNoDevice) {
				t.Errorf("got %v", err)
			}
			t.Log(err)
		})
	}
	if b, err := os.ReadFile(h.cards.record); err != nil || len(b) > 0 {
		t.Errorf("a hook ran: %q %v", b, err)
	}
}

// demands are what descriptions must not get.
func (h *house) demands() map[string]map[string]any {
	list := func(v ...any) []any { return v }
	node := func(path string) map[string]any {
		return map[string]any{"deviceNodes": list(map[string]any{"path": path})}
	}
	mount := func(from, to string, options ...string) map[string]any {
		return map[string]any{"mounts": list(map[string]any{"hostPath": from, "containerPath": to, "options": options})}
	}
	hook := func(stage, path string, args ...string) map[string]any {
		return map[string]any{"hooks": list(map[string]any{"hookName": stage, "path": path, "args": args})}
	}
	return map[string]map[string]any{
		"the host's root folder":      mount("/", "/host", "rbind", "rw"),
		"the host's passwords":        mount("/etc/shadow", "/shadow", "bind"),
		"containerd's socket":         mount(h.engine.cfg.State+"/containerd.sock", "/run/containerd.sock", "bind"),
		"a folder to write":           mount("/usr/lib", "/usr/lib", "bind", "rw"),
		"the host's memory":           node("/dev/mem"),
		"the host's terminals":        node("/dev/ptmx"),
		"a card under another name":   {"deviceNodes": list(map[string]any{"path": "/dev/card", "hostPath": "/dev/kmsg"})},
		"a shell as a hook":           hook("createContainer", "/bin/sh", "sh", "-c", "id > "+h.cards.record),
		"a hook in the host's spaces": hook("prestart", h.cards.hook, "nvidia-cdi-hook", "create-symlinks"),
		"a preloaded library":         {"env": []string{"LD_PRELOAD=/evil.so"}},
	}
}

// demand describes a card with such edits and orders a job with it.
func (h *house) demand(t *testing.T, e *engine, edits map[string]any) error {
	t.Helper()
	const class, id = "haggle.evil/card", "card-eeee-9999"
	nodes, _ := edits["deviceNodes"].([]any)
	edits["deviceNodes"] = append(nodes, map[string]any{"path": h.cards.nodes + "/card-c"})
	err := h.cards.describe("evil", map[string]any{
		"cdiVersion": "0.6.0", "kind": class, "devices": []any{map[string]any{"name": id, "containerEdits": edits}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(filepath.Join(h.cards.descriptions, "evil.json"))
	if err := e.cfg.Devices.Refresh(deadline(t)); err != nil {
		t.Fatal(err)
	}
	spec := h.spec(e, "/probe", "exit", "0")
	spec.Devices = []runtime.DeviceID{{Class: class, UUID: id}}
	err = e.Create(deadline(t), spec)
	return errors.Join(err, e.Remove(deadline(t), spec.ID))
}
