package nvidia

import (
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
	if c.Timeout < 0 || c.StartTimeout < 0 || c.Poll < 0 {
		return c, fmt.Errorf("negative time: timeout %s, start timeout %s, poll %s", c.Timeout, c.StartTimeout, c.Poll)
	}
	c.Command = slices.Clone(c.Command)
	if c.Library == "" {
		c.Library = DefaultLibrary
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = DefaultStartTimeout
	}
	if c.Poll == 0 {
		c.Poll = DefaultPoll
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		start := time.Now()
		c.Clock = func() time.Duration { return time.Since(start) }
	}
	return c, nil
}
