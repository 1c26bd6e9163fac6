// Package netsim models the network of offers from a hundred rigs to a million: a discrete-event model of the DHT with the real rules
// of cells on top, and real nodes in virtual time to check it against. Both read scenario.json.
package netsim
