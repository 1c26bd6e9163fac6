// Package store keeps what must outlive a restart: one SQLite file for a rig, one for an agent. It knows tables, locks and
// disks; it knows no rule of the market beyond these, which no caller can get around: a signed statement never changes,
// what both sides have signed is never forgotten, and a change is on disk before its method returns.
//
// Records are kept as the bytes that were signed. States are kept in the market's own encoding, beside the few columns
// that queries need. Both stores may be used by many goroutines at once; a file belongs to one process at a time.
package store
