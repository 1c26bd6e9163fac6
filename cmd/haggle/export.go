package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/market"
)

func (p *program) exportCommand() *cobra.Command {
	var file string
	var redact bool
	c := p.action(&cobra.Command{
		Use:   "export LEASE",
		Short: "write all that both sides signed into a file",
		Long: "Write offer, bid, lease, receipts, payments and all else that was signed into a file that anyone can check with `haggle\n" +
			"verify`. --redact leaves out what the bill does not need: the offer, the bid, and the receipts and payments before the\n" +
			"newest. The verdict is the same.",
		Example: "  haggle export 3f9a12c4\n  haggle export 3f9a12c4 --redact\n  haggle export 3f9a12c4 -o bill.evidence\n  haggle export 3f9a12c4 -o - | ssh judge haggle verify -",
		Args:    cli.Words(1, 1, "LEASE"),
	}, func(ctx context.Context, args []string) error {
		data, err := ask(ctx, p, func(c *api.AgentClient) ([]byte, error) {
			if redact {
				return c.Redacted(ctx, args[0])
			}
			return c.Evidence(ctx, args[0])
		})
		if err != nil {
			return err
		}
		if file == "" {
			file = evidenceName(data, args[0])
		}
		if err := p.put(file, "evidence", data); err != nil || file == stdout {
			return err
		}
		p.Say("wrote %s, %d bytes (hint: `haggle verify %s`)", file, len(data), file)
		return nil
	})
	c.Flags().StringVarP(&file, "output", "o", "", "file to write, - for stdout (default lease-ID.evidence)")
	c.Flags().BoolVar(&redact, "redact", false, "leave out offer, bid, and the receipts and payments before the newest")
	return c
}

// evidenceName names the file after the lease in it; what the user typed may be shorter.
func evidenceName(data []byte, typed string) string {
	if j := market.Judge(data); !j.Lease.IsZero() {
		return "lease-" + j.Lease.Short() + ".evidence"
	}
	plain := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, typed)
	return "lease-" + short(plain) + ".evidence"
}

// stdout is how a user names the standard output as a file.
const stdout = "-"

// put writes what somebody signed into a file, or to stdout.
func (p *program) put(file, what string, data []byte) error {
	var err error
	if file == stdout {
		_, err = p.Out.Write(data)
	} else {
		err = replaceFile(file, data)
	}
	if err != nil {
		return fmt.Errorf("write the %s: %w", what, err)
	}
	return nil
}

// replaceFile writes a file whole or leaves the old one. What is not a plain file, such as a pipe, is written to as it is.
func replaceFile(path string, data []byte) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, data, 0o644)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".evidence-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
