// Package host is what a rig decides: which offers it signs, which bids it takes, what becomes of a job, what it bills.
//
// The rules are package market's; this package is the shell around them. It asks the cards through nvml.Driver, starts
// jobs through runtime.Runtime, keeps what it must not forget in a Store and talks with renters over a Stream. It knows
// nothing of the network, of files or of flags.
//
// # Goroutines
//
// Run owns them all and returns when they are gone; jobs go on (a later Run adopts them).
//
//	Run ── one per lease (lease.run): owns the lease's state; takes one thing at a time: a call by a stream or an
//	 │     owner, a tick, a hint that the job has ended, the result of its worker
//	 │      └── its worker: at most one call at a time into the engine, or, once the job has ended, into the driver of
//	 │          the cards, to overwrite their memory; the result comes back as events
//	 ├── engine.run: watches the engine, counts its returns (epochs), passes hints on
//	 ├── rack.run: reads the cards once per tick, one goroutine a card, and hears of their faults
//	 ├── the offer's renewal
//	 └── one sweep of what no lease keeps, once the engine answers
//
// ServeLease and ServeTunnel run in their callers' goroutines and leave none behind. A path into a job is bytes that this package
// passes on and does not read; an archive is written by the stream that brings it, and read by the lease's worker.
//
// # Locks
//
// Each guards the fields under it in its struct. Where two are held, the upper in this list was taken first.
//
//	Daemon.grants    from the choice of slots until the lease is stored: two bids never get one slot
//	Daemon.signing   while an offer is signed or the owner's choices are stored
//	Daemon.mu        maps and the current offer; never held for I/O
//	intake.mu        which stream may write a lease's archive; held for no I/O
//	paths.mu         the paths that are open into a lease; never held for I/O
//	rack.mu          the cards' health and readings; never held for I/O
//	engine.mu        what the engine said of itself; never held for I/O
//
// A job's secrets are in memory alone: in its lease, and in the engine. The store never sees one.
//
// A lease's state has no lock: its goroutine owns it and publishes a copy after each step for everybody else to read.
package host
