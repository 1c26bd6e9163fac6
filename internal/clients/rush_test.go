//go:build linux && clients

package clients_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// endless has many connections on which the job sends for ever and nobody reads.
func (h *host) endless() {
	h.write("endless.py", `
import os, socket, threading, time
sent = [0]
def feed(c):
    block = b"\0" * 65536
    while True:
        sent[0] += c.send(block)
def count():
    while True:
        with open("sent.new", "w") as f: f.write(str(sent[0]))
        os.replace("sent.new", "sent")
        time.sleep(0.5)
s = socket.create_server(("127.0.0.1", 9100))
threading.Thread(target=count, daemon=True).start()
print("ready", flush=True)
while True:
    c, _ = s.accept()
    threading.Thread(target=feed, args=(c,), daemon=True).start()
`)
	h.run("haggle", "cp", "endless.py", "box:endless.py")
	job := h.start(h.ssh("ssh", "box", "exec python3 endless.py"))
	job.awaitOut("ready")
	defer job.interrupt()
	forward := h.start(h.command("haggle", "forward", "box", "9100:"+freePort(h.t)))
	defer forward.interrupt()
	forward.awaitOut(" -> ")
	address, _, _ := strings.Cut(forward.out.String(), " ")
	agent, rig := h.agentPID(), h.rigPID(1)
	before := []int{rss(agent), rss(rig), rss(forward.cmd.Process.Pid)}
	for range 20 {
		c, err := net.Dial("tcp", address) //nolint:noctx // loopback
		if err != nil {
			h.t.Fatal(err)
		}
		defer c.Close()
	}
	last := -1
	await(h.t, "the end of sending that nobody reads", func() bool {
		text, _ := h.ssh("ssh", "box", "sleep 1; cat sent").Output() // asked again
		now, err := strconv.Atoi(strings.TrimSpace(string(text)))
		still := err == nil && now > 0 && now == last
		last = now
		return still
	})
	h.t.Logf("20 connections took %d MB until they stood still", last/1e6)
	for i, pid := range []int{agent, rig, forward.cmd.Process.Pid} {
		name := []string{"agent", "haggled", "forward"}[i]
		grown := rss(pid) - before[i]
		h.t.Logf("%s: %d MB, grown by %d MB", name, rss(pid)/1000, grown/1000)
		if grown > 120_000 {
			h.t.Errorf("the memory of %s has grown by %d MB", name, grown/1000)
		}
	}
	h.says("fine\n", "echo fine")
}

// rss returns a process's memory in kB.
func rss(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, text2, _ := strings.Cut(string(text), "VmRSS:")
	kB, _ := strconv.Atoi(strings.Fields(text2)[0]) // the kernel writes it
	return kB
}

// noRig asks for a port of the rig's loopback, which is this machine's, by every way that a job's network has.
func (h *host) noRig() {
	port := serve(h.t, "the rig's own")
	local, socks := freePort(h.t), freePort(h.t)
	ssh := h.start(h.ssh("ssh", "-N", "-L", local+":127.0.0.1:"+port, "-D", socks, "box"))
	defer ssh.interrupt()
	forward := h.start(h.command("haggle", "forward", "box", port+":"+freePort(h.t)))
	defer forward.interrupt()
	forward.awaitOut(" -> ")
	address, _, _ := strings.Cut(forward.out.String(), " ")
	await(h.t, "the forward", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+socks) //nolint:noctx // loopback
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	targets := [][]string{{"http://127.0.0.1:" + local}, {"http://" + address}}
	for _, to := range append(addresses(h.t), "127.0.0.1", "169.254.169.254") {
		targets = append(targets, []string{"--socks5-hostname", "127.0.0.1:" + socks, "http://" + to + ":" + port})
	}
	for _, args := range targets {
		if out, err := h.command("curl", append([]string{"-s", "-m", "5"}, args...)...).Output(); err == nil {
			h.t.Errorf("curl %s answers %q", strings.Join(args, " "), out)
		}
	}
}

// addresses lists this machine's own addresses, which a job must not reach.
func addresses(t *testing.T) []string {
	t.Helper()
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			texts = append(texts, n.IP.String())
		}
	}
	return texts
}

// ownDoor has a job connect to its own door a thousand times, with garbage and in silence.
func (h *host) ownDoor() {
	out := h.wants(h.ssh("ssh", "box", `python3 - <<'EOT'
import os, socket
names = [line.split()[-1] for line in open("/proc/net/unix") if line.split()[-1].startswith("@")]
print(len(names) > 0)
held = []
for i in range(1000):
    for n in names:
        try:
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(0.2)
            s.connect("\0" + n[1:])
            s.send(os.urandom(100) if i % 2 else b"")
            held.append(s)
        except OSError:
            pass
EOT`), 0)
	if out != "True\n" {
		h.t.Errorf("the job sees no door of its own: %q", out)
	}
	h.awaitWay()
	before := h.wants(h.ssh("ssh", "box", "echo $PPID"), 0)
	h.wants(h.ssh("ssh", "box", "kill -9 $PPID; sleep 1000"), 255)
	h.awaitWay()
	if after := h.wants(h.ssh("ssh", "box", "echo $PPID"), 0); after == before {
		h.t.Errorf("the door lives on after its kill as process %s", after)
	}
}

// awaitWay wants a way into the job, perhaps after a while: a door takes so many at once.
func (h *host) awaitWay() {
	h.t.Helper()
	await(h.t, "a way inside after the rush", func() bool {
		out, err := h.ssh("ssh", "box", "echo fine").Output()
		return err == nil && string(out) == "fine\n"
	})
}

// tunnels opens two thousand paths by the agent's own interface, as a renter's program could.
func (h *host) tunnels() {
	socket := filepath.Join(h.home, "run/haggle.sock")
	id := ""
	for _, v := range h.leases() {
		if v.Name == "box" && v.State == "running" {
			id = v.ID
		}
	}
	var mu sync.Mutex
	var held []net.Conn
	answers := map[string]int{}
	var all sync.WaitGroup
	for range 2000 {
		all.Go(func() {
			c, status := openPath(socket, id)
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
			if c != nil {
				held = append(held, c)
			}
		})
	}
	all.Wait()
	h.t.Logf("2000 tunnels were answered so: %v; the rig has %d MB, the agent %d MB", answers, rss(h.rigPID(1))/1000, rss(h.agentPID())/1000)
	if h.rigPID(1) == 0 || rss(h.rigPID(1)) > 600_000 {
		h.t.Errorf("the rig has %d MB", rss(h.rigPID(1))/1000)
	}
	if n := answers["101"]; n == 0 || n == 2000 {
		h.t.Errorf("%d of 2000 tunnels are open", n)
	}
	for _, c := range held {
		_ = c.Close()
	}
	h.awaitWay()
}

// openPath asks the agent for a path into a job. The answer is an HTTP status, or what went wrong.
func openPath(socket, id string) (net.Conn, string) {
	c, err := net.Dial("unix", socket) //nolint:noctx // a local socket
	if err != nil {
		return nil, "no connection"
	}
	_ = c.SetDeadline(time.Now().Add(60 * time.Second)) // of a socket it never fails
	_, err = io.WriteString(c, "GET /v1/leases/"+id+"/tunnel HTTP/1.1\r\nHost: haggle\r\nConnection: Upgrade\r\nUpgrade: haggle-tunnel\r\n\r\n")
	if err != nil {
		_ = c.Close()
		return nil, "cut"
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		_ = c.Close()
		return nil, "no answer"
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		_ = c.Close()
		return nil, strconv.Itoa(res.StatusCode)
	}
	return c, "101"
}
