//go:build linux

package jobnet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"haggle/runtime"
)

const (
	programTime   = 10 * time.Second
	programOutput = 16 << 20
	programError  = 4 << 10
)

// errTooMuch ends a program that prints more than is read.
var errTooMuch = errors.New("prints too much")

// bounded keeps the first max bytes and fails on more.
type bounded struct {
	bytes.Buffer
	max int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.max {
		return 0, errTooMuch
	}
	return b.Buffer.Write(p)
}

// findProgram looks for a program also where administrators' programs are, which a service's PATH may leave out.
func findProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin/", "/sbin/"} {
		if s, err := os.Stat(dir + name); err == nil && s.Mode().IsRegular() {
			return dir + name, nil
		}
	}
	return "", fmt.Errorf("%s is not installed: %w", name, runtime.ErrUnsupported)
}

// program runs a program inside the rig's namespace and returns what it prints.
func (r *rig) program(ctx context.Context, input, name string, args ...string) (string, error) {
	path, err := findProgram(name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, programTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	out, problem := &bounded{max: programOutput}, &bounded{max: programError}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), out, problem
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.WaitDelay = time.Second
	// A child is in the namespace of the thread that starts it.
	if err := inside(r.ns, cmd.Start); err != nil {
		return "", fmt.Errorf("start %s: %w", name, err)
	}
	if err := cmd.Wait(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(problem.String()), "\n")
		return "", fmt.Errorf("%s %s: %w: %.300s", name, strings.Join(args, " "), err, first)
	}
	return out.String(), nil
}

// listing is a table as nft shows it, without what changes by itself. It is empty when there is no such table.
func (r *rig) listing(ctx context.Context, table string) (string, error) {
	tables, err := r.program(ctx, "", "nft", "list", "tables", "inet")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(tables) {
		if strings.TrimSpace(line) != "table inet "+table {
			continue
		}
		text, err := r.program(ctx, "", "nft", "-s", "list", "table", "inet", table)
		if err != nil && strings.Contains(err.Error(), "No such file or directory") {
			return "", nil // it was removed in between
		}
		return steady(text), err
	}
	return "", nil
}

// steady removes the elements of dynamic sets from a listing: the kernel adds and forgets them.
func steady(listing string) string {
	var b strings.Builder
	dynamic, skip := false, false
	for line := range strings.Lines(listing) {
		s := strings.TrimSpace(line)
		switch {
		case skip:
			skip = !strings.HasSuffix(s, "}")
			continue
		case strings.HasPrefix(s, "flags ") && strings.Contains(s, "dynamic"):
			dynamic = true
		case s == "}":
			dynamic = false
		case dynamic && strings.HasPrefix(s, "elements = "):
			skip = !strings.HasSuffix(s, "}")
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}

func fingerprint(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (r *rig) ask(message, flags int, family byte, attrs ...*nl.RtAttr) ([][]byte, error) {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|message, flags)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_NETFILTER: r.filter}
	req.AddData(&nl.Nfgenmsg{NfgenFamily: family})
	for _, a := range attrs {
		req.AddData(a)
	}
	return req.Execute(unix.NETLINK_NETFILTER, 0)
}

// generation changes by one with every change that anyone makes to the rules of the namespace. Asking costs next to nothing.
func (r *rig) generation() (uint32, error) {
	messages, err := r.ask(unix.NFT_MSG_GETGEN, 0, unix.NFPROTO_UNSPEC)
	if err != nil {
		return 0, fmt.Errorf("generation of the rules: %w", err)
	}
	for _, m := range messages {
		attrs, err := attributes(m)
		if err != nil {
			return 0, fmt.Errorf("generation of the rules: %w", err)
		}
		if id := attrs[unix.NFTA_GEN_ID]; len(id) == 4 {
			return binary.BigEndian.Uint32(id), nil
		}
	}
	return 0, errors.New("generation of the rules: the kernel does not tell it")
}

// counters returns the bytes of each named counter of a table; none when there is no table.
func (r *rig) counters(table string) (map[string]uint64, error) {
	return r.figures(table, unix.NFT_OBJECT_COUNTER, unix.NFTA_COUNTER_BYTES)
}

// quotas returns what is used of each named quota of a table, at most all of it.
func (r *rig) quotas(table string) (map[string]uint64, error) {
	return r.figures(table, unix.NFT_OBJECT_QUOTA, unix.NFTA_QUOTA_CONSUMED)
}

// figures returns one figure of each named object of a kind.
func (r *rig) figures(table string, object uint32, figure uint16) (map[string]uint64, error) {
	kind := nl.NewRtAttr(unix.NFTA_OBJ_TYPE, nl.BEUint32Attr(object))
	name := nl.NewRtAttr(unix.NFTA_OBJ_TABLE, nl.ZeroTerminated(table))
	var messages [][]byte
	var err error
	for range 5 { // A dump that a change of rules has cut through is asked for anew.
		messages, err = r.ask(unix.NFT_MSG_GETOBJ, unix.NLM_F_DUMP, unix.NFPROTO_INET, name, kind)
		if err == nil {
			break
		}
	}
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("counters: %w", err)
	}
	found := map[string]uint64{}
	for _, m := range messages {
		attrs, err := attributes(m)
		if err != nil {
			return nil, fmt.Errorf("counters: %w", err)
		}
		if nl.BytesToString(attrs[unix.NFTA_OBJ_TABLE]) != table {
			continue
		}
		data, err := nl.ParseRouteAttr(attrs[unix.NFTA_OBJ_DATA])
		if err != nil {
			return nil, fmt.Errorf("counters: %w", err)
		}
		for _, d := range data {
			if d.Attr.Type == figure && len(d.Value) == 8 {
				found[nl.BytesToString(attrs[unix.NFTA_OBJ_NAME])] = binary.BigEndian.Uint64(d.Value)
			}
		}
	}
	return found, nil
}

// attributes takes a message of the packet filter apart.
func attributes(m []byte) (map[uint16][]byte, error) {
	if len(m) < nl.SizeofNfgenmsg {
		return nil, errors.New("short message")
	}
	list, err := nl.ParseRouteAttr(m[nl.SizeofNfgenmsg:])
	if err != nil {
		return nil, err
	}
	attrs := make(map[uint16][]byte, len(list))
	for _, a := range list {
		attrs[a.Attr.Type&nl.NLA_TYPE_MASK] = a.Value
	}
	return attrs, nil
}
