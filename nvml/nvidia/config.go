package nvidia

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// What a Config means by zero.
const (
	// DefaultLibrary is the name by which the driver's library is found.
	DefaultLibrary = "libnvidia-ml.so.1"
	// DefaultTimeout is how long a card may take to answer.
	DefaultTimeout = 2 * time.Second
	// DefaultStartTimeout is how long the library may take to start: it wakes every card, which on a rig without
	// NVIDIA's persistence daemon takes seconds a card.
	DefaultStartTimeout = 60 * time.Second
	// DefaultPoll is how often a card is read that nobody else reads.
	DefaultPoll = 5 * time.Second
	// DefaultCUDA is the name by which the library is found that scrubs a card.
	DefaultCUDA = "libcuda.so.1"
	// DefaultScrubGrace is how long a scrub may take beside the time that the card's memory needs at 50 GB/s: CUDA has to
	// start.
	DefaultScrubGrace = 20 * time.Second
	// DefaultSpecsTimeout is how long CDI specs may take to make: the library starts anew and wakes cards.
	DefaultSpecsTimeout = 60 * time.Second
)

// Config says how to reach the cards. Command is required.
type Config struct {
	// Command is the argument list of a child process that calls RunChild on its standard input and output, such as
	// {"/proc/self/exe", "nvml-child"}, which stays the same program when the file on disk is replaced.
	Command []string
	// Library is the name or path of the driver's library; "" is DefaultLibrary.
	Library string
	// Timeout is how long a card may take to answer before the call is cut; 0 is DefaultTimeout. A card that misses it
	// twice in a row is taken to hang, and the child is restarted.
	Timeout time.Duration
	// StartTimeout is how long the library may take to start; 0 is DefaultStartTimeout.
	StartTimeout time.Duration
	// Poll is how often the driver itself reads a card that nobody else reads, to notice that it is lost, hangs or has
	// new memory errors; 0 is DefaultPoll.
	Poll time.Duration
	// CUDA is the name or path of the library that scrubs cards; "" is DefaultCUDA.
	CUDA string
	// ScrubGrace is how long a scrub may take beside the time for the memory itself; 0 is DefaultScrubGrace.
	ScrubGrace time.Duration
	// CDI says where Specs looks for the driver's files.
	CDI CDIConfig
	// SpecsTimeout is how long Specs may take; 0 is DefaultSpecsTimeout.
	SpecsTimeout time.Duration
	// Log takes what goes wrong with the child; nil discards it.
	Log *slog.Logger
	// Clock returns the time since some start and never goes back; nil is the system's monotonic clock. It stamps
	// samples and events, and must be safe for use by several goroutines at a time. Deadlines do not follow it.
	Clock func() time.Duration
}

// filled returns the configuration with its defaults, or an error.
func (c Config) filled() (Config, error) {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return c, fmt.Errorf("no command for the child process")
	}
	for _, t := range []time.Duration{c.Timeout, c.StartTimeout, c.Poll, c.ScrubGrace, c.SpecsTimeout} {
		if t < 0 {
			return c, fmt.Errorf("negative time %s", t)
		}
	}
	if err := c.CDI.validate(); err != nil {
		return c, err
	}
	c.CDI.LibraryPaths = slices.Clone(c.CDI.LibraryPaths)
	c.Command = slices.Clone(c.Command)
	c.Library = cmp.Or(c.Library, DefaultLibrary)
	c.CUDA = cmp.Or(c.CUDA, DefaultCUDA)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.StartTimeout = cmp.Or(c.StartTimeout, DefaultStartTimeout)
	c.Poll = cmp.Or(c.Poll, DefaultPoll)
	c.ScrubGrace = cmp.Or(c.ScrubGrace, DefaultScrubGrace)
	c.SpecsTimeout = cmp.Or(c.SpecsTimeout, DefaultSpecsTimeout)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		start := time.Now()
		c.Clock = func() time.Duration { return time.Since(start) }
	}
	return c, nil
}
