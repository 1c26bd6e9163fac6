package arch_test

// These tables are the decisions about who may know what. A new package or a new foreign module starts with a line here.

const module = "haggle/"

// mayImport says which of our packages a package's own code may import. Paths are below the module's. A package that has no
// entry is refused.
func mayImport() map[string][]string {
	return map[string][]string{
		"market":            {},
		"market/markettest": {"market"},
		"market/sim":        {"market"},

		"nvml":          {},
		"nvml/sim":      {"nvml"},
		"nvml/nvmltest": {"nvml"},
		"nvml/proof":    {"nvml"},
		"nvml/bench":    {"nvml", "nvml/proof"},
		"nvml/nvidia":   {"nvml"},

		"runtime":                   {},
		"runtime/archive":           {},
		"runtime/containerd":        {"runtime", "runtime/archive", "runtime/device", "runtime/jobnet", "runtime/volume"},
		"runtime/device":            {"runtime"},
		"runtime/inside":            {"runtime"},
		"runtime/jobnet":            {"runtime"},
		"runtime/volume":            {"runtime"},
		"runtime/process":           {"runtime", "runtime/archive"},
		"runtime/remote":            {"runtime", "internal/tunnel"},
		"runtime/runtimetest":       {"runtime", "runtime/archive"},
		"runtime/runtimetest/probe": {"runtime", "runtime/runtimetest"},

		"p2p":         {"market"},
		"p2p/p2ptest": {"market", "p2p"},
		"tui":         {"market", "internal/view"},

		"internal/tunnel":     {},
		"internal/filesync":   {},
		"internal/checkpoint": {},
		"internal/door":       {"internal/checkpoint", "internal/tunnel", "internal/filesync"},

		"internal/netsim":       {"market"},
		"internal/netsim/model": {"internal/netsim"},

		"internal/pay":         {},
		"internal/pay/paytest": {"internal/pay"},

		"internal/view":   {"market"},
		"internal/index":  {"market"},
		"internal/host":   {"market", "internal/view", "internal/pay", "internal/tunnel", "nvml", "runtime", "runtime/archive"},
		"internal/renter": {"market", "internal/index", "internal/view", "internal/pay", "internal/tunnel", "internal/filesync", "internal/checkpoint", "nvml/proof"},
		"internal/store":  {"market", "internal/host", "internal/index", "internal/renter"},
		"internal/api":    {"market", "internal/view", "internal/tunnel"},
		"internal/config": {},
		"internal/cli":    {"market", "internal/view", "internal/networks"},

		"internal/networks": {"market"},

		"internal/whereabouts": {},

		"internal/assemble": {"market", "p2p", "internal/view", "internal/index", "internal/store", "internal/api", "internal/config", "internal/networks"},
		"internal/assemble/agent": {
			"market", "p2p", "runtime", "runtime/archive", "nvml/proof", "internal/assemble", "internal/tunnel", "internal/filesync",
			"internal/view", "internal/pay", "internal/renter", "internal/store", "internal/api", "internal/config", "internal/networks", "internal/whereabouts",
		},
		"internal/assemble/rig": {
			"market", "p2p", "nvml", "nvml/sim", "nvml/bench", "nvml/nvidia", "nvml/proof",
			"runtime", "runtime/archive", "runtime/containerd", "runtime/device", "runtime/jobnet", "runtime/remote", "runtime/volume",
			"internal/assemble", "internal/assemble/rigcore",
			"internal/view", "internal/host", "internal/pay", "internal/store", "internal/api", "internal/config", "internal/networks",
		},
		"internal/assemble/labrig": {
			"market", "nvml", "runtime/process", "internal/assemble/rigcore", "internal/config",
		},
		"internal/assemble/rigcore": {
			"market", "p2p", "nvml", "nvml/sim", "runtime", "internal/assemble",
			"internal/index", "internal/view", "internal/host", "internal/pay", "internal/store", "internal/api", "internal/config",
		},

		"internal/lab": {
			"runtime/archive", "internal/view", "internal/api", "internal/config", "internal/lab/train",
			"internal/assemble/agent", "internal/assemble/labrig",
		},
		"internal/lab/train": {},

		"internal/arch":             {},
		"internal/e2e":              {},
		"internal/hostile":          {},
		"internal/clients":          {},
		"internal/hostile/attacker": {"runtime/inside"},
		"internal/netlab":           {},
		"internal/netlab/peer":      {"market", "p2p", "internal/netlab"},
		"internal/shots":            {},
		"internal/bench/bare":       {},
		"internal/bench/load":       {"runtime"},
		"internal/bench": {
			"market", "market/markettest", "p2p", "nvml", "nvml/sim", "runtime", "runtime/archive", "runtime/containerd",
			"internal/view", "internal/host", "internal/index", "internal/store", "internal/api", "internal/config", "internal/lab", "internal/netlab", "tui",
		},

		"cmd/haggle": {
			"market", "tui", "runtime", "runtime/inside", "internal/door", "internal/tunnel", "internal/filesync", "internal/view", "internal/api", "internal/config", "internal/cli", "internal/networks",
			"internal/lab", "internal/lab/train", "internal/assemble/agent",
		},
		"cmd/haggle-pay-hand": {"internal/pay"},
		"cmd/haggle-pay-lab":  {"internal/pay"},
		"cmd/haggled": {
			"market", "runtime", "runtime/containerd", "internal/view", "internal/api", "internal/config", "internal/cli", "internal/networks",
			"internal/assemble/rig",
		},
	}
}

