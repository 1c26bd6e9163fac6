package netsim

import (
	"bytes"
	_ "embed" // the scenario is part of the program
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

//go:embed scenario.json
var scenarioFile []byte

// Scenario is what a network is like and what its programs do. Shares are between 0 and 1.
type Scenario struct {
	Seeds   []uint64    `json:"seeds"`
	Sizes   []int       `json:"sizes"` // rigs
	Regions []Region    `json:"regions"`
	RTT     [][]float64 `json:"rtt_ms"` // between regions, from gateway to gateway

	LastMile struct {
		Median float64 `json:"median_ms"` // lognormal; of a round trip, at each end
		Sigma  float64 `json:"sigma"`
	} `json:"last_mile"`
	Uplink struct {
		P10    float64 `json:"p10"`
		Median float64 `json:"median"`
		P90    float64 `json:"p90"`
	} `json:"uplink_mbit"`

	Datacentre float64 `json:"datacentre_share"` // rigs with a public address that stay for days
	NAT        float64 `json:"nat_share"`        // of the other rigs: they serve no DHT, and are reached by punching or a relay
	Session    struct {
		Datacentre float64 `json:"datacentre"`   // mean hours
		Hobby      float64 `json:"hobby_median"` // hours, Weibull
		Shape      float64 `json:"hobby_shape"`
	} `json:"session_h"`
	Stale   float64 `json:"stale_share"`   // of the peers in routing tables and of the rigs in announcements: dead
	Hostile float64 `json:"hostile_share"` // of all rigs, where a measurement has hostile ones

	Supply struct {
		Models int     `json:"models"`
		Zipf   float64 `json:"zipf"` // of models that there are, and that are asked for
	} `json:"supply"`
	Queries  Queries  `json:"queries"`
	DHT      DHT      `json:"dht"`
	Protocol Protocol `json:"protocol"`
	Bytes    Bytes    `json:"bytes"`
	Virtual  Virtual  `json:"virtual"`
}

// Region is a part of the world.
type Region struct {
	Name      string  `json:"name"`
	Share     float64 `json:"share"`
	Countries int     `json:"countries"` // that rigs name; the first has half of the region's rigs, the next a quarter, and so on
}

// Queries is what renters ask for, and how often.
type Queries struct {
	ByModel  float64 `json:"by_model"`
	ByMemory float64 `json:"by_memory"`
	ByRegion float64 `json:"by_region"`
	ByAny    float64 `json:"by_any"`
	Renters  float64 `json:"renters_per_rig"`      // that look at the same time
	Screens  float64 `json:"screens_per_renter_h"` // first screens
	Cold     float64 `json:"cold_share"`           // of them: without a rig remembered
}

// DHT are the constants of the DHT as p2p sets them.
type DHT struct {
	K          int     `json:"k"`
	Alpha      int     `json:"alpha"`
	Beta       int     `json:"beta"`
	Dial       float64 `json:"dial_timeout_ms"`
	Silent     float64 `json:"silent_timeout_ms"` // of a peer that takes a connection and does not answer
	FreshRTTs  float64 `json:"fresh_rtts"`        // round trips until a peer that was not connected has answered
	KnownRTTs  float64 `json:"known_rtts"`        // round trips for one that is: some streams are new
	RefreshMin float64 `json:"refresh_min"`       // of the routing table
	Conns      float64 `json:"connections"`       // that an idle rig keeps
}

// Protocol is what our programs do on top of it.
type Protocol struct {
	AnnounceMin float64  `json:"announce_min"`
	LookupEvery float64  `json:"lookup_every"` // of so many announcements one looks the closest peers up; the others go to those found last
	PullMin     float64  `json:"pull_min"`     // between two pulls of a mate's shelf
	PullFrom    int      `json:"pull_from"`    // mates
	BothWays    bool     `json:"both_ways"`    // the mate takes what it lacks, too
	Buckets     []string `json:"buckets"`      // kinds of them that rigs announce
	Shelves     []string `json:"shelves"`      // kinds of them for which rigs keep their mates' offers, beside those that are not divided
	LifeMin     float64  `json:"offer_life_min"`
	RenewalMin  float64  `json:"offer_renewal_min"`
	Lookups     int      `json:"lookups"`  // of a cell that should have rigs and seems empty
	Hedge       float64  `json:"hedge_ms"` // without an answer, after which one more peer is asked
	AtOnce      int      `json:"snapshots_at_once"`
	Screen      int      `json:"first_screen"` // offers
	Page        int      `json:"first_page"`   // offers of the first screen that one shelf is asked for
	Divided     bool     `json:"divided"`      // false: no cells, everybody in one place
}

// Bytes are what things weigh on the wire, both directions and headers included.
type Bytes struct {
	Offer     int     `json:"offer"`     // sealed, with evidence and claims
	Handshake float64 `json:"handshake"` // a new connection with identify
	Request   float64 `json:"request"`
	Answer    float64 `json:"answer"`          // without peers
	Peer      float64 `json:"peer"`            // a peer with its addresses in an answer
	Store     float64 `json:"store"`           // one announcement to one peer
	Renewal   float64 `json:"renewal"`         // an offer that only lives on; 0: as much as the offer
	Keepalive float64 `json:"keepalive_per_s"` // of one connection
	Have      float64 `json:"have"`            // an offer that the asker names as known
}

// Virtual is the network of the real nodes in virtual time.
type Virtual struct {
	RTT        float64 `json:"rtt_ms"`
	Down       float64 `json:"down_mbit"`
	Up         float64 `json:"up_mbit"`
	BlackHoled float64 `json:"black_holed"` // share of rigs that vanish without a word
	Small      int     `json:"small"`       // rigs, in every run of the tests
	Large      []int   `json:"large"`       // rigs, in `make netsim`
}

// DefaultScenario returns the scenario of the file beside the code.
func DefaultScenario() (*Scenario, error) { return ReadScenario(bytes.NewReader(scenarioFile)) }

// ReadScenario reads and checks a scenario. An unknown key is an error.
func ReadScenario(r io.Reader) (*Scenario, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var s Scenario
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	return &s, s.check()
}

func (s *Scenario) check() error {
	if len(s.Regions) == 0 || len(s.RTT) != len(s.Regions) || len(s.Seeds) == 0 || s.Supply.Models < 1 {
		return errors.New("scenario: regions, a row of rtt_ms for each, seeds and models are needed")
	}
	total := 0.0
	for i, region := range s.Regions {
		total += region.Share
		if len(s.RTT[i]) != len(s.Regions) || region.Countries < 1 {
			return fmt.Errorf("scenario: region %s needs countries and a round trip to every region", region.Name)
		}
	}
	q := s.Queries
	for name, sum := range map[string]float64{"regions": total, "queries": q.ByModel + q.ByMemory + q.ByRegion + q.ByAny} {
		if math.Abs(sum-1) > 1e-9 {
			return fmt.Errorf("scenario: the shares of %s are %v together, not 1", name, sum)
		}
	}
	for _, share := range []float64{s.Datacentre, s.NAT, s.Stale, s.Hostile, q.Cold, s.Virtual.BlackHoled} {
		if share < 0 || share >= 1 {
			return fmt.Errorf("scenario: a share of %v", share)
		}
	}
	if s.DHT.K < 1 || s.DHT.Alpha < 1 || s.DHT.Beta < 1 || s.Protocol.AtOnce < 1 || s.Protocol.PullFrom < 1 || s.Protocol.LookupEvery < 1 {
		return errors.New("scenario: k, alpha, beta, snapshots_at_once, pull_from and lookup_every are at least 1")
	}
	for _, kind := range slices.Concat(s.Protocol.Buckets, s.Protocol.Shelves) {
		if !slices.Contains(bucketKinds(), kind) {
			return fmt.Errorf("scenario: there is no kind of bucket %q", kind)
		}
	}
	return nil
}

func bucketKinds() []string { return []string{"any", "model", "memory", "region"} }
