package door

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Shell is the built-in shell, for images that have none. It reads commands from in, or with "-c" runs the one that follows,
// and returns the code of the last. Its language is that of bash. Besides the commands that are part of a shell it has a
// few of those that people need to look around, unless the image has them: see the list that `help` prints.
func Shell(ctx context.Context, args []string, in, out, errs *os.File) int {
	text, params, script, err := shellArgs(args)
	if err != nil {
		fmt.Fprintf(errs, "haggle shell: %v\n", err)
		return 2
	}
	terminal := isTerminal(in) && !script
	r, err := interp.New(
		interp.Interactive(terminal),
		interp.StdIO(in, out, errs),
		interp.ExecHandlers(withTools),
		interp.Params(append([]string{"--"}, params...)...),
	)
	if err != nil {
		fmt.Fprintf(errs, "haggle shell: %v\n", err)
		return 126
	}
	sh := &shell{runner: r, out: out, errs: errs, terminal: terminal}
	if script {
		return sh.command(ctx, text)
	}
	return sh.lines(ctx, in)
}

// maxScript bounds a script that is named as a file.
const maxScript = 1 << 20

// shellArgs reads the words behind the shell's name as those of sh: -c TEXT [NAME PARAMETER…], FILE [PARAMETER…], or none.
func shellArgs(args []string) (text string, params []string, script bool, err error) {
	switch {
	case len(args) == 0:
		return "", nil, false, nil
	case args[0] == "-c" && len(args) >= 2:
		return args[1], args[min(3, len(args)):], true, nil
	case strings.HasPrefix(args[0], "-"):
		return "", nil, false, errors.New("usage: sh [-c TEXT [NAME PARAMETER…] | FILE [PARAMETER…]]")
	}
	b := readBounded(args[0], maxScript+1)
	switch {
	case b == nil:
		return "", nil, false, fmt.Errorf("cannot read %s", args[0])
	case len(b) > maxScript:
		return "", nil, false, fmt.Errorf("%s is longer than %d bytes", args[0], maxScript)
	}
	return string(b), args[1:], true, nil
}

type shell struct {
	runner    *interp.Runner
	out, errs io.Writer
	terminal  bool
}

// command runs one text to its end.
func (sh *shell) command(ctx context.Context, text string) int {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		fmt.Fprintf(sh.errs, "haggle shell: %v\n", err)
		return 2
	}
	return sh.code(sh.runner.Run(ctx, file))
}

// lines runs what is typed or piped in, statement by statement.
func (sh *shell) lines(ctx context.Context, in io.Reader) int {
	interrupt := &interrupter{}
	if sh.terminal {
		fmt.Fprintln(sh.out, "This image has no shell. This is haggle's, with a few commands; type help.")
		interrupt.listen(func() { fmt.Fprint(sh.out, "\n"); sh.prompt(false) })
		defer interrupt.stop()
	}
	code := 0
	for {
		bad := false
		code, bad = sh.until(ctx, in, interrupt, code)
		if !bad || !sh.terminal || sh.runner.Exited() || ctx.Err() != nil {
			return code
		}
	}
}

// until runs statements until the end of in or a mistake in them, bad, after which a person may go on.
func (sh *shell) until(ctx context.Context, in io.Reader, interrupt *interrupter, code int) (_ int, bad bool) {
	parser := syntax.NewParser()
	sh.prompt(false)
	for statements, err := range parser.InteractiveSeq(in) {
		if err != nil {
			fmt.Fprintf(sh.errs, "haggle shell: %v\n", err)
			var mistake syntax.ParseError
			var foreign syntax.LangError
			return 2, errors.As(err, &mistake) || errors.As(err, &foreign)
		}
		if parser.Incomplete() {
			sh.prompt(true)
			continue
		}
		for _, s := range statements {
			running, done := interrupt.run(ctx)
			code = sh.code(sh.runner.Run(running, s))
			done()
			if sh.runner.Exited() || ctx.Err() != nil {
				return code, false
			}
		}
		sh.prompt(false)
	}
	if sh.terminal {
		fmt.Fprintln(sh.out)
	}
	return code, false
}

func (sh *shell) prompt(again bool) {
	switch {
	case !sh.terminal:
	case again:
		fmt.Fprint(sh.out, "> ")
	default:
		fmt.Fprintf(sh.out, "%s$ ", filepath.ToSlash(sh.runner.Dir))
	}
}

// code turns the end of a run into an exit code, and tells what is no code.
func (sh *shell) code(err error) int {
	var status interp.ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, context.Canceled):
		return 130
	}
	fmt.Fprintf(sh.errs, "haggle shell: %v\n", err)
	return 1
}

// interrupter turns Ctrl-C into the end of what runs, and not of the shell.
type interrupter struct {
	signals chan os.Signal
	mu      sync.Mutex
	cancel  context.CancelFunc // of what runs; nil at the prompt
}

func (i *interrupter) listen(atPrompt func()) {
	i.signals = make(chan os.Signal, 1)
	signal.Notify(i.signals, os.Interrupt)
	go func() {
		for range i.signals {
			i.mu.Lock()
			if i.cancel != nil {
				i.cancel()
			} else {
				atPrompt()
			}
			i.mu.Unlock()
		}
	}()
}

func (i *interrupter) stop() {
	signal.Stop(i.signals)
	close(i.signals)
}

func (i *interrupter) run(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	i.mu.Lock()
	i.cancel = cancel
	i.mu.Unlock()
	return ctx, func() {
		i.mu.Lock()
		i.cancel = nil
		i.mu.Unlock()
		cancel()
	}
}
