package market

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of an offer's claims.
const (
	MaxClaims    = 32
	maxClaimText = 96 // bytes
)

// claimName is compiled once and never written to again.
var claimName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// Claim is something that only a rig's owner or a card's maker can state. Exactly one of the values is there. The registered names have a
// unit and a meaning: see Claims. Any other is kept and shown as it is.
type Claim struct {
	Name string  `cbor:"1,keyasint" json:"name"`
	Int  *int64  `cbor:"2,keyasint,omitempty" json:"int,omitempty"`
	Text *string `cbor:"3,keyasint,omitempty" json:"text,omitempty"`
	Bool *bool   `cbor:"4,keyasint,omitempty" json:"bool,omitempty"`
}

// Sources of a claim's word.
const (
	ClaimedByOwner = "owner" // the rig's owner says so
	ClaimedByMaker = "maker" // the maker of the part states it, and the owner repeats it
)

// ClaimKind describes a registered claim.
type ClaimKind struct {
	Name   string `json:"name"`
	Type   string `json:"type"`           // of its value in the record: integer, text or bool
	Unit   string `json:"unit,omitempty"` // of an integer in the record
	Most   int64  `json:"most,omitempty"` // of an integer; it is never below 0
	Source string `json:"source"`         // whose word it is: ClaimedByOwner or ClaimedByMaker
	Help   string `json:"help"`
}

// Claims returns the registered claims, by name. The slice is the caller's.
func Claims() []ClaimKind {
	table := claimTable()
	kinds := make([]ClaimKind, len(table))
	for i, c := range table {
		kinds[i] = ClaimKind{Name: c.name, Type: c.valueType(), Unit: c.unit, Most: c.most, Source: c.source, Help: c.help}
	}
	return kinds
}

// claimRow is a registered claim with how a query asks for it.
type claimRow struct {
	name, aliases string
	kind          kind
	unit          string // of the integer in the record
	most          int64
	source        string
	help          string
	example       string
}

func (c claimRow) row() fieldRow {
	help := c.help + ", as the owner claims"
	if c.source == ClaimedByMaker {
		help = c.help + ", as its maker states"
	}
	return fieldRow{name: c.name, aliases: c.aliases, kind: c.kind, help: help, example: c.example}
}

// subject is what a query asks of the claim at a place in the table.
func (c claimRow) subject(at int) subject {
	return subject{field: fieldClaim + 1 + fieldID(at), name: c.name, kind: c.kind, claim: c.name}
}

func (c claimRow) valueType() string {
	switch c.kind {
	case kindWord:
		return "text"
	case kindSwitch:
		return "bool"
	}
	return "integer"
}

