package view

import "haggle/market"

// Network is where a program stands in the network.
type Network struct {
	Name   string   `json:"name"`
	Key    string   `json:"key"`
	Addrs  []string `json:"addrs"`
	Ready  bool     `json:"ready"`
	Reason string   `json:"reason,omitempty" doc:"why it is not ready"`
	Peers  int      `json:"peers"`
	Table  int      `json:"routing_table"`
	Reach  *Reach   `json:"reach,omitempty"`

	Sources []PeerSource `json:"sources,omitempty" doc:"where the first peers come from"`
}

// Peer is another program of the network.
type Peer struct {
	Key       string   `json:"key"`
	Agent     string   `json:"agent"`
	Addrs     []string `json:"addrs"`
	LatencyMs float64  `json:"latency_ms"`
	Direction string   `json:"direction" doc:"in or out"`
}

// AgentStatus is the agent at a glance.
type AgentStatus struct {
	Version  string   `json:"version"`
	PID      int      `json:"pid"`
	Home     string   `json:"home"`
	Uptime   int64    `json:"uptime_s"`
	Network  Network  `json:"network"`
	Offers   int      `json:"offers"`
	Leases   int      `json:"open_leases"`
	Warnings []string `json:"warnings,omitempty" doc:"what a person should mend, a sentence each"`
	Methods  []string `json:"pay_methods,omitempty" doc:"by which this agent can pay"`
	Alerts   []Alert  `json:"alerts,omitempty"`
}

// RigStatus is a rig at a glance.
type RigStatus struct {
	Version  string        `json:"version"`
	PID      int           `json:"pid"`
	Home     string        `json:"home"`
	Uptime   int64         `json:"uptime_s"`
	Name     string        `json:"name"`
	Network  Network       `json:"network"`
	Engine   string        `json:"engine" doc:"the container engine and its version, or why it does not answer"`
	Paused   bool          `json:"paused"`
	Draining bool          `json:"draining"`
	Cards    int           `json:"cards"`
	Free     int           `json:"free_slots"`
	Prices   market.Prices `json:"prices"`
	Leases   []Lease       `json:"leases" doc:"that are not over"`
	Bidders  string        `json:"bidders,omitempty" doc:"who may bid: anyone or trusted"`
	Trusted  []Owner       `json:"trusted,omitempty" doc:"owners whose bids are taken"`

	Isolation   string   `json:"isolation,omitempty" doc:"what keeps jobs apart"`
	Protections []string `json:"protections,omitempty" doc:"what stands between jobs and the machine and was seen to hold"`
	Weak        []string `json:"weak,omitempty" doc:"what does not hold; warnings say how to mend it"`

	Pays     []market.PayMethod `json:"pays,omitempty" doc:"ways in which leases can be paid ahead"`
	Credit   MoneyLimit         `json:"credit" doc:"of a trusted owner who has no other, and what all owe now"`
	Visible  *Visible           `json:"visible,omitempty" doc:"what strangers showed of the rig's offer, when they were last asked"`
	Blocked  int                `json:"blocked,omitempty" doc:"keys, owners and networks that may not call"`
	Images   []string           `json:"images"`
	Warnings []string           `json:"warnings,omitempty" doc:"what keeps the rig from doing all that it was told to, a sentence each"`
}

// Card is a card as its rig's owner sees it. An absent number is unknown.
type Card struct {
	Slot        int    `json:"slot"`
	UUID        string `json:"uuid"`
	Vendor      string `json:"vendor"`
	Model       string `json:"model"`
	MemoryGiB   int64  `json:"memory_gib"`
	Health      string `json:"health"`
	Simulated   bool   `json:"simulated"`
	Lease       string `json:"lease,omitempty"`
	UtilPercent *int64 `json:"util_percent"`
	MemUsedMiB  *int64 `json:"memory_used_mib"`
	PowerW      *int64 `json:"power_w"`
	TempC       *int64 `json:"temperature_c"`
	PowerLimitW *int64 `json:"power_limit_w" doc:"the most that a job may draw"`
	Passable    bool   `json:"passable" doc:"the engine can give it to a job"`
	Why         string `json:"why,omitempty" doc:"why it is not passable"`
	Withheld    string `json:"withheld,omitempty" doc:"why it is not offered until it is given back"`
}

// Owner is another owner as the rig's owner sees it.
type Owner struct {
	Key   string `json:"key"`
	Name  string `json:"name"`
	Since int64  `json:"since_ms" doc:"Unix milliseconds"`
	Owes  Money  `json:"owes" doc:"over all leases"`
	// Credit is what it may owe at most.
	Credit MoneyLimit `json:"credit"`
	// Guarantor says that what it guarantees for others is taken.
	Guarantor bool `json:"guarantor,omitempty"`
}

// Takeback says what it means to take a card back.
type Takeback struct {
	Slot     int    `json:"slot"`
	UUID     string `json:"uuid"`
	Model    string `json:"model"`
	Done     bool   `json:"done" doc:"false where nothing was done but to look"`
	Lease    string `json:"lease,omitempty" doc:"that ends by it; empty where the card is free"`
	Renter   string `json:"renter_key,omitempty"`
	State    string `json:"state,omitempty" doc:"of the lease before"`
	Slots    []int  `json:"slots,omitempty" doc:"of the lease: all of them end"`
	NoticeMs int64  `json:"notice_ms,omitempty" doc:"that the job keeps"`
	EndsBy   int64  `json:"ends_by_ms,omitempty" doc:"Unix milliseconds; when the job is killed"`
	Earned   Money  `json:"earned,omitzero" doc:"that stays owed"`
	Penalty  Money  `json:"penalty,omitzero" doc:"what the notice would have cost: it is not billed"`
	Forgone  Money  `json:"forgone,omitzero" doc:"what the lease could still have earned at most, the penalty in it"`
}