// testsMayImport says what a package's tests may import beside what the package may, the package itself and the doubles.
func testsMayImport() map[string][]string {
	return map[string][]string{
		"p2p":                {"internal/index", "internal/netsim"},
		"runtime/containerd": {"runtime/archive"},
		"runtime/remote":     {"runtime/archive"},
		"internal/hostile": {
			"market", "runtime", "runtime/archive", "runtime/containerd", "runtime/device", "runtime/inside", "runtime/jobnet", "runtime/volume",
		},
		"internal/netlab":         {"market", "runtime/archive"},
		"internal/assemble/agent": {"internal/host"},
		"internal/assemble/rig":   {"internal/renter"},
		"internal/e2e": {
			"market", "p2p", "nvml", "nvml/sim", "runtime", "runtime/archive", "runtime/containerd",
			"internal/view", "internal/host", "internal/renter", "internal/store", "internal/api", "internal/config",
			"internal/assemble/agent", "internal/assemble/rig", "internal/lab",
		},
	}
}

// doubles are fakes and conformance suites: any test may import them.
func doubles() []string {
	return []string{"market/markettest", "nvml/sim", "nvml/nvmltest", "runtime/runtimetest", "p2p/p2ptest", "internal/pay/paytest"}
}

// owner says which of our packages alone may import foreign packages of a path, tests included. The longest matching path
// counts; a foreign package that matches none is refused.
type owner struct {
	path string
	by   []string // "*" is everyone but market, "tests" is every test and every double
}

