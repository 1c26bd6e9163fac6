package market_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"haggle/market"
)

// askedBy says which field of a query asks for a part of an offer or of a standing; with - in front, why none does.
func askedBy() map[string]string {
	return map[string]string{
		"Offer.Rig": "rig_key", "Offer.Owner": "owner_key", "Offer.Name": "rig", "Offer.ID": "offer_id", "Offer.State": "state",
		"Offer.Delegate": "-it proves owner_key", "Offer.Seq": "-it orders renewals of one offer", "Offer.Issued": "-age tells how old a word is",
		"Offer.Expires": "expires", "Offer.Simulated": "simulated",

		"Offer.Slots.Index": "-it is a place, not a property", "Offer.Slots.Card": "-it is salted, so nobody can ask for it",
		"Offer.Slots.LeasedUntil": "free_slots", "Offer.Slots.Kind": "slot_kind", "Offer.Slots.Vendor": "gpu_vendor",
		"Offer.Slots.Model": "gpu_name", "Offer.Slots.RawModel": "gpu_raw_name", "Offer.Slots.Memory": "gpu_ram", "Offer.Slots.Usable": "gpu_ram_usable",
		"Offer.Slots.Compute": "compute_cap", "Offer.Slots.PCIeGen": "pcie_gen", "Offer.Slots.PCIeWidth": "pcie_width",
		"Offer.Slots.PowerLimit": "gpu_power", "Offer.Slots.ECC": "ecc", "Offer.Slots.Display": "display", "Offer.Slots.Health": "health",

		"Offer.Host.CPU": "cpu_name", "Offer.Host.SlotThreads": "cpu_threads", "Offer.Host.SlotMemory": "cpu_ram", "Offer.Host.DiskFree": "disk_free",
		"Offer.Host.Kernel": "kernel", "Offer.Host.Driver": "driver", "Offer.Host.CUDA": "cuda", "Offer.Host.Isolation": "isolation",
		"Offer.Host.Images.Name": "image", "Offer.Host.Images.Digest": "image_digest", "Offer.Host.Images.Size": "-an image that is there is not sent",
		"Offer.Host.Protections": "protections", "Offer.Host.Weak": "weak", "Offer.Host.SlotUp": "slot_up", "Offer.Host.SlotDown": "slot_down",

		"Offer.Net.Reach": "reach", "Offer.Net.Up": "inet_up", "Offer.Net.Down": "inet_down", "Offer.Net.Country": "geolocation",

		"Offer.Prices.Currency": "currency", "Offer.Prices.Slot": "dph", "Offer.Prices.Disk": "disk_price", "Offer.Prices.In": "in_price",
		"Offer.Prices.Out": "out_price",

		"Offer.Rules.MinMs": "min_duration", "Offer.Rules.MaxMs": "max_duration", "Offer.Rules.IntervalMs": "receipt_interval",
		"Offer.Rules.FirstMs": "first_receipt", "Offer.Rules.GraceMs": "sign_grace", "Offer.Rules.NoticeMs": "notice",
		"Offer.Rules.MaxUnattended": "max_unattended", "Offer.Rules.Credit": "credit", "Offer.Rules.Egress": "egress", "Offer.Rules.Bidders": "bidders",
		"Offer.Rules.Content": "content", "Offer.Rules.Brings": "brings",

		"Offer.Pays.Name": "pay", "Offer.Pays.Settles": "pay_auto", "Offer.History.Count": "outcomes", "Offer.History.Hash": "-it is the end of a chain",
		"Offer.Claims.Name": "-it is the name of the field", "Offer.Claims.Int": "nvlink_bw", "Offer.Claims.Text": "claim.paint",
		"Offer.Claims.Bool": "nvlink",

		"Standing.Checked": "checked", "Standing.Leases": "leases", "Standing.FirstSeen": "seen", "Standing.Heard": "age", "Standing.RTT": "rtt",
		"Standing.Source": "source", "Standing.Sources": "sources", "Standing.Name": "given_name", "Standing.Reached": "reached", "Standing.Link": "link",
		"Standing.AddressCountry": "address_country", "Standing.Keeps": "my_disk",
	}
}

