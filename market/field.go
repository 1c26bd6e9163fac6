package market

import "strings"

// Field describes one name that a query can ask about, for help, completion and documents. Fields returns all of them.
type Field struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"` // other spellings that ParseQuery takes
	Type    string   `json:"type"`              // what a value looks like: word, number, memory, money, …
	Unit    string   `json:"unit,omitempty"`    // the unit of a number written without one
	Help    string   `json:"help"`              // one sentence
	Example string   `json:"example"`           // a clause that ParseQuery takes
}

// fieldID numbers the fields in the order of fieldTable.
type fieldID uint8

const (
	fieldGPUName fieldID = iota
	fieldGPUVendor
	fieldNumGPUs
	fieldGPURAM
	fieldComputeCap
	fieldPCIeGen
	fieldGPUPower
	fieldECC
	fieldDisplay
	fieldCPUThreads
	fieldCPURAM
	fieldDiskFree
	fieldDriver
	fieldCUDA
	fieldPrice
	fieldCurrency
	fieldDiskPrice
	fieldGeolocation
	fieldReach
	fieldIsolation
	fieldImage
	fieldMaxDuration
	fieldMinDuration
	fieldRig
	fieldRigKey
	fieldSimulated
	fieldEgress
	fieldBidders
	fieldProtections
	fieldBrings
	fieldPay
	fieldPayAuto
)

// perSlot reports whether the field's value may differ between the slots of one offer.
func (f fieldID) perSlot() bool { return f <= fieldDisplay && f != fieldNumGPUs }

// fieldRow is a Field without what its kind tells.
type fieldRow struct {
	name    string
	aliases string // separated by blanks
	kind    kind
	help    string
	example string
}

// Fields returns every field, in the order in which help shows them. The slice is the caller's.
func Fields() []Field {
	table := fieldTable()
	fields := make([]Field, len(table))
	for i, row := range table {
		fields[i] = Field{
			Name:    row.name,
			Aliases: strings.Fields(row.aliases),
			Type:    row.kind.form().name,
			Unit:    row.kind.form().bare,
			Help:    row.help,
			Example: row.example,
		}
	}
	return fields
}

