//go:build linux

package jobnet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ruleset is what `nft -j list ruleset` prints, as far as it matters for what is forwarded.
type ruleset struct{ chains []*chain }

type chain struct {
	family, table, name string
	hook, policy        string // of a base chain
	rules               []rule
}

// rule is a row of statements. Each is an object with one key, or a word.
type rule []map[string]json.RawMessage

func parseRuleset(text []byte) (*ruleset, error) {
	var all struct {
		Nftables []struct {
			Chain *struct{ Family, Table, Name, Hook, Policy string }
			Rule  *struct {
				Family, Table, Chain string
				Expr                 []json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	rs := &ruleset{}
	for _, o := range all.Nftables {
		if c := o.Chain; c != nil {
			rs.chains = append(rs.chains, &chain{family: c.Family, table: c.Table, name: c.Name, hook: c.Hook, policy: c.Policy})
		}
	}
	for _, o := range all.Nftables {
		if o.Rule == nil {
			continue
		}
		var r rule
		for _, e := range o.Rule.Expr {
			statement := map[string]json.RawMessage{}
			if json.Unmarshal(e, &statement) != nil {
				statement = map[string]json.RawMessage{"": e} // unknown
			}
			r = append(r, statement)
		}
		if c := rs.chain(o.Rule.Family, o.Rule.Table, o.Rule.Chain); c != nil {
			c.rules = append(c.rules, r)
		}
	}
	return rs, nil
}

func (rs *ruleset) chain(family, table, name string) *chain {
	i := slices.IndexFunc(rs.chains, func(c *chain) bool { return c.family == family && c.table == table && c.name == name })
	if i < 0 {
		return nil
	}
	return rs.chains[i]
}

// packet is what a rule can ask about: where it comes in and goes out, and whether it belongs to a known connection.
type packet struct{ in, out, state string }

// fate is what a chain does with a packet. Where it depends on what is not known here, it is undecided.
type fate int

const (
	undecided fate = iota
	accepted
	refused
	returned
)

const maxDepth = 32 // of chains that call chains; nft allows 16

// judge follows a packet through a chain. own is how our interfaces' names begin: a rule that names them and accepts
// was made for us, whatever else it asks.
func (rs *ruleset) judge(c *chain, p packet, own string, depth int) fate {
	if depth > maxDepth {
		return undecided
	}
	for _, r := range c.rules {
		w := r.weigh(p, own)
		if w.never {
			continue
		}
		if to := rs.chain(c.family, c.table, w.target); w.target != "" && to != nil {
			if w.verdict = rs.judge(to, p, own, depth+1); w.verdict == returned {
				w.verdict = undecided
			}
		}
		if w.verdict != undecided && (w.sure || (w.ours && w.verdict == accepted)) {
			return w.verdict
		}
	}
	switch {
	case c.hook == "":
		return undecided
	case c.policy == "drop":
		return refused
	}
	return accepted
}

// weighed is what one rule means for a packet: it never matches, or surely does, or it names our interfaces; and what follows.
type weighed struct {
	never, sure, ours bool
	verdict           fate
	target            string // the chain to go to
}

func (r rule) weigh(p packet, own string) weighed {
	w := weighed{sure: true}
	for _, s := range r {
		for key, value := range s {
			switch key {
			case "match":
				is, known, named := p.matches(value, own)
				w.never = w.never || (known && !is)
				w.sure, w.ours = w.sure && known, w.ours || named
			case "accept":
				w.verdict = accepted
			case "drop", "reject":
				w.verdict = refused
			case "return":
				w.verdict = returned
			case "jump", "goto":
				var to struct{ Target string }
				_ = json.Unmarshal(value, &to) // a broken target is none
				w.target = to.Target
			case "counter", "log", "mangle", "comment":
			default:
				w.sure = false
			}
		}
	}
	return w
}

// matches says whether a match holds for the packet, whether that is known, and whether it names our interfaces.
func (p packet) matches(raw json.RawMessage, own string) (is, known, named bool) {
	var m struct {
		Op    string
		Left  struct{ Meta, CT *struct{ Key string } }
		Right json.RawMessage
	}
	if json.Unmarshal(raw, &m) != nil {
		return false, false, false
	}
	words := words(m.Right)
	var value string
	switch {
	case m.Left.Meta != nil && m.Left.Meta.Key == "iifname":
		value = p.in
	case m.Left.Meta != nil && m.Left.Meta.Key == "oifname":
		value = p.out
	case m.Left.CT != nil && m.Left.CT.Key == "state":
		value = p.state
	}
	if value == "" || len(words) == 0 || strings.HasPrefix(words[0], "@") {
		return false, false, false
	}
	is = slices.ContainsFunc(words, func(w string) bool {
		start, wild := strings.CutSuffix(w, "*")
		return w == value || (wild && strings.HasPrefix(value, start))
	})
	if m.Op == "!=" {
		return !is, true, false
	}
	return is, m.Op == "==" || m.Op == "in", is && strings.HasPrefix(value, own)
}

// words are the values on the right side of a match: one, a list, or a set.
func words(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var set struct{ Set []json.RawMessage }
	if json.Unmarshal(raw, &set) != nil || set.Set == nil {
		_ = json.Unmarshal(raw, &set.Set) // no list either: no words
	}
	var list []string
	for _, e := range set.Set {
		if json.Unmarshal(e, &one) != nil {
			return nil
		}
		list = append(list, one)
	}
	return list
}

// obstacle is a forward chain of someone else that refuses what jobs send or receive.
type obstacle struct{ family, table, chain, kind string }

// Kinds of obstacles, by who made them.
const (
	byDocker    = "docker"
	byUFW       = "ufw"
	byFirewalld = "firewalld"
	byNft       = "nft"
	byIptables  = "iptables"
)

// obstacles lists the forward chains outside our table that would refuse a job's packets to an uplink, or the answers.
func (rs *ruleset) obstacles(ownTable, own, uplink string) []obstacle {
	var found []obstacle
	out := packet{in: own + "0", out: uplink, state: "new"}
	back := packet{in: uplink, out: own + "0", state: "established"}
	for _, c := range rs.chains {
		if c.hook != "forward" || (c.family != "ip" && c.family != "inet") || c.table == ownTable {
			continue
		}
		if rs.judge(c, out, own, 0) != refused && rs.judge(c, back, own, 0) != refused {
			continue
		}
		kind := byNft
		for _, other := range rs.chains {
			switch {
			case other.family != c.family || other.table != c.table:
			case other.name == "DOCKER-USER":
				kind = byDocker
			case strings.HasPrefix(other.name, "ufw-") && kind != byDocker:
				kind = byUFW
			case c.table == "firewalld":
				kind = byFirewalld
			}
		}
		if kind == byNft && c.name == "FORWARD" && c.table == "filter" {
			kind = byIptables
		}
		found = append(found, obstacle{c.family, c.table, c.name, kind})
	}
	return found
}

// legacyObstacle reads what iptables-save prints. The old packet filter of the kernel does not show in nft's rules.
func legacyObstacle(text, own string) (obstacle, bool) {
	drop, kind, in, out := false, byIptables, false, false
	table := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if t, ok := strings.CutPrefix(line, "*"); ok {
			table = t
		}
		if table != "filter" {
			continue
		}
		switch {
		case strings.HasPrefix(line, ":FORWARD DROP"), line == "-A FORWARD -j DROP", strings.HasPrefix(line, "-A FORWARD -j REJECT"):
			drop = true
		case strings.HasPrefix(line, ":DOCKER-USER"):
			kind = byDocker
		case strings.HasPrefix(line, ":ufw-") && kind != byDocker:
			kind = byUFW
		case strings.HasPrefix(line, "-A ") && strings.HasSuffix(line, "-j ACCEPT"):
			in = in || strings.Contains(line, "-i "+own+"+ ")
			out = out || strings.Contains(line, "-o "+own+"+ ")
		}
	}
	return obstacle{"ip", "filter", "FORWARD", kind}, drop && (!in || !out)
}

// remedy is a command that lets our interfaces through this chain, and nothing else.
func (o obstacle) remedy(own string) string {
	insert := func(chain string) string {
		return fmt.Sprintf("iptables -I %s -i %s+ -j ACCEPT && "+
			"iptables -I %s -o %s+ -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", chain, own, chain, own)
	}
	switch o.kind {
	case byDocker:
		return insert("DOCKER-USER")
	case byUFW:
		return insert("ufw-before-forward") + ` (to keep it, put both rules into /etc/ufw/before.rules, before COMMIT)`
	case byIptables:
		return insert(o.chain)
	case byFirewalld:
		return fmt.Sprintf("firewall-cmd --permanent --zone=trusted --add-interface=%s+ && firewall-cmd --reload", own)
	}
	at := fmt.Sprintf("insert rule %s %s %s", o.family, o.table, o.chain)
	return fmt.Sprintf(`nft '%s iifname "%s*" accept; %s oifname "%s*" ct state established,related accept'`, at, own, at, own)
}

// by says who made the chain, for people.
func (o obstacle) by() string {
	switch o.kind {
	case byDocker:
		return "Docker"
	case byUFW:
		return "ufw"
	case byFirewalld:
		return "firewalld"
	}
	return "another firewall"
}
