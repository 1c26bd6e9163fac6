package inside

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// attackLimit is when an attack that does not end by itself is ended.
const attackLimit = time.Minute

// weapon is one attack: what it is given are the words behind its name.
type weapon struct {
	name string
	try  func(args []string) verdict
}

func weapons() []weapon {
	return slices.Concat(fileWeapons(), mountWeapons(), kernelWeapons(), processWeapons(), deviceWeapons(), netWeapons(), bombs())
}

// Attacks lists the names of all attacks in order.
func Attacks() []string {
	var all []string
	for _, w := range weapons() {
		all = append(all, w.name)
	}
	slices.Sort(all)
	return all
}

// attack runs one attack in this process, or each of several in a process of its own: some leave nothing usable behind.
func attack(items []string, out io.Writer) int {
	if len(items) == 1 {
		return attackOne(items[0], out)
	}
	code := 0
	for _, item := range items {
		cmd := again("attack", item)
		cmd.Stderr = os.Stderr
		answer, err := cmd.Output()
		if _, werr := out.Write(answer); werr != nil {
			return 1
		}
		if err != nil {
			tell(out, Result{Name: item, Found: "the attack did not end well: " + err.Error()})
			code = 1
		}
	}
	return code
}

func attackOne(item string, out io.Writer) int {
	name, rest, _ := strings.Cut(item, "=")
	var args []string
	if rest != "" {
		args = strings.Split(rest, ",")
	}
	all := weapons()
	i := slices.IndexFunc(all, func(w weapon) bool { return w.name == name })
	if i < 0 {
		fmt.Fprintf(out, "no attack is called %q\n", name)
		return 2
	}
	time.AfterFunc(attackLimit, func() {
		tell(out, Result{Name: item, Found: fmt.Sprintf("it was not over after %s", attackLimit)})
		os.Exit(1)
	})
	v := all[i].try(args)
	tell(out, Result{Name: item, Holds: v.holds, Found: v.found, Count: v.count})
	return 0
}

// word is an argument, or def where there is none.
func word(args []string, i int, def string) string {
	if i < len(args) && args[i] != "" {
		return args[i]
	}
	return def
}

// number is an argument that counts something.
func number(args []string, i int, def int64) int64 {
	n := int64(0)
	if _, err := fmt.Sscanf(word(args, i, ""), "%d", &n); err != nil {
		return def
	}
	return n
}

// again is this program once more, with other words behind those that lead to Main. It ends itself, see attackLimit.
func again(words ...string) *exec.Cmd {
	i := slices.IndexFunc(os.Args, func(a string) bool { return a == "attack" || a == "check" })
	return exec.Command("/proc/self/exe", slices.Concat(os.Args[1:max(i, 1)], words)...) //nolint:noctx // it ends itself
}
