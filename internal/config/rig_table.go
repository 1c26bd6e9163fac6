package config

import (
	"slices"
	"time"
)

// rigPrefix begins the names of a rig's variables.
const rigPrefix = "HAGGLED_"

// maxLease is the longest lease that the protocol knows.
const maxLease = 366 * day

// RigKnobs describes every knob of `haggled`, in the file's order.
func RigKnobs() []Knob { return knobs(rigTable()) }

// rigTable has the knobs without a table first, as TOML wants them.
func rigTable() []spec[Rig] {
	return slices.Concat(
		marketTable(), claimTable(), cardTable(), engineTable(), shareTable(), jobTable(), priceTable(), ruleTable(), payTable(),
		sourcesTable(func(r *Rig) *Sources { return &r.Sources }, false), reachTable(func(r *Rig) *Reach { return &r.Reach }, false),
		accessTable(func(r *Rig) *Access { return &r.Access }, false),
	)
}

func marketTable() []spec[Rig] {
	return []spec[Rig]{
		{
			Knob: Knob{
				Name: "network", Kind: KindText, Default: "main",
				Doc: "The network to sell on. Names that begin with lab- are for labs on one machine.",
			},
			field: func(r *Rig) any { return &r.Network }, check: checkNetwork,
		},
		{
			Knob: Knob{
				Name: "name", Kind: KindText,
				Doc: "What people call the rig. None: the machine's name without its domain.",
			},
			field: func(r *Rig) any { return &r.Name }, check: orNothing(checkName),
		},
		{
			Knob: Knob{
				Name: "bootstrap", Kind: KindList,
				Doc: "Addresses of members that are asked first, each ending in /p2p/ID.",
			},
			field: func(r *Rig) any { return &r.Bootstrap }, check: checkBootstrap,
		},
		{
			Knob: Knob{
				Name: "listen", Kind: KindList,
				Doc: "Addresses to listen on. None: port 4701, and in a lab any port on loopback only.",
			},
			field: func(r *Rig) any { return &r.Listen }, check: checkAddress,
		},
		{
			Knob: Knob{
				Name: "images", Kind: KindImages,
				Doc: `Images that renters ask for by name: {name = "lab", archive = "lab.tar"}. Paths start in this file's folder.`,
			},
			field: func(r *Rig) any { return &r.Images },
		},
		{
			Knob: Knob{
				Name: "log_level", Kind: KindText, Default: "info",
				Doc: "The least that is logged: debug, info, warn or error.",
			},
			field: func(r *Rig) any { return &r.LogLevel }, check: oneOf("debug", "info", "warn", "error"),
		},
		{
			Knob: Knob{
				Name: "log_format", Kind: KindText, Default: "text",
				Doc: "How the log is written: text or json.",
			},
			field: func(r *Rig) any { return &r.LogFormat }, check: oneOf("text", "json"),
		},
	}
}

func cardTable() []spec[Rig] {
	return []spec[Rig]{
		{
			Knob: Knob{
				Name: "cards.simulated", Kind: KindSimulated,
				Doc: `Simulated cards instead of the machine's own, in labs only: {profile = "RTX_4090", count = 2}.`,
			},
			field: func(r *Rig) any { return &r.Cards.Simulated },
		},
		{
			Knob: Knob{
				Name: "cards.library", Kind: KindText,
				Doc: "The path of libnvidia-ml.so.1, where the system does not find it by itself.",
			},
			field: func(r *Rig) any { return &r.Cards.Library },
		},
		{
			Knob: Knob{
				Name: "cards.cdi", Kind: KindList, Default: "/etc/cdi,/var/run/cdi",
				Doc: "Folders of the files that describe how cards reach a job (CDI); a later one wins.",
			},
			field: func(r *Rig) any { return &r.Cards.CDI }, check: checkFolder,
		},
		{
			Knob: Knob{
				Name: "cards.hooks", Kind: KindText, Default: HooksNone,
				Doc: "Whether the card maker's programs run as root while a job is made: vendor, or none, where the rig mounts the driver itself.",
			},
			field: func(r *Rig) any { return &r.Cards.Hooks }, check: oneOf(HooksVendor, HooksNone),
		},
	}
}