// claimTable holds the registered claims, ascending by name. Integers are kept in the base of their kind, so that a query compares them
// as they are.
func claimTable() []claimRow {
	return []claimRow{
		{"certificates", "certificate", kindWord, "", 0, ClaimedByOwner, "certificates that an auditor gave the place, with commas between them", "certificates=*iso27001*"},
		{"confidential", "confidential_computing tee", kindSwitch, "", 0, ClaimedByOwner, "whether the card's confidential mode is on", "confidential=true"},
		{"cpu_arch", "", kindWord, "", 0, ClaimedByOwner, "architecture of the processor, such as amd64 or arm64", "cpu_arch=arm64"},
		{"cpu_mhz", "", kindCount, "MHz", 100_000, ClaimedByMaker, "highest clock of the processor in MHz", "cpu_mhz>=4000"},
		{"datacenter", "", kindSwitch, "", 0, ClaimedByOwner, "whether the rig stands in a datacenter", "datacenter=true"},
		{"disk_bw", "", kindCount, "MB/s", 10_000_000, ClaimedByOwner, "speed of reading from the disk in MB of 10⁶ bytes a second", "disk_bw>=1000"},
		{"disk_kind", "", kindWord, "", 0, ClaimedByOwner, "kind of the disk, such as nvme, ssd or hdd", "disk_kind=nvme"},
		{"gpu_max_temp", "", kindCount, "°C", 200, ClaimedByMaker, "temperature at which the card slows down in °C", "gpu_max_temp>=85"},
		{"gpu_mem_bw", "", kindCount, "GB/s", 1_000_000, ClaimedByMaker, "bandwidth of the card's memory in GB a second", "gpu_mem_bw>=900"},
		{"has_avx", "avx", kindSwitch, "", 0, ClaimedByOwner, "whether the processor has AVX", "has_avx=true"},
		{"interconnect", "", kindWord, "", 0, ClaimedByOwner, "kind of the network between rigs of one place, such as infiniband, roce or ethernet", "interconnect=infiniband"},
		{"interconnect_gbps", "", kindCount, "Gbit/s", 1_000_000, ClaimedByOwner, "speed of that network in Gbit a second", "interconnect_gbps>=200"},
		{"nvlink", "", kindSwitch, "", 0, ClaimedByOwner, "whether the cards are joined by NVLink", "nvlink=true"},
		{"nvlink_bw", "bw_nvlink", kindCount, "GB/s", 1_000_000, ClaimedByMaker, "bandwidth of NVLink in GB a second", "nvlink_bw>=300"},
		{"pcie_bw", "", kindCount, "GB/s", 1_000_000, ClaimedByOwner, "bandwidth between processor and card in GB a second", "pcie_bw>=12"},
		{"profiling", "", kindSwitch, "", 0, ClaimedByOwner, "whether jobs may read the card's profiling counters", "profiling=true"},
		{"raid", "", kindWord, "", 0, ClaimedByOwner, "kind of the disks' RAID, such as raid1 or raid10", "raid=raid1"},
		{"redundant_power", "", kindSwitch, "", 0, ClaimedByOwner, "whether the rig has two power supplies on two feeds", "redundant_power=true"},
		{"shared_storage", "", kindWord, "", 0, ClaimedByOwner, "kind of the storage that rigs of one place share, such as nfs or ceph", "shared_storage=ceph"},
		{"static_ip", "", kindSwitch, "", 0, ClaimedByOwner, "whether the rig's address stays the same", "static_ip=true"},
		{"tflops_fp16", "", kindSpeed, "GFLOPS", 1_000_000_000, ClaimedByMaker, "speed of one card in TFLOPS of 16 bits, dense", "tflops_fp16>=300"},
		{"tflops_fp32", "", kindSpeed, "GFLOPS", 1_000_000_000, ClaimedByMaker, "speed of one card in TFLOPS of 32 bits", "tflops_fp32>=80"},
		{"ups", "", kindSwitch, "", 0, ClaimedByOwner, "whether a battery bridges short cuts of the power", "ups=true"},
		{"vgpu", "", kindSwitch, "", 0, ClaimedByOwner, "whether a slot is a virtual card of the maker's licensed software", "vgpu=false"},
	}
}

// NewClaim reads a claim's value as an owner writes it: true or false, a whole number or one with the unit of the query language, or
// text. A registered claim must have its own type and range; the error has code CodeBadUnit. Any other name is taken with whatever
// value is written; a name of another form is CodeBadClaim.
func NewClaim(name, text string) (Claim, error) {
	if !claimName.MatchString(name) {
		return Claim{}, NewError(CodeBadClaim, "name", clip(name, 40))
	}
	bad := func(expects string) error {
		return NewError(CodeBadUnit, "value", clip(text, 40), "field", claimPrefix+name, "expects", expects)
	}
	if text == "" || len(text) > maxClaimText || Printable(text) != text {
		return Claim{}, bad("it takes a text of at most " + strconv.Itoa(maxClaimText) + " bytes")
	}
	row, registered := claimNamed(name)
	switch {
	case !registered:
		return freeClaim(name, text), nil
	case row.kind == kindWord:
		return Claim{Name: name, Text: &text}, nil
	}
	d, ok := row.kind.parseOperand(text)
	switch {
	case !ok || row.most > 0 && d.num > row.most:
		return Claim{}, bad(row.kind.form().expects)
	case row.kind == kindSwitch:
		on := d.num == 1
		return Claim{Name: name, Bool: &on}, nil
	}
	return Claim{Name: name, Int: &d.num}, nil
}