// fullRow returns a row in which every part is there.
func fullRow() market.Row {
	o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564))
	o.Net.Up, o.Net.Down = point(int64(40_000_000)), point(int64(100_000_000))
	o.Host.Protections, o.Host.Weak = []string{"seccomp"}, []string{"quota"}
	o.Host.Images = o.Host.Images[:1]
	o.Rules.Content = "no mining"
	o.Pays = []market.PayMethod{{Name: "hand", Settles: market.SettlesInstantly}}
	o.History = &market.ChainEnd{Count: 3}
	o.Claims = []market.Claim{
		{Name: "nvlink", Bool: point(true)}, {Name: "nvlink_bw", Int: point(int64(300))}, {Name: "paint", Text: point("red")},
	}
	return market.Row{Offer: &o, Now: 500_000, Standing: &market.Standing{
		FirstSeen: 1000, Heard: 2000, RTT: point(int64(8000)), Source: "owner", Sources: 2, Name: "anna", Reached: "direct",
		Link: point(int64(50_000_000)), AddressCountry: "DE",
	}}
}

// leaves returns the parts of a value with their paths. What a slice holds is one part, or the parts of each of its elements.
func leaves(path string, v reflect.Value, into map[string][]reflect.Value) {
	switch {
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		leaves(path, v.Elem(), into)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			leaves(path+"."+v.Type().Field(i).Name, v.Field(i), into)
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			leaves(path, v.Index(i), into)
		}
	default:
		into[path] = append(into[path], v)
	}
}

// change gives a part another value, far enough that no rounding hides it.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			change(v.Elem())
		}
	case reflect.String:
		v.SetString("9" + v.String())
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int64:
		v.SetInt(v.Int() + 1<<36)
	case reflect.Uint8:
		v.SetUint(v.Uint() ^ 1)
	case reflect.Slice, reflect.Array:
		change(v.Index(0))
	}
}

