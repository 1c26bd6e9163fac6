package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"haggle/internal/view"
	"haggle/market"
)

// maxDecision bounds the file of a decision, in bytes.
const maxDecision = 16 << 10

// Disputer is what dispute needs of a program.
type Disputer interface {
	Dispute(ctx context.Context, lease string, r view.DisputeRequest) (view.Disputes, error)
	Decision(ctx context.Context, lease string, sealed []byte) (view.Disputes, error)
	Disputes(ctx context.Context, lease string) (view.Disputes, error)
}

// Complaint is the flags by which a party says what a lease's bill should be.
type Complaint struct{ total, words, code string }

// Register adds the flags. wrong says what total is without one.
func (f *Complaint) Register(flags *pflag.FlagSet, without string) {
	flags.StringVar(&f.total, "total", "", "what the lease should have cost, such as 0.35 (default: "+without+")")
	flags.StringVar(&f.words, "words", "", "what is wrong, for people, at most 500 bytes")
	flags.StringVar(&f.code, "code", "", "what is wrong, as a word for programs, such as receipt_time")
}

// Request reads the flags.
func (f *Complaint) Request() (view.DisputeRequest, error) {
	r := view.DisputeRequest{Code: f.code, Words: f.words}
	switch {
	case len(f.words) > 500:
		return r, Usage("--words is too long", "at most 500 bytes are signed")
	case len(f.code) > 32:
		return r, Usage("--code is too long", "such as receipt_time, at most 32 letters")
	case f.total != "":
		m, err := market.ParseMicro(f.total)
		if err != nil || m < 0 {
			return r, Usage("--total "+f.total+" is no amount", "such as 0.35, in the lease's currency; 0 is nothing")
		}
		total := int64(m)
		r.TotalMicro = &total
	}
	return r, nil
}

func (f *Complaint) given() bool { return f.total != "" || f.words != "" || f.code != "" }

// Dispute is the command by which a party complains of a lease's bill, or hands in the guarantor's decision. Its flags are read by Run.
type Dispute struct {
	Complaint
	decision   string
	list, json bool
}

// DisputeHelp says what a complaint does.
const DisputeHelp = "Sign that a lease's bill is wrong, and what is right. The other side hears of it, now or when it is connected next, and both keep\n" +
	"it as evidence: `verify` shows it. A complaint changes no bill. Where the lease names a guarantee its guarantor decides: send it\n" +
	"the lease's evidence, and hand the decision in with --decision FILE. From then on it is what the lease costs, on both sides."

// Register adds the command's flags.
func (f *Dispute) Register(flags *pflag.FlagSet, without string) {
	f.Complaint.Register(flags, without)
	flags.StringVar(&f.decision, "decision", "", "hand in the guarantor's decision, a file of `haggle decide`")
	flags.BoolVar(&f.list, "list", false, "sign nothing, only list what was said")
	flags.BoolVar(&f.json, "json", false, "print what was said for programs")
}

// Run complains, hands in a decision or lists what was said.
func (f *Dispute) Run(ctx context.Context, t Terminal, of Disputer, lease string) error {
	lease = strings.TrimPrefix(lease, "lease-")
	said, err := f.do(ctx, of, lease)
	if err != nil {
		return err
	}
	if f.json {
		return t.JSON(said)
	}
	if len(said.List) == 0 {
		t.Say("nobody has said that the bill of lease %s is wrong", short(said.Lease))
		return nil
	}
	var rows [][]string
	for _, d := range said.List {
		at := time.UnixMilli(d.At).Local().Format(time.DateTime)
		rows = append(rows, []string{at, d.By, Amount(d.Total), d.Code, strings.TrimSpace(d.Words)})
	}
	if err := t.Table("AT BY RIGHT CODE WORDS", rows); err != nil {
		return err
	}
	if said.Decided != nil {
		t.Show("lease %s costs %s, by the guarantor's decision", short(said.Lease), Amount(*said.Decided))
	}
	if !f.list && !said.Told {
		t.Say("the other side does not have it yet: it is told when the two are connected next")
	}
	return nil
}

func (f *Dispute) do(ctx context.Context, of Disputer, lease string) (view.Disputes, error) {
	switch {
	case f.list && (f.given() || f.decision != ""):
		return view.Disputes{}, Usage("--list signs nothing", "leave the other flags out")
	case f.list:
		return of.Disputes(ctx, lease)
	case f.decision != "" && f.given():
		return view.Disputes{}, Usage("a decision says itself what is right", "leave --total, --words and --code out")
	case f.decision != "":
		sealed, err := readDecision(f.decision)
		if err != nil {
			return view.Disputes{}, err
		}
		return of.Decision(ctx, lease, sealed)
	}
	r, err := f.Request()
	if err != nil {
		return view.Disputes{}, err
	}
	if !f.given() {
		return view.Disputes{}, Usage("say what is wrong with the bill", "--total 0.35, --words TEXT or both; --list shows what was said")
	}
	return of.Dispute(ctx, lease, r)
}

// readDecision reads a small file.
func readDecision(path string) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--decision: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = io.ReadAll(io.LimitReader(f, maxDecision+1))
	if err != nil {
		return nil, fmt.Errorf("--decision: %w", err)
	}
	if len(data) > maxDecision {
		return nil, Usage("--decision "+path+" is no decision: it is too large", "it is the file that `haggle decide` wrote")
	}
	return data, nil
}
