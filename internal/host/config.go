package host

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"haggle/market"
	"haggle/nvml"
	"haggle/runtime"
)

// Config is what a rig needs. Key, Network, Name, Store, Cards, Runtime, Prices and Clock have no default.
type Config struct {
	Key     ed25519.PrivateKey // signs offers, terms and receipts
	Network string             // see market.CheckNetwork
	Name    string             // the rig's own, as offers show it: letters, digits, dots and dashes
	OfferID string             // the rig's name for its offer; "main" by default
	Store   Store
	Cards   nvml.Driver
	Runtime runtime.Runtime
	Machine Machine
	Salt    []byte        // hides the cards' UUIDs; must stay the same for as long as leases are open
	Prices  market.Prices // until the owner sets others
	Rules   market.Rules  // DefaultRules where zero
	Net     market.NetFacts
	// Reach, where set, tells how the rig is reached now, for offers; "" where that is not known. It must not wait. See Refresh.
	Reach  func() string
	Claims []market.Claim // of the offer, ascending by name
	// Clock reads both clocks; Mono never goes back within one process.
	Clock  func() market.Instant
	Random io.Reader     // crypto/rand by default
	Tick   time.Duration // between readings of meters and cards; 1 s by default and at most
	Log    *slog.Logger  // nil discards
	// Egress is what jobs reach: nothing but themselves by default.
	Egress runtime.NetworkMode
	// Credit is what a trusted owner may owe over all its leases that are not closed, in the currency of the prices. 0 is
	// DefaultCredit, and no limit in labs; market.Unlimited is no limit.
	Credit market.Micro
	// Content is what the owner allows, in a text for people of at most market.MaxContent bytes.
	Content string
	// Images says which images may run; all that the engine has by default.
	Images ImageRules
	// PowerLimitMW is the most power in milliwatts that a leased card may take; 0 leaves the cards as they are. It needs Power.
	PowerLimitMW int64
	Power        nvml.PowerLimiter
	// Bring lets renters bring images of their own, which lie in the folder Spool until their job is made. The folder is made
	// where it is missing, with mode 0700; nothing else may be in it.
	Bring bool
	Spool string
	// SpoolSpace tells how many bytes are free where Spool is, and how many there are in all. nil looks at nothing.
	SpoolSpace func() (free, total int64, err error)
	// Till takes money; nil takes none: leases are then owed, and settled by the owner's own word.
	Till Till
	// Bidders is BiddersTrusted where the owner wants no strangers, even if they pay ahead. Otherwise strangers may bid where there
	// are payment methods, and in labs everybody.
	Bidders string
	// Boot reads the clock that runs on while the machine sleeps, in milliseconds since its boot, and names the boot. nil goes by the
	// wall clock between two lives of the program.
	Boot func() (ms int64, boot market.Nonce)
	// DiskFull tells that the store's disk is full: no new leases are taken, and those that there are go on. nil is never.
	DiskFull func() bool
	// OffersChanged, where set, is called after Offers has changed. It must not wait.
	OffersChanged func()
}

// Machine is the rig around its cards.
type Machine struct {
	CPU, Kernel string
	Threads     int64 // in all, divided among the cards
	Memory      int64 // bytes in all, divided among the cards
	DiskFree    int64 // bytes
	SlotThreads int64 // a card's share where it is not an equal one
	SlotMemory  int64
	SlotUp      int64 // bits a second out of a job that are promised with each slot, and into it; 0 promises none
	SlotDown    int64
}

// DefaultCredit is what a trusted owner may owe a rig outside labs: 5.00.
const DefaultCredit = market.Micro(5_000_000)

// DefaultRules are the rules of a rig whose owner set none.
func DefaultRules() market.Rules {
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	return market.Rules{
		MinMs: ms(time.Minute), MaxMs: ms(30 * 24 * time.Hour), IntervalMs: ms(time.Minute), FirstMs: ms(10 * time.Second),
		GraceMs: ms(2 * time.Minute), NoticeMs: ms(2 * time.Minute), MaxUnattended: ms(24 * time.Hour), Credit: market.Unlimited,
	}
}

// rules fills in the rules that follow from the rest of the configuration: for how much credit trusted owners may bid, in labs all,
// and what jobs reach. Who may bid depends on the payment programs that there are: see Daemon.rules.
func (cfg Config) rules() market.Rules {
	r := cfg.Rules
	r.Egress, r.Content = cfg.Egress == runtime.NetworkInternet, cfg.Content
	r.Brings = cfg.Bring
	r.Bidders, r.Credit = market.BiddersTrusted, int64(DefaultCredit)
	if market.IsLab(cfg.Network) {
		r.Bidders, r.Credit = market.BiddersAnyone, market.Unlimited
	}
	if cfg.Credit != 0 {
		r.Credit = int64(cfg.Credit)
	}
	return r
}

// minBits is the least bandwidth that an engine limits a job to, in bits a second.
const minBits = 8000

func tooSlow(bits int64) bool { return bits != 0 && bits < minBits }

// check reports whether the configuration makes a valid offer, whatever the cards, and can be kept.
func (cfg Config) check() error {
	if err := market.CheckNetwork(cfg.Network); err != nil {
		return err
	}
	if err := cfg.Images.validate(); err != nil {
		return err
	}
	switch {
	case cfg.PowerLimitMW < 0 || cfg.PowerLimitMW > 0 && cfg.Power == nil:
		return errors.New("rig cannot limit its cards' power: the limit is negative, or nothing can set it")
	case cfg.Bring && !filepath.IsAbs(cfg.Spool):
		return errors.New("rig needs an absolute folder for the images that renters bring")
	case tooSlow(cfg.Machine.SlotUp) || tooSlow(cfg.Machine.SlotDown):
		return fmt.Errorf("rig cannot promise %d and %d bits a second: at least %d or nothing", cfg.Machine.SlotUp, cfg.Machine.SlotDown, minBits)
	case cfg.Bidders != "" && cfg.Bidders != market.BiddersAnyone && cfg.Bidders != market.BiddersTrusted:
		return fmt.Errorf("rig cannot take the bids of %q", cfg.Bidders)
	case cfg.Egress != runtime.NetworkNone && cfg.Egress != runtime.NetworkInternet:
		return fmt.Errorf("rig cannot give jobs the network %q", string(cfg.Egress))
	}
	o := market.Offer{
		Name: cfg.Name, ID: cfg.OfferID, Issued: 1, Expires: 2, State: market.OfferOpen, Net: cfg.Net, Prices: cfg.Prices, Claims: cfg.Claims,
		Rules: cfg.Rules, Host: cfg.Machine.facts(1),
		Slots: []market.Slot{{Kind: market.SlotCard, Vendor: nvml.VendorNVIDIA, Model: "any"}},
	}
	return o.Validate(cfg.Network)
}
