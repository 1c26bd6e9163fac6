// Package market holds the words and the rules of the haggle market: money, offers, queries, bids, leases, receipts and
// the errors that people see.
//
// It knows what both sides must agree on and nothing else: it does no I/O, reads no clock, starts no goroutine and keeps
// no state. Every rule is a function of its arguments, so that a renter, a rig and a stranger with a file of evidence
// compute the same answer. Values are safe for concurrent use as long as nobody writes to them.
//
// A record is signed as bytes and kept as bytes: Open functions verify, then decode, then validate, in that order, and
// nothing is ever encoded again to be verified. docs/protocol.md lists the keys, limits and domains of every record.
package market
