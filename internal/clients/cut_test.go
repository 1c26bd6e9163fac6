//go:build linux && clients

package clients_test

import (
	"fmt"
	"path/filepath"
	"strings"
)

// cut kills the agent, the rig's program and both, while a command counts and a copy runs: they go on, and nothing is lost or
// doubled.
func (h *host) cut() {
	const numbers = 150
	hash := h.random("cut", 96<<20)
	count := h.start(h.ssh("ssh", "box", fmt.Sprintf("for i in $(seq %d); do echo $i; sleep 0.1; done; exit 4", numbers)))
	count.awaitOut("\n5\n")
	// Slow enough to be cut more than once.
	scp := h.start(h.ssh("scp", "-l", "80000", filepath.Join(h.work, "cut"), "box:cut"))
	await(h.t, "the copy's begin", func() bool { return h.ssh("ssh", "box", "test -s cut").Run() == nil })
	h.killAgent()
	h.awaitAgent()
	count.awaitOut(fmt.Sprintf("\n%d\n", h.reached(count.out.String())+5))
	h.killRig(1)
	h.restartRig(1)
	count.awaitOut(fmt.Sprintf("\n%d\n", h.reached(count.out.String())+5))
	h.killAgent()
	h.killRig(1)
	h.restartRig(1)
	var want strings.Builder
	for i := range numbers {
		fmt.Fprintln(&want, i+1)
	}
	if got := count.wants(4); got != want.String() {
		h.t.Errorf("the count is\n%s", got)
	}
	scp.wants(0)
	h.says(hash+"  cut\n", "sha256sum cut")
}

// reached is the number to which a count has come.
func (h *host) reached(text string) int {
	return strings.Count(text, "\n")
}
