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
//	 │      ├── its worker: at most one call at a time into the engine, or, once the job has ended, into the driver of
//	 │      │   the cards, to overwrite their memory; the result comes back as events
//	 │      └── its till: at most one call at a time of a payment program; one that hangs holds up nothing but its money
//	 ├── engine.run: watches the engine, counts its returns (epochs), passes hints on
//	 ├── rack.run: reads the cards once per tick, one goroutine a card, and hears of their faults
//	 ├── the offer's renewal
//	 ├── keepMethods: which payment programs there are
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
//	Daemon.pledging  from the look at what is left of a guarantee until the lease that takes of it is counted
//	Daemon.purse     from the look at an owner's balance until it is spent; and while a lease that is over is changed
//	Daemon.chaining  while an accepted outcome goes to the end of the chain
//	Daemon.signing   while an offer is signed or the owner's choices are stored
//	Daemon.mu        maps and the current offer; never held for I/O
//	intake.mu        which stream may write a lease's archive; held for no I/O
//	paths.mu         the paths that are open into a lease; never held for I/O
//	rack.mu          the cards' health and readings; never held for I/O
//	engine.mu        what the engine said of itself; never held for I/O
//
// # Money
//
// A lease is asked for, waits for and takes money on its own goroutine; its till asks the payment program beside it. Money counts
// once the rig has signed for it, and a payment is stored with the state that follows from it in one transaction. What an owner
// has paid and not used is the balance of its account: the next slice of any of its leases is paid from it first. Accounts are
// counted from the leases that live and a sum of those that are over; nothing else is kept.
//
// A job's secrets are in memory alone: in its lease, and in the engine. The store never sees one.
//
// A lease's state has no lock: its goroutine owns it and publishes a copy after each step for everybody else to read.
package host