func TestEveryPartOfAnOfferAndOfAStandingCanBeAskedFor(t *testing.T) {
	paths := map[string][]reflect.Value{}
	r := fullRow()
	leaves("Offer", reflect.ValueOf(r.Offer).Elem(), paths)
	leaves("Standing", reflect.ValueOf(r.Standing).Elem(), paths)
	asked := askedBy()
	for path := range paths {
		if asked[path] == "" {
			t.Errorf("%s is new: give it a field, or say in this test why nobody asks for it", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(asked)) {
		name := asked[path]
		if len(paths[path]) == 0 {
			t.Errorf("%s is not there any more", path)
		}
		if strings.HasPrefix(name, "-") {
			continue
		}
		r := fullRow()
		before := market.ShowField(t, name, r, 0)
		fresh := map[string][]reflect.Value{}
		leaves("Offer", reflect.ValueOf(r.Offer).Elem(), fresh)
		leaves("Standing", reflect.ValueOf(r.Standing).Elem(), fresh)
		for _, v := range fresh[path] {
			change(v)
		}
		if path == "Standing.FirstSeen" || path == "Standing.Heard" {
			r.Now += 1 << 37
		}
		if after := market.ShowField(t, name, r, 0); before == after || before == "unknown" {
			t.Errorf("%s is asked for with %s, which says %q before and %q after it has changed", path, name, before, after)
		}
	}
}

func TestAFieldIsUnknownWhereNobodyTold(t *testing.T) {
	o := market.Offer{Slots: []market.Slot{{}}}
	r := market.Row{Offer: &o}
	for _, f := range market.Fields() {
		shown := market.ShowField(t, f.Name, r, 0)
		if f.About == "standing" || f.About == "job" || f.About == "claim" {
			if shown != "unknown" {
				t.Errorf("%s is %s, and nobody told", f.Name, shown)
			}
		}
	}
	r.Standing = &market.Standing{}
	for _, name := range []string{"seen", "age", "rtt", "within_km", "source", "sources", "given_name", "reached", "link", "address_country"} {
		if shown := market.ShowField(t, name, r, 0); shown != "unknown" {
			t.Errorf("%s is %s", name, shown)
		}
	}
}

func TestComputedFields(t *testing.T) {
	r := fullRow()
	r.Offer.Prices = market.Prices{Currency: "USD", Slot: 413_000, Disk: 100, In: 10_000, Out: 20_000}
	r.Offer.Slots = append(r.Offer.Slots, marketSlot(1, "RTX_3090", 24576))
	r.Offer.Slots[1].LeasedUntil = 1
	r.Job = &market.JobShape{Slots: 1, DurationMs: 7_200_000, DiskMB: 50_000, InMB: 20_000, OutMB: 1000, Image: "train"}
	for name, want := range map[string]string{
		"tflops": "82.6TFLOPS", "dph_per_tflop": "0.005", "tflop_per_dph": "200TFLOPS", "total_flops": "118.2TFLOPS", "gpu_total_ram": "48GB",
		"slots_total": "2", "free_slots": "1", "storage_cost": "0.073", "expires": "100001ms", "within_km": "800", "rtt": "8ms",
		"residency_proof": "round-trip", "total": "1.056", "start_time": "0ms", "has_image": "true", "max_unattended": "0ms", "inet_up": "40Mbit/s",
	} {
		if got := market.ShowField(t, name, r, 0); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	r.Offer.Rules.MaxUnattended, r.Offer.Rules.Credit = market.Unlimited, market.Unlimited
	r.Job.Image, r.Job.ImageBytes, r.Job.Upload = "mine", point(int64(1_000_000_000)), 250_000_000
	r.Offer.Rules.Brings, r.Standing.Keeps, r.Job.KeptMB = true, true, 15_000
	for name, want := range map[string]string{
		"max_unattended": "unlimited", "credit": "unlimited", "start_time": "200s", "has_image": "false", "total": "0.906", "my_disk": "true",
	} {
		if got := market.ShowField(t, name, r, 0); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	r.Offer.Rules.Brings = false
	if got := market.ShowField(t, "start_time", r, 0); got != "unknown" {
		t.Errorf("a rig that takes no image starts it in %s", got)
	}
	r.Standing.Link, r.Offer.Rules.Brings = nil, true
	if got := market.ShowField(t, "start_time", r, 0); got != "100s" {
		t.Errorf("over the claimed link it takes %s", got)
	}
	r.Offer.Net.Down = nil
	if got := market.ShowField(t, "start_time", r, 0); got != "unknown" {
		t.Errorf("over an unknown link it takes %s", got)
	}
}

func TestTheTotalIsWhatTheBillComesTo(t *testing.T) {
	r := fullRow()
	r.Offer.Prices = market.Prices{Currency: "USD", Slot: 333_333, Disk: 77, In: 1234, Out: 4321}
	r.Job = &market.JobShape{Slots: 3, DurationMs: 1_234_567, InMB: 17, OutMB: 3}
	bill, err := r.Offer.Prices.Bill(market.UsageAt(1_234_567, 3, r.Offer.DiskMB(3, 0), 17_000_000, 3_000_000))
	if total, known := r.Total(); err != nil || !known || total != bill.Total {
		t.Errorf("total %s %t, bill %s: %v", total, known, bill.Total, err)
	}
	r.Offer.Prices.Slot, r.Job.DurationMs = 1<<62, 360_000_000
	if total, known := r.Total(); known {
		t.Errorf("a price that does not fit into money is %s", total)
	}
}

func ExampleQuery_MatchRow() {
	o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564))
	q, err := market.ParseQuery("seen>=7d total<=1 rtt<=40")
	if err != nil {
		fmt.Println(err)
		return
	}
	row := market.Row{
		Offer: &o, Now: 1_000_000_000_000, Job: &market.JobShape{Slots: 1, DurationMs: 7_200_000},
		Standing: &market.Standing{FirstSeen: 999_000_000_000, RTT: point(int64(12_000))},
	}
	_, fits := q.MatchRow(row)
	_, known := q.Match(o)
	fmt.Println(fits, known)
	// Output: true false
}
