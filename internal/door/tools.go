package door

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
)

// tool is one command of the built-in shell, as it is called: with its arguments, its folder and its streams.
type tool struct {
	ctx    context.Context
	name   string
	args   []string // without options
	opts   string   // letters
	number string   // of -n N
	dir    string
	env    expand.Environ
	in     io.Reader
	out    io.Writer
	errs   io.Writer
	failed bool
}

func tools() map[string]func(*tool) {
	return map[string]func(*tool){
		"cat": cat, "chmod": chmod, "cp": cp, "du": du, "env": env, "head": head, "id": id, "kill": kill, "ln": ln, "ls": ls,
		"mkdir": mkdir, "mv": mv, "ps": ps, "rm": rm, "rmdir": rm, "scp": noCopy, "sleep": sleep, "tail": tail, "tee": tee,
		"touch": touch, "uname": uname, "wc": wc,
	}
}

// withTools runs the image's own program of a name, or else ours.
func withTools(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		hc := interp.HandlerCtx(ctx)
		if missingShell(hc, args[0]) {
			return next(ctx, slices.Concat(ownShell(), args[1:]))
		}
		run, ok := tools()[args[0]]
		if args[0] == "tools" {
			fmt.Fprintln(hc.Stdout, strings.Join(toolNames(), " "))
			return nil
		}
		if !ok {
			return next(ctx, args)
		}
		if _, err := interp.LookPathDir(hc.Dir, hc.Env, args[0]); err == nil {
			return next(ctx, args)
		}
		t := &tool{ctx: ctx, name: args[0], dir: hc.Dir, env: hc.Env, in: hc.Stdin, out: hc.Stdout, errs: hc.Stderr}
		if t.in == nil {
			t.in = strings.NewReader("")
		}
		t.options(args[1:])
		run(t)
		if ctx.Err() != nil {
			return interp.ExitStatus(130)
		}
		if t.failed {
			return interp.ExitStatus(1)
		}
		return nil
	}
}

// missingShell reports whether a name is that of a shell that the image does not have: commands and scripts call one by it.
func missingShell(hc interp.HandlerContext, name string) bool {
	switch name {
	case "sh", "bash", "/bin/sh", "/bin/bash":
		_, err := interp.LookPathDir(hc.Dir, hc.Env, name)
		return err != nil
	}
	return false
}

func toolNames() []string {
	var names []string
	for name := range tools() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// options takes the letters apart from the rest. -n N and -N are numbers.
func (t *tool) options(args []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			t.args = append(t.args, args[i+1:]...)
			return
		case len(a) < 2 || a[0] != '-' || t.name == "kill" || t.name == "chmod" && i > 0:
			t.args = append(t.args, a)
		case a == "-n" && i+1 < len(args) && (t.name == "head" || t.name == "tail"):
			i++
			t.number = args[i]
		case strings.Trim(a[1:], "0123456789") == "":
			t.number = a[1:]
		default:
			t.opts += strings.TrimLeft(a, "-")
		}
	}
}

func (t *tool) has(letters string) bool { return strings.ContainsAny(t.opts, letters) }

func (t *tool) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(t.dir, p)
}

// check tells an error, and says whether there was none.
func (t *tool) check(err error) bool {
	if err == nil {
		return true
	}
	t.failed = true
	var pe *os.PathError
	if errors.As(err, &pe) {
		fmt.Fprintf(t.errs, "%s: %s: %v\n", t.name, pe.Path, pe.Err)
	} else {
		fmt.Fprintf(t.errs, "%s: %v\n", t.name, err)
	}
	return false
}

func (t *tool) need(n int) bool {
	if len(t.args) >= n {
		return true
	}
	return t.check(errors.New("too few arguments"))
}

// each opens the files that are named, or the standard input where none are, one after the other.
func (t *tool) each(do func(name string, r io.Reader) error) {
	if len(t.args) == 0 {
		t.check(do("", t.in))
	}
	for _, name := range t.args {
		if t.ctx.Err() != nil {
			return
		}
		if name == "-" {
			t.check(do(name, t.in))
			continue
		}
		f, err := os.Open(t.path(name))
		if t.check(err) {
			t.check(do(name, f))
			_ = f.Close()
		}
	}
}

func sleep(t *tool) {
	if !t.need(1) {
		return
	}
	d, err := time.ParseDuration(t.args[0])
	if err != nil {
		d, err = time.ParseDuration(t.args[0] + "s")
	}
	if t.check(err) {
		pause(t.ctx, d)
	}
}

func env(t *tool) {
	for name, v := range t.env.Each {
		if v.Exported && v.IsSet() {
			fmt.Fprintf(t.out, "%s=%s\n", name, v.String())
		}
	}
}

// noCopy answers a client of the old protocol.
func noCopy(t *tool) {
	t.check(errors.New("this image has no scp; use scp without -O (OpenSSH 9 or newer), sftp, or haggle cp"))
}
