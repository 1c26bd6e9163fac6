// Package jobnet gives each job a network: the internet, and nothing of the house.
//
//	 job's namespace          rig's namespace
//	┌──────────────┐        ┌─────────────────────────────────────────────┐
//	│ eth0 ────────┼─ veth ─┼─ haggle-0 ── table inet haggle ── uplink ────┼── internet
//	│ its own /31  │        │   (no bridge: a job has one neighbour,       │
//	└──────────────┘        │    the rig, which answers it nothing)        │
//	                        └─────────────────────────────────────────────┘
//
// It knows interfaces, one nftables table, a few sysctls and the shapers of each job's link. It does not know containers:
// it is told a process whose network namespace is the job's. All that it makes can be seen with `nft list table inet haggle`
// and `ip link`, outlives the process, and is found again by the next one with the same Config.Dir.
//
// What it needs is Linux, root, nft, and nothing of the rig's own configuration: where the machine does not forward, it
// switches on forwarding for the interfaces that jobs need, and a rule keeps the machine from routing for anyone else.
package jobnet
