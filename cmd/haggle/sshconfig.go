package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

// includeComment stands above the line that ssh-config adds to the user's own file.
const includeComment = "# added by haggle ssh-config; `haggle ssh-config --remove` takes both lines away"

func (p *program) sshConfigCommand() *cobra.Command {
	var write, remove, show, yes bool
	c := p.action(&cobra.Command{
		Use:   "ssh-config",
		Short: "let ssh, scp, rsync, sftp and editors reach your leases",
		Long: "Write a file for OpenSSH with your leases as hosts, and include it from ~/.ssh/config: then `ssh lease-3f9a`, `ssh NAME`,\n" +
			"scp, rsync, sftp and other programs that use ssh reach the inside of a lease. lease-ID works for every\n" +
			"lease, new ones too; names are written anew by every run, bid and name. Without a flag it shows what it would do.",
		Example: "  haggle ssh-config --write\n  ssh lease-3f9a nvidia-smi\n  rsync -a data/ train:/work/data/",
		Args:    cli.Words(0, 0, ""),
	}, func(ctx context.Context, _ []string) error {
		file, user, err := p.sshFiles()
		if err != nil {
			return err
		}
		switch {
		case remove:
			return p.removeSSH(ctx, file, user, yes)
		case write:
			return p.writeSSH(ctx, file, user, yes)
		}
		text, err := p.sshHosts(ctx)
		if err != nil {
			return err
		}
		p.Show("%s", strings.TrimSuffix(text, "\n"))
		if !show {
			p.Say("--write puts this into %s and includes it from %s", file, user)
		}
		return nil
	})
	flags := c.Flags()
	flags.BoolVar(&write, "write", false, "write the file and the Include line")
	flags.BoolVar(&remove, "remove", false, "take both away again")
	flags.BoolVar(&show, "print", false, "only print the file")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.MarkFlagsMutuallyExclusive("write", "remove", "print")
	return c
}

// sshFiles returns our file and the user's own.
func (p *program) sshFiles() (file, user string, err error) {
	c, err := p.config()
	if err != nil {
		return "", "", err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", "", hinted(market.ClassFailed, "your home folder is not known: "+err.Error(), "`haggle ssh-config --print` prints the file")
	}
	file, err = filepath.Abs(filepath.Join(filepath.Dir(c.Paths.Config), "ssh_config"))
	return file, filepath.Join(home, ".ssh", "config"), err
}

// sshHosts makes the file.
func (p *program) sshHosts(ctx context.Context) (string, error) {
	list, err := ask(ctx, p, func(c *api.AgentClient) ([]view.Lease, error) { return c.Leases(ctx, false) })
	if err != nil {
		return "", err
	}
	command, err := p.proxyCommand()
	if err != nil {
		return "", err
	}
	null := "/dev/null"
	if goruntime.GOOS == "windows" {
		null = "NUL"
	}
	settings := "\tProxyCommand " + command + "\n\tUser root\n" +
		"\tStrictHostKeyChecking no\n\tUserKnownHostsFile " + null + "\n\tGlobalKnownHostsFile " + null + "\n" +
		"\tLogLevel ERROR\n\tIdentityFile none\n\tPreferredAuthentications none\n\tForwardAgent no\n\tForwardX11 no\n"
	var b strings.Builder
	b.WriteString("# Written by haggle ssh-config; changes are lost.\n" +
		"# Host keys are not checked, for the way proves more than they could: the tunnel is encrypted to the rig's key, which the\n" +
		"# lease names, and ends in the job of the lease alone. Neither your keys nor your agent are offered to it.\n")
	for _, l := range list {
		if l.ID == "" || over(l) {
			continue
		}
		b.WriteString("Host lease-" + l.ID[:min(4, len(l.ID))])
		if l.Name != "" && !strings.HasPrefix(l.Name, "lease-") {
			b.WriteString(" " + clean(l.Name))
		}
		b.WriteString("\n" + settings)
	}
	b.WriteString("Host lease-*\n" + settings)
	return b.String(), nil
}

// proxyCommand is how ssh calls this program.
func (p *program) proxyCommand() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	words := []string{self}
	if home := p.labHome(); home != "" {
		if home, err = filepath.Abs(home); err != nil {
			return "", fmt.Errorf("find home: %w", err)
		}
		words = append(words, "--home", home)
	}
	for i, w := range words {
		if strings.ContainsAny(w, "\n\r") {
			return "", hinted(market.ClassFailed, "ssh cannot call a program whose path has an end of line", "move haggle elsewhere")
		}
		w = strings.ReplaceAll(w, "%", "%%")
		if goruntime.GOOS == "windows" {
			words[i] = `"` + w + `"`
		} else {
			words[i] = quoteShell(w)
		}
	}
	return strings.Join(append(words, "ssh-proxy", "%h"), " "), nil
}

// writeSSH writes our file, and includes it from the user's once he agrees.
func (p *program) writeSSH(ctx context.Context, file, user string, yes bool) error {
	text, err := p.sshHosts(ctx)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(user)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", user, err)
	}
	line := includeLine(file)
	included := bytes.Contains(old, []byte(line+"\n"))
	if !included && !yes {
		if err := p.confirm(ctx, "put `"+line+"` at the top of "+user+"?"); err != nil {
			return err
		}
	}
	if err := swapFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	p.Show("wrote %s", file)
	if included {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(user), 0o700); err != nil {
		return fmt.Errorf("make the folder of %s: %w", user, err)
	}
	if err := swapFile(user, append([]byte(includeComment+"\n"+line+"\n"), old...), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", user, err)
	}
	p.Show("%s includes it: `ssh lease-ID` enters a lease", user)
	return nil
}

// removeSSH undoes writeSSH.
func (p *program) removeSSH(ctx context.Context, file, user string, yes bool) error {
	old, err := os.ReadFile(user)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", user, err)
	}
	line := includeLine(file) + "\n"
	left := bytes.Replace(old, []byte(includeComment+"\n"+line), nil, 1)
	left = bytes.Replace(left, []byte(line), nil, 1)
	if !bytes.Equal(left, old) {
		if !yes {
			if err := p.confirm(ctx, "take haggle's lines out of "+user+"?"); err != nil {
				return err
			}
		}
		if err := swapFile(user, left, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", user, err)
		}
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", file, err)
	}
	p.Show("ssh knows nothing of leases any more")
	return nil
}

// refreshSSH writes our file anew where the user has one, so that names of new leases work. It is only a convenience.
func (p *program) refreshSSH(ctx context.Context) {
	file, _, err := p.sshFiles()
	if err != nil {
		return
	}
	if _, err := os.Stat(file); err != nil {
		return
	}
	if text, err := p.sshHosts(ctx); err == nil {
		_ = swapFile(file, []byte(text), 0o600) // lease-ID works all the same
	}
}

// includeLine is the line of the user's file.
func includeLine(file string) string { return `Include "` + filepath.ToSlash(file) + `"` }

// swapFile writes a file whole or not at all. The file behind a symbolic link is written, and keeps its mode.
func swapFile(path string, data []byte, mode fs.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	} else if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s is a link that leads nowhere", path)
	}
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a plain file", path)
		}
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".haggle-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
