package runtime

import (
	"context"
	"io"
	"time"
)

// Runtime starts, watches and ends jobs. Implementations are safe for concurrent use. A job outlives the program
// that made it: Close, or the death of the program, ends nothing.
//
// Every method returns ErrUnavailable while the engine does not answer, and the context's error when ctx ends
// first.
type Runtime interface {
	// Images lists what can be started at once, ordered by name.
	Images(ctx context.Context) ([]Image, error)
	// Import reads one OCI image archive to its end and keeps it under name; an older image of that name gives
	// the name up. The same archive again is no error. The caller bounds the archive's size. ErrBadArchive.
	Import(ctx context.Context, name string, archive io.Reader) (Image, error)
	// RemoveImage lets go of an image, under all its names: it can be started no more, and its room is free once no job needs
	// it. The jobs that are there go on, and a kept disk can still be taken over by a job of the same image. It may be imported
	// again. An unknown one is no error.
	RemoveImage(ctx context.Context, digest string) error

	// Create prepares everything that a start needs and starts nothing. Repeating it with the same spec is no
	// error, whatever became of the job meanwhile; with another spec it is ErrConflict. ErrInvalidSpec,
	// ErrImageNotFound, ErrUnsupported, ErrNoDevice, ErrDeviceBusy, ErrPolicy, ErrNoRoom.
	Create(ctx context.Context, spec Spec) error
	// Start lets a created job run. Starting a running job is no error; an ended one is ErrConflict.
	Start(ctx context.Context, id string) error
	// Stop asks the job to end (SIGTERM to its first process) and kills all of it after grace. It returns when
	// the job has ended or ctx ends; in the second case the kill stays ordered for as long as this Runtime is
	// open. Of several calls the earliest kill counts. Stopping an ended job is no error.
	Stop(ctx context.Context, id string, grace time.Duration) error
	// Kill ends all processes of the job at once and returns when they have ended.
	Kill(ctx context.Context, id string) error
	// Remove ends the job if it runs and destroys all that is kept of it: its disk, its secrets, its network, its log. nil
	// means that all of that is gone. An unknown id is no error.
	Remove(ctx context.Context, id string) error

	// Status tells the state of one job. ErrNotFound.
	Status(ctx context.Context, id string) (Status, error)
	// List tells the state of all jobs, ordered by id.
	List(ctx context.Context) ([]Status, error)
	// Watch reports every change from the return of the call on. The channel is closed when ctx ends, when the
	// engine is lost and when the reader falls far behind; watch again, then list, to miss nothing.
	Watch(ctx context.Context) (<-chan Event, error)
	// Log gives the job's log (see LogWriter for its format) from a byte offset, which must be 0 or the end of a
	// record. With follow it waits for more, also before the start, and ends with io.EOF when the job has ended
	// and all is read. Closing it, or the end of ctx, unblocks Read. ErrNotFound.
	Log(ctx context.Context, id string, offset int64, follow bool) (io.ReadCloser, error)
	// Usage tells what the job uses now; of an ended job the processor time remains. ErrNotFound also when the
	// figures are lost.
	Usage(ctx context.Context, id string) (Usage, error)

	// Enter opens a new path to the door of a job: bytes both ways between the caller and a program of ours that runs inside
	// the job, with the job's rights and limits. The first call starts it. A job that is created or runs is entered as it
	// is; of one that has stopped, its kept disk, without network and devices. The path ends with the job, and not with the
	// end of ctx, which bounds the opening; the caller closes it. Paths of one job do not hold each other up.
	// ErrNotFound, ErrUnsupported.
	Enter(ctx context.Context, id string) (Conn, error)

	// Sweep removes every job, and every remain of one, for which keep says false.
	Sweep(ctx context.Context, keep func(id string) bool) (SweepReport, error)
	// Probe tells what the engine is.
	Probe(ctx context.Context) (Capabilities, error)
	// Close lets go of the engine; jobs go on. Nothing may be called afterwards.
	Close() error
}

// Conn is a stream of bytes both ways. CloseWrite tells the other side that nothing more comes; Close ends both ways.
type Conn = interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// State is where a job stands.
type State string

// The states of a job, in their order. A job never goes back.
const (
	Created State = "created"
	Running State = "running"
	Stopped State = "stopped"
)