func fieldTable() []fieldRow {
	return []fieldRow{
		fieldGPUName:     {"gpu_name", "gpu model", kindWord, "model of the card; * and ? stand for any letters, blank and _ are the same", "gpu_name=RTX_40*"},
		fieldGPUVendor:   {"gpu_vendor", "vendor", kindWord, "maker of the card", "gpu_vendor=NVIDIA"},
		fieldNumGPUs:     {"num_gpus", "gpus", kindCount, "number of slots that are free now and fit all other clauses", "num_gpus>=2"},
		fieldGPURAM:      {"gpu_ram", "vram gpu_mem", kindMemory, "memory of one card in whole GiB, rounded to the nearest: 24 finds every card that is sold with 24 GB", "gpu_ram>=24"},
		fieldComputeCap:  {"compute_cap", "cc", kindTenth, "CUDA compute capability of the card", "compute_cap>=8.9"},
		fieldPCIeGen:     {"pcie_gen", "pci_gen", kindCount, "highest PCI Express generation of the card in its place", "pcie_gen>=4"},
		fieldGPUPower:    {"gpu_power", "gpu_max_power power", kindPower, "power limit of the card", "gpu_power>=300W"},
		fieldECC:         {"ecc", "", kindSwitch, "whether the card's memory corrects errors", "ecc=true"},
		fieldDisplay:     {"display", "gpu_display_active", kindSwitch, "whether a screen hangs on the card", "display=false"},
		fieldCPUThreads:  {"cpu_threads", "cpu_cores threads", kindCount, "processor threads that come with one slot", "cpu_threads>=8"},
		fieldCPURAM:      {"cpu_ram", "ram", kindMemory, "main memory that comes with one slot in whole GiB, rounded to the nearest", "cpu_ram>=32"},
		fieldDiskFree:    {"disk_free", "disk disk_space", kindDisk, "free disk of the rig in GB of 1000 MB", "disk_free>=100GB"},
		fieldDriver:      {"driver", "driver_version", kindVersion, "version of the card's driver, compared as far as you write it: driver=550 finds 550.54.15", "driver>=550.54"},
		fieldCUDA:        {"cuda", "cuda_vers cuda_max_good", kindVersion, "newest CUDA that the driver runs, compared as far as you write it: cuda<=12 includes 12.4", "cuda>=12.4"},
		fieldPrice:       {"dph", "dph_total", kindMoney, "price of one slot for one hour, in the offer's currency", "dph<0.60"},
		fieldCurrency:    {"currency", "", kindWord, "currency of all prices of the offer", "currency=USD"},
		fieldDiskPrice:   {"disk_price", "storage_cost", kindMoney, "price of one GB of disk for one hour, in the offer's currency", "disk_price<=0.0002"},
		fieldGeolocation: {"geolocation", "country geo", kindWord, "country of the rig as two letters", "geolocation in [DE,NL]"},
		fieldReach:       {"reach", "", kindWord, "how the rig is reached: direct, punched, relayed or loopback", "reach=direct"},
		fieldIsolation:   {"isolation", "", kindWord, "what keeps jobs apart: runc-userns, runc where some protection does not hold, none where they are plain processes", "isolation=runc-userns"},
		fieldImage:       {"image", "", kindWord, "name of an image that the rig has and starts at once", "image=train"},
		fieldMaxDuration: {"max_duration", "duration", kindTime, "longest lease that the rig grants", "max_duration>=2h"},
		fieldMinDuration: {"min_duration", "", kindTime, "shortest lease that the rig grants", "min_duration<=10m"},
		fieldRig:         {"rig", "", kindWord, "name that the rig gives itself; two rigs may have the same", "rig=attic-*"},
		fieldRigKey:      {"rig_key", "key", kindKey, "key of the rig, whole", "rig_key=12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"},
		fieldSimulated:   {"simulated", "sim", kindSwitch, "whether the cards are simulated; only labs have such offers", "simulated=false"},
		fieldEgress:      {"egress", "internet", kindSwitch, "whether jobs reach the internet", "egress=true"},
		fieldBidders:     {"bidders", "", kindWord, "who may bid: anyone, or trusted: owners whose key the rig's owner trusts", "bidders=anyone"},
		fieldProtections: {"protections", "protection", kindWord, "what stands between a job and the machine and was seen to hold, by name", "protections=user-namespace"},
		fieldBrings:      {"brings", "bring", kindSwitch, "whether renters may bring their own image", "brings=true"},
		fieldPay:         {"pay", "payment", kindWord, "how a lease can be paid ahead, by name of a payment program; none where the rig gives credit", "pay in [lab,hand]"},
		fieldPayAuto:     {"pay_auto", "", kindSwitch, "whether a way of paying settles by itself, without a person", "pay_auto=true"},
	}
}

// fieldNamed finds a field by its name or alias. The error has code CodeUnknownField and names the nearest field.
func fieldNamed(name string, others ...string) (fieldID, fieldRow, error) {
	low := strings.ToLower(name)
	nearest, least := "", len(name)+maxQueryText
	closer := func(candidate, means string) {
		if d := editDistance(low, candidate); d < least {
			nearest, least = means, d
		}
	}
	for i, row := range fieldTable() {
		for _, spelling := range append([]string{row.name}, strings.Fields(row.aliases)...) {
			if low == spelling {
				return fieldID(i), row, nil
			}
			closer(spelling, row.name)
		}
	}
	for _, other := range others {
		closer(other, other)
	}
	return 0, fieldRow{}, NewError(CodeUnknownField, "field", clip(name, 40), "nearest", nearest)
}

// editDistance is the number of letters to insert, delete or change to make b of a (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