func engineTable() []spec[Rig] {
	return []spec[Rig]{
		{
			Knob: Knob{
				Name: "containerd.binary", Kind: KindText, Default: "containerd",
				Doc: "The containerd that the rig starts: a name or a path.",
			},
			field: func(r *Rig) any { return &r.Containerd.Binary },
		},
		{
			Knob: Knob{
				Name: "containerd.address", Kind: KindText,
				Doc: "The socket of a containerd that runs already. None: the rig starts its own.",
			},
			field: func(r *Rig) any { return &r.Containerd.Address },
		},
		{
			Knob: Knob{
				Name: "containerd.namespace", Kind: KindText, Default: "haggle",
				Doc: "The containerd namespace of all jobs.",
			},
			field: func(r *Rig) any { return &r.Containerd.Namespace }, check: checkName,
		},
		{
			Knob: Knob{
				Name: "helper.socket", Kind: KindText,
				Doc: "The socket of the helper that starts containers as root. None: " + helperRun + "/" + helperSocket + " if it is there, for a rig that is not root.",
			},
			field: func(r *Rig) any { return &r.Helper.Socket }, check: orNothing(checkSocket),
		},
		{
			Knob: Knob{
				Name: "helper.user", Kind: KindText, Default: "haggled",
				Doc: "The user, by name or number, whom the helper serves.",
			},
			field: func(r *Rig) any { return &r.Helper.User }, check: checkName,
		},
	}
}

func shareTable() []spec[Rig] {
	return []spec[Rig]{
		{
			Knob: Knob{
				Name: "host.threads", Kind: KindNumber, Default: "0", Max: 4096,
				Doc: "Processor threads that come with each slot. 0: an equal part of all.",
			},
			field: func(r *Rig) any { return &r.Host.Threads },
		},
		{
			Knob: Knob{
				Name: "host.memory", Kind: KindSize, Default: "0", Max: 1 << 44,
				Doc: `Memory that comes with each slot, such as "16GiB". 0: an equal part of all.`,
			},
			field: func(r *Rig) any { return &r.Host.Memory },
		},
	}
}

func priceTable() []spec[Rig] {
	price := func(name, fallback, doc string, field func(*Rig) any, check func(string) error) spec[Rig] {
		return spec[Rig]{Knob: Knob{Name: "prices." + name, Kind: KindPrice, Default: fallback, Doc: doc}, field: field, check: check}
	}
	return []spec[Rig]{
		{
			Knob: Knob{
				Name: "prices.currency", Kind: KindText, Default: "USD",
				Doc: "The currency of all prices: 3 to 8 capital letters.",
			},
			field: func(r *Rig) any { return &r.Prices.Currency }, check: checkCurrency,
		},
		price("slot", "", "What a slot costs an hour of running time. It must be set before the rig sells; in a lab it is "+labPrice+" otherwise.",
			func(r *Rig) any { return &r.Prices.Slot }, orNothing(checkPrice)),
		price("disk", "0", "What a GB of a job's disk costs an hour.", func(r *Rig) any { return &r.Prices.Disk }, checkPrice),
		price("traffic_in", "0", "What a GB into a job costs.", func(r *Rig) any { return &r.Prices.TrafficIn }, checkPrice),
		price("traffic_out", "0", "What a GB out of a job costs.", func(r *Rig) any { return &r.Prices.TrafficOut }, checkPrice),
	}
}

func ruleTable() []spec[Rig] {
	rule := func(name, fallback string, least, most time.Duration, doc string, field func(*Rig) any) spec[Rig] {
		return spec[Rig]{Knob: Knob{Name: "rules." + name, Kind: KindDuration, Default: fallback, Min: int64(least), Max: int64(most), Doc: doc}, field: field}
	}
	unattended := rule("max_unattended", "8h", 0, maxLease, `The longest that a job may run while its renter's agent is away; "unlimited" is allowed.`,
		func(r *Rig) any { return &r.Rules.MaxUnattended })
	unattended.Kind = KindLimit
	return []spec[Rig]{
		rule("min", "1m", time.Second, maxLease, "The shortest lease.", func(r *Rig) any { return &r.Rules.Min }),
		rule("max", "7d", time.Second, maxLease, "The longest lease.", func(r *Rig) any { return &r.Rules.Max }),
		rule("interval", "60s", time.Second, time.Hour, "The time between receipts.", func(r *Rig) any { return &r.Rules.Interval }),
		rule("first", "10s", time.Second, time.Hour, "The time to the first receipt.", func(r *Rig) any { return &r.Rules.First }),
		rule("grace", "120s", time.Second, time.Hour, "The time that a renter has to sign a receipt.", func(r *Rig) any { return &r.Rules.Grace }),
		rule("notice", "120s", 0, time.Hour, "The time from SIGTERM to SIGKILL when the rig ends a job.", func(r *Rig) any { return &r.Rules.Notice }),
		unattended,
		{
			Knob: Knob{
				Name: "rules.credit", Kind: KindPrice, Default: "5",
				Doc: "What an owner whom you trust may use before it has paid. Labs know no such limit.",
			},
			field: func(r *Rig) any { return &r.Rules.Credit }, check: checkPrice,
		},
	}
}
