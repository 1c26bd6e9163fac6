package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/networks"
	"haggle/market"
)

// Network is `network`, which both programs have: private networks, which only programs on their creators' lists take part in.
type Network struct {
	Terminal Terminal
	Program  string // haggle or haggled
	// Place returns where the program keeps its networks.
	Place func() (networks.Place, error)
	// Addrs returns addresses of members that are known to the running program; none where it does not run.
	Addrs func(context.Context) []string
	// Restart says how the running program comes to the network that the configuration names now.
	Restart string
	// Action makes a command of what it does.
	Action func(c *cobra.Command, do func(ctx context.Context, args []string) error) *cobra.Command
}

// Command returns the command with all that belongs to it.
func (n Network) Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "network",
		Short: "make, join and leave private networks",
		Long: "A private network is a market of its own: only programs on its creator's list may call and be called there. The list goes\n" +
			"from member to member; a program that is taken off it is let go by all within seconds. `" + n.Program + " network key` prints the\n" +
			"key that the creator invites; the line that `network invite` prints is no secret.",
		Example: "  haggle network create club                      # make it, with the key of this program\n" +
			"  haggle network invite 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --name attic   # prints one line\n" +
			"  haggled network join hgn1…                      # on the machine that was invited",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return Usage("network has no "+args[0], "it has create, invite, join, list, members, remove, leave and key")
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(n.create(), n.invite(), n.join(), n.list(), n.members(), n.remove(), n.leave(), n.key())
	return c
}

func (n Network) create() *cobra.Command {
	return n.Action(&cobra.Command{
		Use: "create NAME", Short: "make a private network and move there",
		Long:    "Make a private network with this program's key, which is its creator from then on: keep a copy of the key. The full name ends with a part of the key's hash.",
		Example: "  " + n.Program + " network create club",
		Args:    Words(1, 1, "NAME"),
	}, func(_ context.Context, args []string) error {
		p, err := n.Place()
		if err != nil {
			return err
		}
		name, err := p.Create(args[0])
		if err != nil {
			return err
		}
		n.Terminal.Show("%s", name)
		n.Terminal.Say("next: `%s network invite KEY` for each program that belongs to it, your own rigs too; `network key` there prints KEY", n.Program)
		n.Terminal.Say("%s", n.Restart)
		return nil
	})
}

func (n Network) invite() *cobra.Command {
	var name string
	c := n.Action(&cobra.Command{
		Use: "invite KEY…", Short: "put programs on the list and print the line by which they join",
		Long:    "Put programs on the list of this program's network and print the line by which they join. Members hear of it within seconds.",
		Example: "  haggle network invite 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN --name attic",
		Args:    Words(1, 64, "KEY"),
	}, func(ctx context.Context, args []string) error {
		keys, err := keysOf(args)
		if err != nil {
			return err
		}
		if name != "" && len(keys) > 1 {
			return Usage("--name is for one key", "invite them one by one")
		}
		p, err := n.Place()
		if err != nil {
			return err
		}
		s, err := p.Read()
		if err != nil {
			return err
		}
		i, err := p.Invite(keys, name, append(s.Bootstrap, n.Addrs(ctx)...))
		if err != nil {
			return err
		}
		n.Terminal.Show("%s network join %s", n.Program, i)
		n.Terminal.Say("on a rig it is `haggled network join …`, on a renter's machine `haggle network join …`")
		if len(i.Bootstrap) == 0 {
			n.Terminal.Say("the line names no address, for none is known yet: it leads there on the same LAN; invite once more when a member can be called from outside")
		}
		return nil
	})
	c.Flags().StringVar(&name, "name", "", "what you call the program on the list")
	return c
}

func (n Network) join() *cobra.Command {
	return n.Action(&cobra.Command{
		Use: "join LINE", Short: "move to the private network of an invitation, or back to one that is known by its name",
		Example: "  " + n.Program + " network join hgn1…",
		Args:    Words(1, 1, "LINE"),
	}, func(_ context.Context, args []string) error {
		p, err := n.Place()
		if err != nil {
			return err
		}
		name := args[0]
		if strings.HasPrefix(name, "hgn1") || market.CheckNetwork(name) != nil {
			i, err := p.Join(name)
			if err != nil {
				return err
			}
			name = i.Network
		} else if err := p.Return(name); err != nil {
			return err
		}
		n.Terminal.Show("%s", name)
		n.Terminal.Say("%s", n.Restart)
		return nil
	})
}