func owners() []owner {
	return []owner{
		{"github.com/fxamacker/cbor/v2", []string{"market"}},

		{"github.com/libp2p", []string{"p2p", "p2p/p2ptest", "internal/bench", "internal/bench/bare"}},
		{"github.com/multiformats", []string{"p2p", "p2p/p2ptest", "internal/bench", "internal/bench/bare"}},
		{"github.com/ipfs/go-cid", []string{"p2p"}},
		{"github.com/ipfs/go-datastore", []string{"p2p"}},
		{"github.com/huin/goupnp", []string{"p2p"}},
		{"github.com/marcopolo/simnet", []string{"p2p"}},
		{"github.com/phuslu/iploc", []string{"internal/whereabouts"}},
		{"github.com/mr-tron/base58", []string{"p2p", "market"}},

		{"github.com/NVIDIA/go-nvml", []string{"nvml/nvidia"}},
		{"github.com/NVIDIA/nvidia-container-toolkit", []string{"nvml/nvidia"}},
		{"github.com/ebitengine/purego", []string{"nvml/nvidia", "nvml/bench"}},

		{"github.com/containerd", []string{"runtime/containerd"}},
		{"google.golang.org/grpc", []string{"runtime/containerd"}},
		{"google.golang.org/protobuf", []string{"runtime/containerd", "p2p"}},
		{"github.com/opencontainers", []string{"runtime/containerd"}},
		{"github.com/opencontainers/runtime-spec", []string{"runtime/containerd", "runtime/device"}},
		{"github.com/vishvananda", []string{"runtime/jobnet", "internal/hostile"}},
		{"github.com/opencontainers/image-spec", []string{"runtime/containerd", "runtime/archive", "runtime/runtimetest"}},
		{"github.com/opencontainers/go-digest", []string{"runtime/containerd", "runtime/archive", "runtime/runtimetest"}},
		{"tags.cncf.io/container-device-interface", []string{"runtime/device", "nvml/nvidia"}},
		{"github.com/fsnotify/fsnotify", []string{"runtime", "runtime/containerd", "runtime/process"}},

		{"golang.org/x/crypto/x509roots", []string{"internal/door"}},
		{"golang.org/x/crypto/ssh", []string{"internal/door", "cmd/haggle"}},
		{"github.com/pkg/sftp", []string{"internal/door"}},
		{"github.com/creack/pty", []string{"internal/door"}},
		{"mvdan.cc/sh/v3", []string{"internal/door"}},
		{"filippo.io/age", []string{"internal/checkpoint", "internal/door", "internal/renter"}},
		{"lukechampine.com/blake3", []string{"internal/filesync"}},
		{"github.com/klauspost/compress", []string{"internal/checkpoint"}},
		{"github.com/go-git/go-git/v5/plumbing/format/gitignore", []string{"internal/filesync"}},

		{"modernc.org/sqlite", []string{"internal/store"}},
		{"github.com/danielgtaylor/huma/v2", []string{"internal/api"}},
		{"github.com/prometheus/client_golang", []string{"internal/api"}},
		{"github.com/pelletier/go-toml/v2", []string{"internal/config"}},
		{"github.com/adrg/xdg", []string{"internal/config"}},

		{"github.com/spf13/cobra", []string{"internal/cli", "cmd/haggle", "cmd/haggled"}},
		{"github.com/spf13/pflag", []string{"cmd/haggle", "cmd/haggled", "internal/cli"}},
		{"charm.land/fang/v2", []string{"cmd/haggle", "cmd/haggled"}},
		{"rsc.io/qr", []string{"tui", "cmd/haggle", "internal/cli"}},
		{"charm.land/lipgloss/v2", []string{"tui", "cmd/haggle", "cmd/haggled"}},
		{"charm.land", []string{"tui"}},
		{"charm.land/bubbletea/v2", []string{"tui", "internal/bench", "internal/bench/bare"}},
		{"github.com/charmbracelet/x", []string{"tui", "internal/shots", "internal/e2e"}},
		{"github.com/charmbracelet/ultraviolet", []string{"internal/shots"}},
		{"github.com/NimbleMarkets/ntcharts/v2", []string{"tui"}},

		{"golang.org/x/net/dns/dnsmessage", []string{"tests"}},
		{"golang.org/x/sync", []string{"*"}},
		{"golang.org/x/sys", []string{"*"}},
		{"golang.org/x/term", []string{"cmd/haggle", "cmd/haggled", "tui"}},
		{"golang.org/x/time", []string{"p2p", "internal/host", "internal/renter"}},

		{"pgregory.net/rapid", []string{"tests"}},
		{"github.com/google/go-cmp", []string{"tests"}},
		{"github.com/rogpeppe/go-internal/testscript", []string{"tests"}},
		{"github.com/charmbracelet/x/exp/teatest/v2", []string{"tests"}},
		{"github.com/charmbracelet/x/vt", []string{"tests", "internal/shots"}},
	}
}

// neverReach says what a package must not link, however many imports away.
func neverReach() map[string][]string {
	rig := []string{
		"haggle/nvml/nvidia", "haggle/runtime/containerd", "haggle/internal/assemble/rig",
		"github.com/NVIDIA", "github.com/containerd/containerd", "tags.cncf.io",
	}
	network := []string{"github.com/libp2p", "modernc.org/sqlite"}
	return map[string][]string{
		"market":                    append([]string{"net", "os/exec", "database/sql", "github.com/opencontainers"}, network...),
		"tui":                       network,
		"internal/view":             network,
		"internal/api":              network,
		"internal/host":             network,
		"internal/renter":           network,
		"internal/lab/train":        append([]string{"net"}, network...),
		"internal/assemble/rigcore": {"haggle/nvml/nvidia", "github.com/NVIDIA", "github.com/containerd/containerd"},
		"internal/assemble/labrig":  {"haggle/nvml/nvidia", "github.com/NVIDIA", "github.com/containerd/containerd"},
		"cmd/haggle":                rig,
	}
}

// longFunctions and longFiles are the exceptions to the bounds, each with its reason.
func longFunctions() map[string]string { return map[string]string{} }

func longFiles() map[string]string { return map[string]string{} }
