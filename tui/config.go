package tui

import (
	"cmp"
	"context"
	"io"
	"os/exec"
	"time"

	"haggle/internal/view"
)

// Shop is where cards are found and rented.
type Shop interface {
	// Offers lists the offers that match a query. None is an empty list and no error.
	Offers(ctx context.Context, q view.OfferQuery) (view.OfferList, error)
	// LookAt asks an offer's rig again and returns the offer with its details, priced for a job. Where the rig keeps silent, the
	// answer says whose word it is.
	LookAt(ctx context.Context, id string, job view.JobShape) (view.Offer, error)
	// Plan says what a budget buys. Nothing is ordered.
	Plan(ctx context.Context, r view.PlanRequest) (view.Plan, error)
	// SavedQueries lists the queries that the user named, and SaveQuery names one.
	SavedQueries(ctx context.Context) ([]view.SavedQuery, error)
	SaveQuery(ctx context.Context, name, query string) (view.SavedQuery, error)
	// Bid orders slots and returns once both sides have signed the lease.
	Bid(ctx context.Context, b view.BidRequest) (view.Lease, error)
}

// Jobs is what becomes of the user's leases.
type Jobs interface {
	// Leases lists the leases that are open, or all, newest first.
	Leases(ctx context.Context, all bool) ([]view.Lease, error)
	// Stop ends a lease's job, with a notice or at once.
	Stop(ctx context.Context, id string, kill bool) (view.Lease, error)
	// Keep ends a lease's job and keeps its disk; Resume starts it again, and Remove has the disk destroyed.
	Keep(ctx context.Context, id string) (view.Lease, error)
	Resume(ctx context.Context, id string) (view.Lease, error)
	Remove(ctx context.Context, id string) (view.Lease, error)
	// Extend adds time and money to a lease, once the rig has signed it too.
	Extend(ctx context.Context, id string, r view.ExtendRequest) (view.Lease, error)
	// Copy copies files between this machine and a job. Its progress is told from one goroutine.
	Copy(ctx context.Context, id string, r view.CopyRequest, progress func(view.Progress)) (view.CopyReport, error)
	// Log opens a lease's log at a byte offset, framed as Config.Demux reads it. The end of ctx unblocks Read.
	Log(ctx context.Context, id string, offset int64, follow bool) (io.ReadCloser, error)
	// Watch tells every change of a lease until ctx ends, which closes the channel. A channel that is closed before means
	// that the agent is gone.
	Watch(ctx context.Context) <-chan view.Lease
}

// Bills is what both sides signed.
type Bills interface {
	// Receipts lists a lease's receipts by number.
	Receipts(ctx context.Context, id string) ([]view.Receipt, error)
	// Evidence returns the bytes of a file that anyone can check.
	Evidence(ctx context.Context, id string) ([]byte, error)
}

// Purse is what the user owes, may spend and has lived through with others.
type Purse interface {
	// Ledger tells what this owner and others owe each other, by owner and currency.
	Ledger(ctx context.Context) (view.Ledger, error)
	// Invoice lists what was used and paid with an owner in one currency.
	Invoice(ctx context.Context, owner, currency string) (view.Invoice, error)
	// Budgets lists what may be spent over all leases, by currency.
	Budgets(ctx context.Context) ([]view.Budget, error)
	// PayLease pays for a lease, or has what its rig asked for tried again. It returns once the money is on its way or a person
	// must act: the lease says which.
	PayLease(ctx context.Context, id string, r view.PayRequest) (view.Lease, error)
	// History counts what the agent verified of an owner.
	History(ctx context.Context, owner string) (view.History, error)
}

// Network is where the agent stands.
type Network interface {
	// Status tells where the agent stands.
	Status(ctx context.Context) (view.AgentStatus, error)
	// Peers lists the programs that the agent is connected with.
	Peers(ctx context.Context) ([]view.Peer, error)
	// Ping calls a program by its key, and tells by which way it was reached and how long that took.
	Ping(ctx context.Context, who string) (view.Ping, error)
	// GiveName names an owner or a rig by its key, for this user alone. An empty name takes the name back.
	GiveName(ctx context.Context, who, name string) (view.GivenName, error)
}

// Market is the user's agent. An error that is no market error means that the agent did not answer: the screens then keep
// what they know and look for it again. Methods are called from several goroutines at once.
type Market interface {
	Shop
	Jobs
	Bills
	Purse
	Network
}

// Defaults is what the form for a bid is filled in with.
type Defaults struct {
	Image      string        // where the rig lists it, else the first image of the rig
	Command    string        // the job's command as a shell would read it; empty leaves it to the image
	GPUs       int           // 1 where it is 0
	Duration   time.Duration // 1 hour where it is 0
	Unattended time.Duration // 0 leaves it to the agent: 10 minutes, or less where the rig allows less
}

// Config is what the screens need. Market and Demux are required.
type Config struct {
	Market Market
	// Demux copies a framed log to two streams, as runtime.Demux does.
	Demux func(r io.Reader, stdout, stderr io.Writer) (offset int64, ended bool, err error)
	// Start starts the agent where none answers: when the screens begin, and when the user asks for it. Without it they wait.
	Start func(ctx context.Context) error
	// Shell makes the program that opens a shell inside a lease on this terminal. Without it there is none.
	Shell func(lease string) *exec.Cmd
	// Forward carries a port of a lease's job to this machine until ctx ends, and returns the link to it. Without it there is
	// none.
	Forward  func(ctx context.Context, lease string, port uint16) (link string, err error)
	Home     string // the agent's folder, for the user to read; empty where it has its usual place
	Version  string
	Reports  string // folder for the report of a panic, the system's folder for temporary files where it is empty
	Exports  string // folder for evidence and invoices, the working folder where it is empty
	Defaults Defaults
	NoColor  bool             // no colours, though bold and reversed text; the environment's NO_COLOR does it too
	ASCII    bool             // no character beyond ASCII of our own; foreign names stay as they are
	Clock    func() time.Time // time.Now where it is nil
}

func (c Config) filled() Config {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	c.Defaults.GPUs = cmp.Or(c.Defaults.GPUs, 1)
	c.Defaults.Duration = cmp.Or(c.Defaults.Duration, time.Hour)
	c.Version = cmp.Or(c.Version, "unknown")
	return c
}
