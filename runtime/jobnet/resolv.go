//go:build linux

package jobnet

import (
	"fmt"
	"strings"
)

// ResolvConf is the text of a job's /etc/resolv.conf.
func (n *Networks) ResolvConf() []byte {
	var b strings.Builder
	for _, a := range n.cfg.Resolvers {
		fmt.Fprintf(&b, "nameserver %s\n", a)
	}
	return []byte(b.String())
}

// Hosts is the text of a job's /etc/hosts. The host name, which may be empty, is the job itself.
func (n *Networks) Hosts(hostname string) []byte {
	if hostname == "" || hostname == "localhost" {
		return []byte("127.0.0.1 localhost\n")
	}
	return fmt.Appendf(nil, "127.0.0.1 localhost\n127.0.1.1 %s\n", hostname)
}
