package config

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Modes of Jobs.Network.
const (
	NetworkInternet = "internet"
	NetworkNone     = "none"
)

// Modes of Cards.Hooks.
const (
	HooksVendor = "vendor"
	HooksNone   = "none"
)

// Jobs is what the owner lets jobs be.
type Jobs struct {
	Network     string   // NetworkInternet, NetworkNone, or "": see Rig.JobNetwork
	AllowImages []string // names with * for any letters, or digests; empty: all images
	DenyImages  []string // as AllowImages; wins over it
	Content     string   // what jobs may be about, in the owner's words, as offers show it
	Images      string   // ImagesAny or ImagesListed
	MaxImage    int64    // bytes of an image, unpacked
	Power       int64    // watts that a leased card may take; 0: the card's own limit
}

// What Jobs.Images can be.
const (
	ImagesAny    = "any"    // renters may bring images of their own
	ImagesListed = "listed" // only those that the rig has
)

// Line is the household's line, and what jobs may take of it.
type Line struct {
	Up, Down           int64    // bits a second; 0: unknown
	ShareUp, ShareDown int64    // percent of it that all jobs together may take
	Monthly            int64    // bytes in both directions in a calendar month; 0: no cap
	BlockedPorts       []string // that jobs may not connect to
	Connections        int64    // new ones a second for each job
	Reject             []string // networks that jobs may not reach, beside private ones and the rig's own
	Resolvers          []string // addresses of name servers; empty: two public ones
	Pool               string   // the network of jobs' own addresses; "": chosen
}

// JobNetwork returns what jobs reach: NetworkInternet or NetworkNone. A lab stays on its machine unless it is told otherwise.
func (r Rig) JobNetwork() string {
	switch {
	case r.Jobs.Network != "":
		return r.Jobs.Network
	case strings.HasPrefix(r.Network, labPrefix):
		return NetworkNone
	}
	return NetworkInternet
}

// jobTable has the knobs of jobs and of the line.
func jobTable() []spec[Rig] {
	return append([]spec[Rig]{
		{
			Knob: Knob{
				Name: "jobs.network", Kind: KindText,
				Doc: "What jobs reach: internet, which is never this machine or its own network, or none. Not set: internet, and in a lab none.",
			},
			field: func(r *Rig) any { return &r.Jobs.Network }, check: orNothing(oneOf(NetworkInternet, NetworkNone)),
		},
		{
			Knob: Knob{
				Name: "jobs.allow_images", Kind: KindList,
				Doc: "Names of the images that jobs may use, with * for any letters, or their digests. None: all that the rig has.",
			},
			field: func(r *Rig) any { return &r.Jobs.AllowImages }, check: checkImagePattern,
		},
		{
			Knob:  Knob{Name: "jobs.deny_images", Kind: KindList, Doc: "Images that jobs may not use, as allow_images. It wins."},
			field: func(r *Rig) any { return &r.Jobs.DenyImages }, check: checkImagePattern,
		},
		{
			Knob:  Knob{Name: "jobs.content", Kind: KindText, Doc: "What jobs may be about, in your words; offers show it. At most 500 characters."},
			field: func(r *Rig) any { return &r.Jobs.Content }, check: checkContent,
		},
		{
			Knob: Knob{
				Name: "jobs.images", Kind: KindText, Default: ImagesAny,
				Doc: "any: renters may bring images of their own, within the two lists above. listed: only images that the rig has.",
			},
			field: func(r *Rig) any { return &r.Jobs.Images }, check: oneOf(ImagesAny, ImagesListed),
		},
		{
			Knob:  Knob{Name: "jobs.max_image", Kind: KindSize, Default: "64GiB", Min: 1 << 20, Max: 1 << 42, Doc: "The most that an image may take on disk, unpacked."},
			field: func(r *Rig) any { return &r.Jobs.MaxImage },
		},
		{
			Knob:  Knob{Name: "jobs.power", Kind: KindNumber, Default: "0", Max: 2000, Doc: "The most watts that a leased card may take. 0: the card's own limit."},
			field: func(r *Rig) any { return &r.Jobs.Power },
		},
	}, lineTable()...)
}

