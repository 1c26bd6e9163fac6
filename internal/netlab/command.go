//go:build linux

package netlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// in makes a command that runs in a namespace. Only its network is another: it sees the machine's files and mounts, so that two
// commands of one host see each other's.
func in(ctx context.Context, space, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + filepath.Join(netnsDir, space), "--", name}, args...)...)
}

// ip gives iproute2 some lines, in a namespace unless that is "".
func ip(ctx context.Context, space string, lines ...string) error {
	args := []string{"-batch", "-"}
	if space != "" {
		args = append([]string{"-n", space}, args...)
	}
	return feed(exec.CommandContext(ctx, "ip", args...), strings.Join(lines, "\n")+"\n")
}

// nft loads rules in a namespace.
func nft(ctx context.Context, space, rules string) error {
	return feed(in(ctx, space, "nft", "-f", "-"), rules)
}

// set sets parameters of the kernel in a namespace, each "path=value" below /proc/sys.
func set(ctx context.Context, space string, parameters ...string) error {
	var script strings.Builder
	for _, p := range parameters {
		path, value, _ := strings.Cut(p, "=")
		fmt.Fprintf(&script, "echo %s >/proc/sys/%s\n", value, path)
	}
	return feed(in(ctx, space, "sh", "-e"), script.String())
}

// forward has a namespace pass packets on.
func forward(ctx context.Context, space string) error {
	return set(ctx, space, "net/ipv4/ip_forward=1", "net/ipv6/conf/all/forwarding=1")
}

// cable puts the two ends of a new cable into two namespaces.
func cable(ctx context.Context, space, device, other, port string) error {
	return ip(ctx, "", fmt.Sprintf("link add name %s netns %s type veth peer name %s netns %s", device, space, port, other))
}

// feed runs a command to its end with some input.
func feed(cmd *exec.Cmd, input string) error {
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s, of\n%s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(out), input)
	}
	return nil
}

// pids lists the processes in a namespace.
func pids(ctx context.Context, space string) ([]int, error) {
	out, err := exec.CommandContext(ctx, "ip", "netns", "pids", space).Output()
	if err != nil {
		return nil, fmt.Errorf("list the processes of %s: %w", space, err)
	}
	var list []int
	for text := range strings.FieldsSeq(string(out)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("list the processes of %s: %w", space, err)
		}
		list = append(list, pid)
	}
	return list, nil
}

// remove removes a namespace, and says what still ran there.
func remove(ctx context.Context, space string) error {
	list, err := pids(ctx, space)
	if err != nil {
		return err
	}
	for _, pid := range list {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // for the error's text
		err = errors.Join(err, fmt.Errorf("process %d was left in %s: %s", pid, space, bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	}
	return errors.Join(err, end(ctx, space))
}

// end kills what runs in a namespace and removes it.
func end(ctx context.Context, space string) error {
	list, err := pids(ctx, space)
	for _, pid := range list {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	if err := ip(ctx, "", "netns del "+space); err != nil {
		if _, gone := os.Stat(filepath.Join(netnsDir, space)); errors.Is(gone, fs.ErrNotExist) {
			return nil // another run has swept it
		}
		return err
	}
	return err
}
