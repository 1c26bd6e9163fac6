package nvml

import "context"

// Scrubber is what a Driver has beside reading where it can overwrite the memory of a card.
type Scrubber interface {
	// Scrub overwrites all of a card's free memory, which is nearly all of it once no process holds the card, and returns how
	// many bytes that were. ErrNoCard, ErrLost, ErrUnsupported.
	Scrub(ctx context.Context, uuid string) (bytes int64, err error)
}

// PowerLimiter sets how much power a card may take. It needs root.
type PowerLimiter interface {
	// SetPowerLimit bounds a card's power in milliwatts, within what the card allows; 0 is the card's own default. It returns the
	// limit that now holds. ErrNoCard, ErrUnsupported; an error that says so where root is missing.
	SetPowerLimit(ctx context.Context, uuid string, milliwatt int64) (now int64, err error)
}
