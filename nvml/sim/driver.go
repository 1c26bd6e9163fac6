// Package sim plays graphics cards that do not exist.
//
// Its driver keeps every promise of [nvml.Driver]. Its cards follow the load that SetLoad gives them and fail when
// Inject says so; the same history gives the same readings. A simulated card can never pass for a real one: its UUID
// begins with "SIM-", its vendor is "SIMULATED", and no configuration can change that.
package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"haggle/nvml"
)

// The bounds of a configuration.
const (
	// MaxCards is the greatest number of cards of one driver.
	MaxCards = 64
	// MaxSerial is the greatest length of a serial in bytes.
	MaxSerial = 128
	// MinAmbientC and MaxAmbientC bound the temperature of the room.
	MinAmbientC, MaxAmbientC = 1, 45
	// DefaultAmbientC is the temperature of the room when none is given.
	DefaultAmbientC = 22
)

const mib = 1 << 20

// Config describes a simulated rig. The zero Config is a rig without cards.
type Config struct {
	// Cards are the cards in the order of their slots.
	Cards []CardConfig
	// Serial tells this rig's cards from those of other rigs. The same serial and the n-th card of a profile give the
	// same UUID every time, so give every rig its own.
	Serial string
	// Clock returns the time since some start and never goes back; nil is the system's monotonic clock. It must be
	// safe for use by several goroutines at a time.
	Clock func() time.Duration
	// AmbientC is the temperature of the room in degrees Celsius; 0 is DefaultAmbientC. In a room of more than about
	// 40 degrees cards run into their limit under full load.
	AmbientC int
}

// CardConfig asks for some cards of one model.
type CardConfig struct {
	// Profile is one of Profiles, in any case.
	Profile string
	// Count is how many; 0 means one.
	Count int
}

// Driver plays the cards of one rig. Make one with New; all methods may be called at the same time.
type Driver struct {
	read  func() time.Duration
	start time.Duration

	mu      sync.Mutex
	last    time.Duration
	cards   []*card
	subs    []*subscription
	changed chan struct{} // closed and replaced whenever a waiting call should look again
	closed  bool
}

// card is one simulated card. The driver's lock guards it.
type card struct {
	info    nvml.Card
	physics physics
	body    body
	mem     int64 // bytes used by the load
	ecc     int64 // uncorrected errors since the last reset

	lostUntil time.Duration // lost before this time
	hungUntil time.Duration // hangs before this time
	noScrub   bool          // scrubs fail
	misses    int           // calls in a row that met their deadline while it hung
}

// forever is the end of a fault that only Reset ends.
const forever = time.Duration(math.MaxInt64)

// New returns a driver for the cards of the configuration. It starts nothing; Close frees it.
func New(cfg Config) (*Driver, error) {
	if len(cfg.Serial) > MaxSerial {
		return nil, fmt.Errorf("simulate cards: serial longer than %d bytes", MaxSerial)
	}
	if cfg.AmbientC == 0 {
		cfg.AmbientC = DefaultAmbientC
	}
	if cfg.AmbientC < MinAmbientC || cfg.AmbientC > MaxAmbientC {
		return nil, fmt.Errorf("simulate cards: room of %d C, want %d to %d", cfg.AmbientC, MinAmbientC, MaxAmbientC)
	}
	if cfg.Clock == nil {
		start := time.Now()
		cfg.Clock = func() time.Duration { return time.Since(start) }
	}
	cards, err := makeCards(cfg)
	if err != nil {
		return nil, fmt.Errorf("simulate cards: %w", err)
	}
	return &Driver{read: cfg.Clock, start: cfg.Clock(), cards: cards, changed: make(chan struct{})}, nil
}

func makeCards(cfg Config) ([]*card, error) {
	all, err := loadProfiles()
	if err != nil {
		return nil, err
	}
	var cards []*card
	ordinal := make(map[string]int)
	for _, want := range cfg.Cards {
		p, err := findProfile(all, want.Profile)
		if err != nil {
			return nil, err
		}
		if want.Count < 0 || want.Count > MaxCards {
			return nil, fmt.Errorf("%d cards of %s, want up to %d", want.Count, p.Model, MaxCards)
		}
		for range max(1, want.Count) {
			if len(cards) == MaxCards {
				return nil, fmt.Errorf("more than %d cards", MaxCards)
			}
			ph := p.physics(cfg.AmbientC)
			info := p.card(cfg.Serial, ordinal[p.Model], len(cards))
			cards = append(cards, &card{info: info, physics: ph, body: ph.start(0)})
			ordinal[p.Model]++
		}
	}
	return cards, nil
}

// card returns the description of the n-th card of this profile in the given slot.
func (p profile) card(serial string, n, slot int) nvml.Card {
	c := nvml.Card{
		UUID:                simUUID(serial, p.Model, n),
		Vendor:              nvml.VendorSimulated,
		Model:               nvml.NormaliseModel(p.RawName),
		RawName:             p.RawName,
		PCIBusID:            fmt.Sprintf("sim:%02x:00.0", slot+1),
		Simulated:           true,
		MemoryBytes:         p.MemoryMiB * mib,
		MemoryUsableBytes:   nvml.Some((p.MemoryMiB - p.ReservedMiB) * mib),
		ComputeCapability:   nvml.Some(p.ComputeCapability),
		MaxClockMHz:         nvml.Some(p.BoostMHz),
		PowerLimitMilliWatt: nvml.Some(p.BusyMilliWatt),
		PCIeGenMax:          nvml.Some(p.PCIeGen),
		PCIeWidth:           nvml.Some(p.PCIeWidth),
		PCIeWidthMax:        nvml.Some(p.PCIeWidth),
		ECC:                 nvml.None[bool](nvml.NotSupported),
		MIG:                 nvml.None[bool](nvml.NotSupported),
		DisplayAttached:     nvml.Some(false),
	}
	if p.ECC {
		c.ECC = nvml.Some(true)
	}
	if p.MIG {
		c.MIG = nvml.Some(false)
	}
	return c
}

// simUUID looks like a driver's UUID behind the prefix that no driver uses.
func simUUID(serial, model string, n int) string {
	b := []byte("haggle/sim\x00" + serial + "\x00" + model + "\x00")
	h := sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(n)))
	return fmt.Sprintf("%s%x-%x-%x-%x-%x", nvml.SimPrefix, h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// now is the time since New. It never goes back even if the clock does. The lock must be held.
func (d *Driver) now() time.Duration {
	d.last = max(d.last, d.read()-d.start)
	return d.last
}

// find returns the card, or ErrNoCard. The lock must be held.
func (d *Driver) find(uuid string) (*card, error) {
	i := slices.IndexFunc(d.cards, func(c *card) bool { return c.info.UUID == uuid })
	if i < 0 {
		return nil, fmt.Errorf("card %.64q: %w", uuid, nvml.ErrNoCard)
	}
	return d.cards[i], nil
}

// wake lets waiting calls look again. The lock must be held.
func (d *Driver) wake() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Close implements nvml.Driver.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	for _, s := range d.subs {
		s.end()
	}
	d.subs = nil
	d.wake()
	return nil
}