func lineTable() []spec[Rig] {
	number := func(name, fallback string, least, most int64, doc string, field func(*Rig) any) spec[Rig] {
		return spec[Rig]{Knob: Knob{Name: "line." + name, Kind: KindNumber, Default: fallback, Min: least, Max: most, Doc: doc}, field: field}
	}
	list := func(name, fallback, doc string, field func(*Rig) any, check func(string) error) spec[Rig] {
		return spec[Rig]{Knob: Knob{Name: "line." + name, Kind: KindList, Default: fallback, Doc: doc}, field: field, check: check}
	}
	rate := func(name, doc string, field func(*Rig) any) spec[Rig] {
		return spec[Rig]{Knob: Knob{Name: "line." + name, Kind: KindRate, Default: "0", Max: 1e12, Doc: doc}, field: field}
	}
	return []spec[Rig]{
		rate("up", `What the household's line sends, such as "40Mbit". 0: unknown, and jobs are not slowed.`, func(r *Rig) any { return &r.Line.Up }),
		rate("down", `What the household's line receives, such as "250Mbit". 0: unknown, and jobs are not slowed.`, func(r *Rig) any { return &r.Line.Down }),
		number("share_up", "80", 1, 100, "Percent of the line's upload that all jobs together may take.", func(r *Rig) any { return &r.Line.ShareUp }),
		number("share_down", "90", 1, 100, "Percent of the line's download that all jobs together may take.", func(r *Rig) any { return &r.Line.ShareDown }),
		{
			Knob:  Knob{Name: "line.monthly", Kind: KindSize, Default: "0", Max: 1 << 50, Doc: `What all jobs may send and receive in a calendar month, such as "500GB". 0: no cap.`},
			field: func(r *Rig) any { return &r.Line.Monthly },
		},
		list("blocked_ports", "25", "Ports that jobs may not connect to. 25 is mail: it gets a home's address onto block lists.",
			func(r *Rig) any { return &r.Line.BlockedPorts }, checkPort),
		number("connections", "50", 1, 10000, "New connections a second for each job; more are refused, so that no job can scan.",
			func(r *Rig) any { return &r.Line.Connections }),
		list("reject", "", `Networks that jobs may not reach, such as "203.0.113.0/24", beside private ones and the rig's own.`,
			func(r *Rig) any { return &r.Line.Reject }, checkPrefix),
		list("resolvers", "", "Addresses of the name servers of jobs. None: two public ones.", func(r *Rig) any { return &r.Line.Resolvers }, checkIP),
		{
			Knob:  Knob{Name: "line.pool", Kind: KindText, Doc: "The network of jobs' own addresses, at least a /24. None: one is chosen."},
			field: func(r *Rig) any { return &r.Line.Pool }, check: orNothing(checkPool),
		},
	}
}

func checkImagePattern(s string) error {
	if s == "" || len(s) > 128 {
		return fmt.Errorf("holds %.80q, which is not an image's name or digest", s)
	}
	return nil
}

func checkContent(s string) error {
	if len(s) > 500 {
		return errors.New("is longer than 500 characters")
	}
	return nil
}

func checkPort(s string) error {
	if n, err := strconv.ParseUint(s, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("holds %.40q, which is not a port from 1 to 65535", s)
	}
	return nil
}

func checkPrefix(s string) error {
	if _, err := netip.ParsePrefix(s); err != nil {
		return fmt.Errorf("holds %.80q, which is not a network such as 203.0.113.0/24", s)
	}
	return nil
}

func checkIP(s string) error {
	if _, err := netip.ParseAddr(s); err != nil {
		return fmt.Errorf("holds %.80q, which is not an address such as 9.9.9.9", s)
	}
	return nil
}

func checkPool(s string) error {
	if p, err := netip.ParsePrefix(s); err != nil || !p.Addr().Is4() || p.Bits() > 24 || p != p.Masked() {
		return fmt.Errorf("is %.80q, and must be an IPv4 network of at least a /24, such as 10.219.0.0/16", s)
	}
	return nil
}