// freeClaim takes what an unregistered claim says for what it looks like.
func freeClaim(name, text string) Claim {
	if text == "true" || text == "false" {
		on := text == "true"
		return Claim{Name: name, Bool: &on}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Claim{Name: name, Int: &n}
	}
	return Claim{Name: name, Text: &text}
}

// Show writes a claim's value for people: with its unit where the claim is registered. It is safe to print.
func (c Claim) Show() string {
	k := kindClaim
	if row, registered := claimNamed(c.Name); registered && c.has(row.kind) {
		k = row.kind
	}
	return c.value(k).show(k)
}

// IsRegistered reports whether a claim's name has a unit and a meaning that everybody shares: see Claims.
func (c Claim) IsRegistered() bool {
	_, registered := claimNamed(c.Name)
	return registered
}

func claimNamed(name string) (claimRow, bool) {
	table := claimTable()
	i := slices.IndexFunc(table, func(c claimRow) bool { return c.name == name })
	if i < 0 {
		return claimRow{}, false
	}
	return table[i], true
}

// value is what a query compares. A switch of a claim that is not registered is a word.
func (c *Claim) value(k kind) value {
	switch {
	case c.Int != nil:
		return number(*c.Int)
	case c.Bool != nil && k == kindClaim:
		return word(strconv.FormatBool(*c.Bool))
	case c.Bool != nil:
		return truth(c.Bool)
	case c.Text != nil:
		return word(*c.Text)
	}
	return value{}
}

// claim returns the value that a claim has in an offer, as a kind wants it: a value of another type is not known. Claims are in the
// order of their names. It allocates nothing.
func (o *Offer) claim(name string, k kind) value {
	i, found := slices.BinarySearchFunc(o.Claims, name, func(c Claim, name string) int { return cmp.Compare(c.Name, name) })
	if !found || !o.Claims[i].has(k) {
		return value{}
	}
	return o.Claims[i].value(k)
}

// has reports whether a claim's value has the type of a kind.
func (c *Claim) has(k kind) bool {
	switch k {
	case kindClaim:
		return true
	case kindWord:
		return c.Text != nil
	case kindSwitch:
		return c.Bool != nil
	}
	return c.Int != nil
}

// fits reports whether a claim has the type and the range of its registered name.
func (c *claimRow) fits(claim *Claim) bool {
	return claim.has(c.kind) && (claim.Int == nil || *claim.Int >= 0 && *claim.Int <= c.most)
}

// checkClaims says what is wrong with an offer's claims, or "". A registered claim of another type or range is refused: it would never
// be found.
func checkClaims(claims []Claim) string {
	if len(claims) > MaxClaims {
		return "it makes too many claims"
	}
	for i := range claims {
		c := &claims[i]
		values := 0
		for _, there := range []bool{c.Int != nil, c.Text != nil, c.Bool != nil} {
			if there {
				values++
			}
		}
		switch {
		case !claimName.MatchString(c.Name) || values != 1:
			return "a claim has no name, no value or several"
		case i > 0 && strings.Compare(claims[i-1].Name, c.Name) >= 0:
			return "its claims are not in the order of their names"
		case c.Text != nil && (*c.Text == "" || len(*c.Text) > maxClaimText):
			return "a claim's text is out of bounds"
		}
		if row, registered := claimNamed(c.Name); registered && !row.fits(c) {
			return "claim " + c.Name + " has another type or is out of range"
		}
	}
	return ""
}
