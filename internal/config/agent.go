package config

import (
	"slices"
	"time"
)

// agentPrefix begins the names of an agent's variables.
const agentPrefix = "HAGGLE_"

// Agent is the configuration of `haggle` and of the agent that it starts.
type Agent struct {
	Paths     Paths
	Network   string
	Bootstrap []string      // multiaddrs that end in /p2p/ID
	Listen    []string      // multiaddrs; empty: any port, and loopback only in a lab
	Currency  string        // capital letters
	IdleExit  time.Duration // without a lease or a debt
	LogLevel  string        // debug, info, warn or error
	LogFormat string        // text or json

	// PayPath are folders that are searched for payment programs after haggle's own. Pay are the programs' settings.
	PayPath []string
	Pay     Programs
	Budget  AgentBudget
	Sources Sources
	Reach   Reach
	Access  Access
	Probe   time.Duration // between two questions to a running job whether it runs; 0 asks nothing

	origins map[string]Origin
}

// AgentBudget is what an agent may spend over all its leases where its user has set nothing with `haggle budget`, in the currency
// of the knob currency. Decimals; "" is no limit.
type AgentBudget struct{ Day, Month string }

func agentTable() []spec[Agent] {
	return slices.Concat(
		generalAgentTable(), moneyAgentTable(),
		sourcesTable(func(a *Agent) *Sources { return &a.Sources }, true), reachTable(func(a *Agent) *Reach { return &a.Reach }, true),
		accessTable(func(a *Agent) *Access { return &a.Access }, true), programAgentTable(),
	)
}

// moneyAgentTable holds the knobs of paying.
func moneyAgentTable() []spec[Agent] {
	return []spec[Agent]{
		{
			Knob: Knob{
				Name: "probe_interval", Kind: KindDuration, Default: "15s", Max: int64(time.Hour),
				Doc: "How often a running job is asked whether it runs: time without an answer is not signed for. 0s asks nothing.",
			},
			field: func(a *Agent) any { return &a.Probe },
		},
		{
			Knob: Knob{
				Name: "budget.day", Kind: KindPrice,
				Doc: "The most that is spent in a day over all leases, such as \"5.00\". None: no limit. `haggle budget` wins over it.",
			},
			field: func(a *Agent) any { return &a.Budget.Day }, check: orNothing(checkPrice),
		},
		{
			Knob: Knob{
				Name: "budget.month", Kind: KindPrice,
				Doc: "The same for a month.",
			},
			field: func(a *Agent) any { return &a.Budget.Month }, check: orNothing(checkPrice),
		},
	}
}

// programAgentTable holds the knobs of payment programs, whose tables come last in a file.
func programAgentTable() []spec[Agent] {
	return []spec[Agent]{
		{
			Knob: Knob{
				Name: "pay.path", Kind: KindList,
				Doc: "Folders that are searched for payment programs, haggle-pay-NAME, after the one that haggle lies in.",
			},
			field: func(a *Agent) any { return &a.PayPath }, check: checkAbsolute,
		},
		{
			Knob: Knob{
				Name: "pay" + anyProgram, Kind: KindPrograms,
				Doc: "Settings of payment programs, a table for each: [pay.lab] holds those of haggle-pay-lab.",
			},
			field: func(a *Agent) any { return &a.Pay },
		},
	}
}

func generalAgentTable() []spec[Agent] {
	return []spec[Agent]{
		{
			Knob: Knob{
				Name: "network", Kind: KindText, Default: "main",
				Doc: "The network to meet others on. Names that begin with lab- are for labs on one machine.",
			},
			field: func(a *Agent) any { return &a.Network }, check: checkNetwork,
		},
		{
			Knob: Knob{
				Name: "bootstrap", Kind: KindList,
				Doc: "Addresses of members that are asked first, each ending in /p2p/ID.",
			},
			field: func(a *Agent) any { return &a.Bootstrap }, check: checkBootstrap,
		},
		{
			Knob: Knob{
				Name: "listen", Kind: KindList,
				Doc: "Addresses to listen on. None: any port, and in a lab on loopback only.",
			},
			field: func(a *Agent) any { return &a.Listen }, check: checkAddress,
		},
		{
			Knob: Knob{
				Name: "currency", Kind: KindText, Default: "USD",
				Doc: "The currency of budgets and prices where a command names none.",
			},
			field: func(a *Agent) any { return &a.Currency }, check: checkCurrency,
		},
		{
			Knob: Knob{
				Name: "idle_exit", Kind: KindDuration, Default: "1h", Min: int64(time.Second), Max: int64(30 * day),
				Doc: "The agent leaves after so long without an open lease or debt.",
			},
			field: func(a *Agent) any { return &a.IdleExit },
		},
		{
			Knob: Knob{
				Name: "log_level", Kind: KindText, Default: "info",
				Doc: "The least that is logged: debug, info, warn or error.",
			},
			field: func(a *Agent) any { return &a.LogLevel }, check: oneOf("debug", "info", "warn", "error"),
		},
		{
			Knob: Knob{
				Name: "log_format", Kind: KindText, Default: "text",
				Doc: "How the log is written: text or json.",
			},
			field: func(a *Agent) any { return &a.LogFormat }, check: oneOf("text", "json"),
		},
	}
}

// AgentKnobs describes every knob of `haggle`, in the file's order.
func AgentKnobs() []Knob { return knobs(agentTable()) }

// LoadAgent reads the configuration of `haggle`. A file that nobody named may be missing. Where a person can mend what is
// wrong, the error is an *Error.
func LoadAgent(f Flags) (Agent, error) {
	var a Agent
	paths, err := AgentPaths(f.home(agentPrefix))
	if err != nil {
		return Agent{}, err
	}
	l := layers[Agent]{table: agentTable(), prefix: agentPrefix, into: &a}
	if err := l.load(f, paths.Config); err != nil {
		return Agent{}, err
	}
	a.Paths, a.origins = paths, l.origins
	return a, nil
}

// Origin returns where a knob's value came from; FromDefault for a configuration that was not loaded.
func (a Agent) Origin(name string) Origin { return originOf(a.origins, name) }

// Values returns every knob's value in the file's order.
func (a Agent) Values() []Value { return values(agentTable(), &a, a.origins) }