func (n Network) leave() *cobra.Command {
	return n.Action(&cobra.Command{
		Use: "leave", Short: "go back to the public network", Example: "  " + n.Program + " network leave",
	}, func(context.Context, []string) error {
		p, err := n.Place()
		if err != nil {
			return err
		}
		name, err := p.Leave()
		if err != nil {
			return err
		}
		n.Terminal.Say("left %s; the network is %s now", name, market.NetworkMain)
		n.Terminal.Say("%s", n.Restart)
		return nil
	})
}

func (n Network) remove() *cobra.Command {
	return n.Action(&cobra.Command{
		Use: "remove KEY…", Short: "take programs off the list",
		Long:    "Take programs off the list. Every member lets them go as soon as the list has come to it, within seconds where it is connected.",
		Example: "  haggle network remove 12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN",
		Args:    Words(1, 64, "KEY"),
	}, func(_ context.Context, args []string) error {
		keys, err := keysOf(args)
		if err != nil {
			return err
		}
		p, err := n.Place()
		if err != nil {
			return err
		}
		absent, err := p.Remove(keys)
		if err != nil {
			return err
		}
		for _, k := range absent {
			n.Terminal.Say("%s was not on the list", k)
		}
		if len(absent) == len(keys) {
			return &Hinted{Class: market.ClassNotFound, Message: "nobody was taken off the list", Hint: "`" + n.Program + " network members` shows it"}
		}
		return nil
	})
}

func (n Network) members() *cobra.Command {
	var asJSON bool
	c := n.Action(&cobra.Command{
		Use: "members", Short: "show who belongs to the network", Example: "  " + n.Program + " network members --json",
	}, func(context.Context, []string) error {
		p, err := n.Place()
		if err != nil {
			return err
		}
		name, list, err := p.Members()
		if err != nil {
			return err
		}
		if list == nil {
			return &Hinted{Class: market.ClassNotFound, Message: "no list of network " + name + " has come yet", Hint: "it comes with the first member that answers: `" + n.Program + " status`"}
		}
		type row struct {
			Key  string `json:"key"`
			Name string `json:"name,omitempty"`
		}
		rows, table := []row{}, [][]string{}
		for _, m := range list.List {
			rows = append(rows, row{m.Key.String(), m.Name})
			table = append(table, []string{m.Key.String(), market.Printable(m.Name)})
		}
		if asJSON {
			return n.Terminal.JSON(rows)
		}
		return n.Terminal.Table("KEY NAME", table)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (n Network) list() *cobra.Command {
	var asJSON bool
	c := n.Action(&cobra.Command{
		Use: "list", Short: "show the private networks that are known here", Example: "  " + n.Program + " network list",
	}, func(context.Context, []string) error {
		p, err := n.Place()
		if err != nil {
			return err
		}
		all, err := p.Networks()
		if err != nil {
			return err
		}
		if asJSON {
			return n.Terminal.JSON(append([]networks.Network{}, all...))
		}
		var rows [][]string
		for _, k := range all {
			state, creator := "", k.Creator.String()
			if k.Current {
				state = "current"
			}
			if k.Mine {
				creator = "this program"
			}
			rows = append(rows, []string{k.Name, state, strconv.Itoa(k.Members), creator})
		}
		return n.Terminal.Table("NETWORK STATE MEMBERS CREATOR", rows)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (n Network) key() *cobra.Command {
	return n.Action(&cobra.Command{
		Use: "key", Short: "print this program's key, to be invited by", Example: "  " + n.Program + " network key",
	}, func(context.Context, []string) error {
		p, err := n.Place()
		if err != nil {
			return err
		}
		private, err := p.Key()
		if err != nil {
			return err
		}
		n.Terminal.Show("%s", market.KeyOf(private))
		return nil
	})
}

func keysOf(words []string) ([]market.Key, error) {
	var keys []market.Key
	for _, w := range words {
		k, err := market.ParseKey(w)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}
