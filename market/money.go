package market

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Micro is money in millionths of a currency's unit: 1_000_000 is one dollar where the currency is USD. Amounts of
// different currencies are never added.
type Micro int64

// Rate is a price in Micro per unit: per slot-hour, per GB-hour of disk, or per GB of traffic (10⁹ bytes).
type Rate int64

// Quantities per unit of a rate.
const (
	msPerHour   = 3_600_000
	mbMsPerGBH  = 1000 * msPerHour // megabyte-milliseconds in a gigabyte-hour
	bytesPerGB  = 1_000_000_000
	microDigits = 6
	maxCurrency = 8
)

// Prices is the whole price list of an offer or a lease: nothing is ever charged that has no line here.
type Prices struct {
	Currency string `cbor:"1,keyasint" json:"currency"`       // 3 to 8 capital letters, such as USD
	Slot     Rate   `cbor:"2,keyasint" json:"slot_hour"`      // per slot-hour of observed running time
	Disk     Rate   `cbor:"3,keyasint" json:"disk_gb_hour"`   // per GB-hour of granted disk while the job runs
	In       Rate   `cbor:"4,keyasint" json:"traffic_in_gb"`  // per GB into the job
	Out      Rate   `cbor:"5,keyasint" json:"traffic_out_gb"` // per GB out of the job
}

// Usage is what was used since the lease's start, cumulative.
type Usage struct {
	SlotMs   int64 `cbor:"1,keyasint" json:"slot_ms"`    // milliseconds of running time, summed over slots
	DiskMBMs int64 `cbor:"2,keyasint" json:"disk_mb_ms"` // megabyte-milliseconds of granted disk
	InBytes  int64 `cbor:"3,keyasint" json:"in_bytes"`   // bytes received by the job
	OutBytes int64 `cbor:"4,keyasint" json:"out_bytes"`  // bytes sent by the job
}

// Bill is the price of a usage, line by line.
type Bill struct {
	Slot  Micro `cbor:"1,keyasint" json:"slot"`
	Disk  Micro `cbor:"2,keyasint" json:"disk"`
	In    Micro `cbor:"3,keyasint" json:"traffic_in"`
	Out   Micro `cbor:"4,keyasint" json:"traffic_out"`
	Total Micro `cbor:"5,keyasint" json:"total"`
}

// Bill prices a cumulative usage: each line is floor(rate × quantity / unit), and the total is their sum. Both sides call
// it, so they cannot disagree. The error has code CodeOverflow.
func (p Prices) Bill(u Usage) (Bill, error) {
	var b Bill
	var err error
	line := func(rate Rate, quantity, unit int64) Micro {
		m, lineErr := price(rate, quantity, unit)
		if err == nil {
			err = lineErr
		}
		return m
	}
	b.Slot = line(p.Slot, u.SlotMs, msPerHour)
	b.Disk = line(p.Disk, u.DiskMBMs, mbMsPerGBH)
	b.In = line(p.In, u.InBytes, bytesPerGB)
	b.Out = line(p.Out, u.OutBytes, bytesPerGB)
	for _, m := range []Micro{b.Slot, b.Disk, b.In, b.Out} {
		if b.Total > math.MaxInt64-m {
			return Bill{}, NewError(CodeOverflow, "value", "of the bill")
		}
		b.Total += m
	}
	return b, err
}

// Validate checks the currency's form and that no rate is negative.
func (p Prices) Validate() error {
	switch {
	case len(p.Currency) < 3 || len(p.Currency) > maxCurrency || strings.Trim(p.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		return NewError(CodeBadRecord, "kind", "prices", "why", "a currency is 3 to 8 capital letters")
	case p.Slot < 0 || p.Disk < 0 || p.In < 0 || p.Out < 0:
		return NewError(CodeBadRecord, "kind", "prices", "why", "a price is negative")
	}
	return nil
}

// price computes floor(rate × quantity / unit) in 128 bits.
func price(rate Rate, quantity, unit int64) (Micro, error) {
	if rate < 0 || quantity < 0 {
		return 0, NewError(CodeOverflow, "value", "of a negative quantity")
	}
	hi, lo := bits.Mul64(uint64(rate), uint64(quantity))
	if hi >= uint64(unit) {
		return 0, NewError(CodeOverflow, "value", "of a price line")
	}
	q, _ := bits.Div64(hi, lo, uint64(unit))
	if q > math.MaxInt64 {
		return 0, NewError(CodeOverflow, "value", "of a price line")
	}
	return Micro(q), nil
}

// For prices one slot for a time, rounded down to whole milliseconds and whole Micro.
func (r Rate) For(d time.Duration) (Micro, error) { return price(r, d.Milliseconds(), msPerHour) }

// String writes the amount as a decimal with at least two digits after the point: 400000 is "0.40".
func (m Micro) String() string {
	sign, v := "", uint64(m)
	if m < 0 {
		sign, v = "-", -uint64(m)
	}
	digits := strconv.FormatUint(v, 10)
	if len(digits) <= microDigits {
		digits = strings.Repeat("0", microDigits+1-len(digits)) + digits
	}
	whole, part := digits[:len(digits)-microDigits], digits[len(digits)-microDigits:]
	for len(part) > 2 && part[len(part)-1] == '0' {
		part = part[:len(part)-1]
	}
	return sign + whole + "." + part
}

// String writes the rate as a decimal.
func (r Rate) String() string { return Micro(r).String() }

// ParseMicro reads a decimal such as "0.40" or "3": digits, at most six after the point, no sign. The error has code
// CodeBadMoney.
func ParseMicro(s string) (Micro, error) {
	whole, part, _ := strings.Cut(s, ".")
	if len(whole) > 12 || len(part) > microDigits || whole == "" || strings.HasSuffix(s, ".") ||
		strings.Trim(whole+part, "0123456789") != "" {
		return 0, NewError(CodeBadMoney, "value", clip(s, 40))
	}
	v, err := strconv.ParseInt(whole+part+strings.Repeat("0", microDigits-len(part)), 10, 64)
	if err != nil {
		return 0, NewError(CodeBadMoney, "value", clip(s, 40))
	}
	return Micro(v), nil
}
