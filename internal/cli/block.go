package cli

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"haggle/internal/view"
	"haggle/market"
)

// Blocker is what block and unblock need of a program.
type Blocker interface {
	Blocked(ctx context.Context) ([]view.Blocked, error)
	Block(ctx context.Context, key market.Key, r view.BlockRequest) error
	Unblock(ctx context.Context, key market.Key) error
}

// Block is the command that keeps a program out. Its flags are read by Run.
type Block struct {
	// Parse reads a time such as 2h.
	Parse func(string) (time.Duration, error)

	span, why string
	json      bool
}

// BlockHelp says what it means to block a key.
const BlockHelp = "A program whose key you block is neither called nor answered, and its connections end. Who has an open lease with you cannot be\n" +
	"blocked before that has ended. Programs that break the rules of the protocol again and again are blocked by themselves for a\n" +
	"while, which doubles each time, up to a day. Whole networks and every program of an owner are blocked in the configuration:\n" +
	"`access.block_nets`, `access.block_owners`.\n\n" +
	"Without KEY all who are blocked are listed."

// Register adds the command's flags.
func (f *Block) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.span, "for", "", "how long, such as 1h; without it until it is lifted")
	flags.StringVar(&f.why, "why", "", "a note for the list; nobody else sees it")
	flags.BoolVar(&f.json, "json", false, "print the list for programs")
}

// Run blocks a key, or lists who is blocked where key is empty. A key that is none is refused without asking the program.
func (f *Block) Run(ctx context.Context, t Terminal, program Blocker, key string) error {
	if key == "" {
		if f.span != "" || f.why != "" {
			return Usage("block does not know whose key is meant", "`"+t.Program+" block` lists who is blocked; name one: "+t.Program+" block KEY")
		}
		return f.list(ctx, t, program)
	}
	who, err := market.ParseKey(key)
	if err != nil {
		return err
	}
	var d time.Duration
	if f.span != "" {
		if d, err = f.Parse(f.span); err != nil || d <= 0 {
			return Usage("--for "+f.span+" is no time", "such as 90s, 2h or 7d; leave it out to block until `"+t.Program+" unblock`")
		}
	}
	if err := program.Block(ctx, who, view.BlockRequest{ForMs: d.Milliseconds(), Why: f.why}); err != nil {
		return err
	}
	if f.json {
		return f.list(ctx, t, program)
	}
	until := "until `" + t.Program + " unblock`"
	if f.span != "" {
		until = "for " + f.span
	}
	t.Say("%s is blocked %s", who, until)
	return nil
}

func (f *Block) list(ctx context.Context, t Terminal, program Blocker) error {
	list, err := program.Blocked(ctx)
	switch {
	case err != nil:
		return err
	case f.json:
		return t.JSON(list)
	case len(list) == 0:
		t.Say("nobody is blocked")
		return nil
	}
	return ShowBlocked(t, list)
}

// ShowBlocked prints who is blocked.
func ShowBlocked(t Terminal, list []view.Blocked) error {
	rows := make([][]string, 0, len(list))
	for _, b := range list {
		who := b.Key
		switch {
		case b.Net != "":
			who = b.Net
		case b.Owner != "":
			who = "owner " + b.Owner
		}
		until := "unblock"
		switch {
		case b.By == "config":
			until = "the configuration changes"
		case b.Until != nil:
			until = time.UnixMilli(*b.Until).Local().Format(time.DateTime)
		}
		rows = append(rows, []string{who, until, blockedBy(b.By), b.Why})
	}
	return t.Table("WHO UNTIL BY WHY", rows)
}

// blockedBy says who blocked.
func blockedBy(by string) string {
	switch by {
	case "config":
		return "the configuration"
	case "user":
		return "you"
	case "score":
		return "its faults"
	}
	return by
}

// Unblock lets a program in again.
func Unblock(ctx context.Context, t Terminal, program Blocker, key string) error {
	who, err := market.ParseKey(key)
	if err != nil {
		return err
	}
	if err := program.Unblock(ctx, who); err != nil {
		return err
	}
	t.Say("%s may call again", who)
	return nil
}
