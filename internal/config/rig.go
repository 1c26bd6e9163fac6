package config

import (
	"os"
	"strings"
	"time"
)

// labPrice is what a slot costs in a lab where nobody set a price.
const labPrice = "0.40"

// Rig is the configuration of `haggled`.
type Rig struct {
	Paths      Paths
	Network    string
	Name       string
	Bootstrap  []string // multiaddrs that end in /p2p/ID
	Listen     []string // multiaddrs; empty: port 4701, and in a lab any port on loopback only
	Cards      Cards
	Containerd Containerd
	Helper     Helper
	Prices     Prices
	Rules      Rules
	Host       Share
	Jobs       Jobs
	Line       Line
	Pay        RigPay
	Sources    Sources
	Reach      Reach
	Access     Access
	Images     []Image
	Country    string   // two capital letters; "" where the offer does not say
	Claims     []string // name=value each
	LogLevel   string   // debug, info, warn or error
	LogFormat  string   // text or json

	origins map[string]Origin
}

// Cards is what a rig offers instead of the machine's own cards.
type Cards struct {
	Simulated []Simulated // on labs' networks only; empty: the machine's own
	Library   string      // path of the driver's library; "" lets the system find it
	CDI       []string    // folders of CDI files
	Hooks     string      // HooksVendor or HooksNone
}

// Containerd is the engine that runs jobs.
type Containerd struct {
	Binary    string // a program's name or path
	Address   string // of a running containerd's socket; "" starts one of the rig's own
	Namespace string
}

// Helper is the program that does what needs root, where it is not this one.
type Helper struct {
	Socket string // "" where it is looked for in Paths.Helper
	User   string // a name or a number: who may use it
}

// Prices is a rig's price list; the amounts are decimals as in "0.40".
type Prices struct {
	Currency   string
	Slot       string // per slot-hour; "" where nobody set one: see CheckPrices
	Disk       string // per GB-hour
	TrafficIn  string // per GB into the job
	TrafficOut string // per GB out of the job
}

// Rules is what a rig asks of leases.
type Rules struct {
	Min           time.Duration // shortest lease
	Max           time.Duration // longest lease
	Interval      time.Duration // between receipts
	First         time.Duration // to the first receipt
	Grace         time.Duration // to sign a receipt
	Notice        time.Duration // from SIGTERM to SIGKILL
	MaxUnattended time.Duration // longest time without the renter's agent, or Unlimited
	Credit        string        // a decimal: what a trusted owner may use unpaid
	Bidders       string        // BiddersAnyone or BiddersTrusted
}

// Share is what a job gets of the host with each slot.
type Share struct {
	Threads int64 // 0: an equal part of all
	Memory  int64 // bytes; 0: an equal part of all
}

// LoadRig reads the configuration of `haggled`. A file that nobody named may be missing. Where a person can mend what is
// wrong, the error is an *Error.
func LoadRig(f Flags) (Rig, error) {
	var r Rig
	paths, err := RigPaths(f.home(rigPrefix))
	if err != nil {
		return Rig{}, err
	}
	l := layers[Rig]{table: rigTable(), prefix: rigPrefix, into: &r}
	if err := l.load(f, paths.Config); err != nil {
		return Rig{}, err
	}
	r.Paths, r.origins = paths, l.origins
	return r, r.finish()
}

// LoadHelper reads the configuration of the helper: the same file as the rig's, with the helper's own places.
func LoadHelper(f Flags) (Rig, error) {
	r, err := LoadRig(f)
	if err != nil {
		return Rig{}, err
	}
	r.Paths, err = HelperPaths(r.Paths.Home)
	return r, err
}

// finish fills in what depends on the machine and on other knobs, and checks knobs against each other.
func (r *Rig) finish() error {
	if r.Name == "" {
		host, _ := os.Hostname() // a machine without a name has a rig that is called rig
		r.Name = cleanHost(host)
	}
	lab := strings.HasPrefix(r.Network, labPrefix)
	if lab && r.Prices.Slot == "" {
		r.Prices.Slot = labPrice
	}
	switch {
	case len(r.Cards.Simulated) > 0 && !lab:
		return r.fault("cards.simulated", "asks for simulated cards on network "+r.Network+", where renters pay for real ones",
			"take the line out, or set network to a lab's name, which begins with lab-")
	case r.Rules.Min > r.Rules.Max:
		return r.fault("rules.min", "is longer than rules.max", "")
	case r.Rules.First > r.Rules.Interval:
		return r.fault("rules.first", "is longer than rules.interval", "")
	}
	if knob, problem, hint := r.Reach.check(); knob != "" {
		return r.fault(knob, problem, hint)
	}
	seen := map[string]bool{}
	for _, image := range r.Images {
		if seen[image.Name] {
			return r.fault("images", "has two images with the name "+image.Name, "")
		}
		seen[image.Name] = true
	}
	return nil
}

func (r *Rig) fault(key, problem, hint string) error {
	return &Error{Source: "the " + string(r.Origin(key)), Key: key, Problem: problem, Hint: hint}
}

// CheckPrices reports, as an *Error, that nobody set a price for a slot. Whoever is about to sell asks it first: no default
// can be right for every card.
func (r Rig) CheckPrices() error {
	if r.Prices.Slot == "" {
		return r.fault("prices.slot", "is not set", `say what a slot costs an hour: slot = "0.40" in the table [prices]`)
	}
	return nil
}

// Origin returns where a knob's value came from; FromDefault for a configuration that was not loaded.
func (r Rig) Origin(name string) Origin { return originOf(r.origins, name) }

// Values returns every knob's value in the file's order.
func (r Rig) Values() []Value { return values(rigTable(), &r, r.origins) }
