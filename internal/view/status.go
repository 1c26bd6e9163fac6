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
	Images   []string      `json:"images"`
	Warnings []string      `json:"warnings,omitempty" doc:"what keeps the rig from doing all that it was told to, a sentence each"`
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
}
