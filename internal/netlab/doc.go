// Package netlab builds an internet of network namespaces on one machine: public hosts, home routers with several kinds of NAT,
// carriers that put such routers behind another one, and LANs. Programs that run in it have a real network, and no way out of it:
// nothing here touches the machine's own interfaces, routes or rules. It needs Linux, root, iproute2 and nftables.
//
// Its tests put our programs there: rigs behind home routers are found, rented, paid and entered. `make netns` runs them alone.
package netlab
