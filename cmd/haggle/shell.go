package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
)

const insideHelp = "The name of a lease, or the first digits of its id, name it. The connection goes through the agent and survives its\n" +
	"restart, the rig's, and a change of address. The exit code is that of the command, 128 + n where signal n ended it, and\n" +
	"125 for every failure of haggle's own."

func (p *program) shellCommand() *cobra.Command {
	c := p.action(&cobra.Command{
		Use:   "shell LEASE [-- COMMAND…]",
		Short: "open a shell inside a job",
		Long: "Open a shell inside a job. A command is given to the job's shell as it stands, as ssh does. There is a shell in every\n" +
			"image: where it brings none, haggle's own small one takes its place.\n\n" +
			"At the beginning of a line, ~. ends the connection, ~~ is a ~ and ~? lists these.\n\n" + insideHelp,
		Example: "  haggle shell train\n  haggle shell 3f9a -- 'nvidia-smi | head'\n  haggle shell train <script.sh",
		Args:    cli.Words(1, 1<<16, "LEASE"),
		Annotations: map[string]string{
			cli.OwnFailure: strconv.Itoa(cli.ExitOwn),
		},
	}, func(ctx context.Context, args []string) error {
		both := isTTY(p.in) && isTTY(p.Out)
		return p.visit(ctx, args[0], visit{command: strings.Join(behind(args[1:]), " "), input: true, terminal: both})
	})
	c.Flags().SetInterspersed(false)
	return c
}

func (p *program) execCommand() *cobra.Command {
	var input, terminal bool
	var env []string
	var dir string
	c := p.action(&cobra.Command{
		Use:   "exec LEASE [-- COMMAND…]",
		Short: "run a command inside a job",
		Long: "Run a command inside a job, with its arguments as they are: no shell reads them. Flags stand before LEASE.\n" +
			"Signals go to the command; the third within one command leaves it.\n\n" + insideHelp,
		Example: "  haggle exec train -- nvidia-smi\n  haggle exec -it train -- python\n" +
			"  haggle exec -w src -e SEED=7 train -- make test\n  tar c data | haggle exec -i train -- tar x",
		Args: cli.Words(2, 1<<16, "LEASE and a command"),
		Annotations: map[string]string{
			cli.OwnFailure: strconv.Itoa(cli.ExitOwn),
		},
	}, func(ctx context.Context, args []string) error {
		words := behind(args[1:])
		if len(words) == 0 {
			return cli.Usage("exec needs a command behind --", "`haggle shell "+args[0]+"` opens a shell")
		}
		if terminal && (!isTTY(p.in) || !isTTY(p.Out)) {
			return cli.Usage("-t needs a terminal at both ends", "leave it out in scripts")
		}
		command := quoteWords(words)
		if dir != "" {
			command = "cd " + quoteShell(dir) + " && " + command
		}
		return p.visit(ctx, args[0], visit{command: command, input: input, terminal: terminal, env: env})
	})
	flags := c.Flags()
	flags.SetInterspersed(false)
	flags.BoolVarP(&input, "interactive", "i", false, "pass standard input on")
	flags.BoolVarP(&terminal, "tty", "t", false, "run it on a terminal")
	flags.StringArrayVarP(&env, "env", "e", nil, "NAME=VALUE for the command, or NAME to pass this shell's value on; may be repeated")
	flags.StringVarP(&dir, "workdir", "w", "", "run it in this folder of the job, relative to /work")
	return c
}

// behind returns a command's words without the -- before them.
func behind(args []string) []string {
	if len(args) > 0 && args[0] == "--" {
		return args[1:]
	}
	return args
}

// quoteWords writes words so that a POSIX shell reads them back.
func quoteWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quoteShell(w)
	}
	return strings.Join(quoted, " ")
}