// Status is one job at one moment.
type Status struct {
	ID     string
	Labels map[string]string // those of its Spec
	State  State
	// Exit is nil until the job has stopped, and stays nil when nobody could see how it ended (the machine went
	// down, for example).
	Exit *Exit
	// StartedAt and ExitedAt are wall times, zero while unknown. StartedAt is the moment of the order to start.
	StartedAt, ExitedAt time.Time
}

// Exit is how a job ended.
type Exit struct {
	// Code is the exit code of the first process; 128 plus the signal's number when a signal ended it.
	Code int
	// Signal names what Code stands for by that convention ("KILL", "TERM"), or is empty.
	Signal string
	// OOM is true when the job failed and the kernel had killed a process of it for memory.
	OOM bool
	// DiskFull is true when the job failed and its disk was full then.
	DiskFull bool `json:",omitempty"`
}

// EventKind is what happened to a job.
type EventKind string

// The kinds of events.
const (
	EventStarted EventKind = "started"
	EventExited  EventKind = "exited"
	// EventOOM: the kernel killed a process of the job for memory. The job itself may go on. It is a hint that
	// may come late or not at all; Exit.OOM is what counts.
	EventOOM EventKind = "oom"
	// EventDiskFull: the job's disk has no room left, for bytes or for files. The job goes on. It comes once each time.
	EventDiskFull EventKind = "disk_full"
	// EventEngine: what Probe tells of the engine has changed. It is about no job: ID is empty.
	EventEngine EventKind = "engine"
)

// Event is one change of one job, or of the engine. Exit is set with EventExited, unless it is unknown.
type Event struct {
	ID   string
	Kind EventKind
	Exit *Exit
	At   time.Time
}

// Image is what a job starts from.
type Image struct {
	Name   string
	Digest string // of the manifest: sha256:…
	Size   int64  // bytes as packed, 0 when unknown
}

// Usage is what a job uses.
type Usage struct {
	CPUNanos    uint64 // processor time since the start
	MemoryBytes uint64 // now
	Pids        uint64 // processes and threads now
	DiskBytes   uint64 // on the job's disk now
	// NetInBytes and NetOutBytes are what the job received and sent since its start, as IP packets; what the rig refused is
	// not in it. Like CPUNanos they remain after the end.
	NetInBytes, NetOutBytes uint64
}

// SweepReport names what a sweep removed, each list in no order.
type SweepReport struct {
	Jobs      []string
	Snapshots []string // file systems without a job
	Logs      []string // logs without a job
	Disks     []string // disks without a job
	Networks  []string // networks without a job
}

// Capabilities are what an engine tells about itself.
type Capabilities struct {
	Engine    string // "containerd 1.6.20"
	Runner    string // "runc 1.1.5"; empty when none is involved
	Isolation string // see the constants
	Cgroup    int    // 1, 2, or 0 for none
	// Protections are what the engine has tried out between a job and the machine; empty where it tries nothing.
	Protections []Protection
	// Devices are what can be passed to a job now. Simulated ones are not listed.
	Devices []DeviceID
}

// Kinds of isolation, weakest first.
const (
	// IsolationNone is a plain process.
	IsolationNone = "none"
	// IsolationRunc is a container of which some protection was seen not to hold.
	IsolationRunc = "runc"
	// IsolationUserns is a container in a user namespace of its own, with every protection seen to hold.
	IsolationUserns = "runc-userns"
)

// Protection is one thing between a job and the machine, as it was tried out, never as a version promises it.
type Protection struct {
	Name  string // short and stable, such as "user-namespace"
	Holds bool
	Found string // what was seen, in a sentence
	Fix   string // what the owner can do; empty where it holds
}

// signalName names the signals that end a job in practice, by their Linux numbers.
func signalName(n int) string {
	switch n {
	case 1:
		return "HUP"
	case 2:
		return "INT"
	case 3:
		return "QUIT"
	case 4:
		return "ILL"
	case 6:
		return "ABRT"
	case 7:
		return "BUS"
	case 8:
		return "FPE"
	case 9:
		return "KILL"
	case 11:
		return "SEGV"
	case 13:
		return "PIPE"
	case 14:
		return "ALRM"
	case 15:
		return "TERM"
	}
	return ""
}

// NewExit reads an exit code by the convention that Exit.Code states. oomKills is how many processes of the job
// the kernel killed for memory.
func NewExit(code int, oomKills uint64) Exit {
	e := Exit{Code: code, OOM: code != 0 && oomKills > 0}
	if code > 128 {
		e.Signal = signalName(code - 128)
	}
	return e
}
