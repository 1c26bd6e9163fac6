//go:build linux

package jobnet

import "context"

// Parts that are tested by themselves.
var (
	Shares         = shares
	ParseRuleset   = parseRuleset
	LegacyObstacle = legacyObstacle
	Steady         = steady
	InterfaceName  = interfacePrefix
	Outermost      = ipv4Only
	Count          = count
)

// Look does once what Run does each second.
func (n *Networks) Look(ctx context.Context) error {
	r, err := openRig(n.cfg.Netns)
	if err != nil {
		return err
	}
	defer r.close()
	return n.look(ctx, r, true)
}

// TableText is the table of a state that holds jobs in these slots.
func TableText(cfg Config, jobs map[string]int, month string, used uint64, guarded []string) (string, error) {
	n, err := New(cfg)
	if err != nil {
		return "", err
	}
	n.state = state{Month: month, MonthBytes: used, Forwarding: guarded, Jobs: map[string]*record{}}
	for id, slot := range jobs {
		n.state.Jobs[id] = &record{Slot: slot, In: 1000, Out: 2000}
	}
	n.house.connected = Outermost(cfg.Profile.Reject)
	return n.table().text(true), nil
}

// Obstacles are what a ruleset puts in the way of jobs.
func Obstacles(rs *ruleset) int { return len(rs.obstacles("haggle", "haggle-", "eth0")) }
