package market

// fieldTable holds every field but the claims, by its number.
func fieldTable() [fieldClaim]fieldRow {
	var table [fieldClaim]fieldRow
	for _, part := range []map[fieldID]fieldRow{slotFields(), offerFields(), standingFields(), jobFields()} {
		for id, row := range part {
			table[id] = row
		}
	}
	return table
}

func slotFields() map[fieldID]fieldRow {
	return map[fieldID]fieldRow{
		fieldGPUName:       {"gpu_name", "gpu model", kindWord, "model of the card; * and ? stand for any letters, blank and _ are the same", "gpu_name=RTX_40*"},
		fieldGPUVendor:     {"gpu_vendor", "vendor gpu_arch", kindWord, "maker of the card", "gpu_vendor=NVIDIA"},
		fieldNumGPUs:       {"num_gpus", "gpus", kindCount, "number of slots that are free now and fit all other clauses", "num_gpus>=2"},
		fieldGPURAM:        {"gpu_ram", "vram gpu_mem", kindMemory, "memory of one card in whole GiB, rounded to the nearest: 24 finds every card that is sold with 24 GB", "gpu_ram>=24"},
		fieldComputeCap:    {"compute_cap", "cc", kindTenth, "CUDA compute capability of the card", "compute_cap>=8.9"},
		fieldPCIeGen:       {"pcie_gen", "pci_gen", kindCount, "highest PCI Express generation of the card in its place", "pcie_gen>=4"},
		fieldGPUPower:      {"gpu_power", "gpu_max_power power", kindPower, "power limit of the card", "gpu_power>=300W"},
		fieldECC:           {"ecc", "", kindSwitch, "whether the card's memory corrects errors", "ecc=true"},
		fieldDisplay:       {"display", "gpu_display_active display_active", kindSwitch, "whether a screen hangs on the card", "display=false"},
		fieldRawModel:      {"gpu_raw_name", "raw_model", kindWord, "name of the card as its driver says it", "gpu_raw_name=*GeForce*"},
		fieldUsable:        {"gpu_ram_usable", "usable", kindMemory, "memory of one card that a job can use, not rounded", "gpu_ram_usable>=23.5"},
		fieldPCIeWidth:     {"pcie_width", "pcie_lanes", kindCount, "PCI Express lanes of the card at most", "pcie_width>=8"},
		fieldSlotKind:      {"slot_kind", "", kindWord, "what a slot is: card, mig for a slice of one, or host for a share of a rig without cards", "slot_kind=card"},
		fieldHealth:        {"health", "", kindWord, "state of the card: fit, or watch where something was seen that ends no job", "health=fit"},
		fieldTFLOPS:        {"tflops", "", kindSpeed, "speed of one card in TFLOPS of 32 bits: as the owner claims it, else as the maker of a model of that name states it; not measured", "tflops>=40"},
		fieldPricePerTFLOP: {"dph_per_tflop", "", kindMoney, "price of one slot for one hour by the TFLOPS of its card, in the offer's currency", "dph_per_tflop<0.01"},
		fieldTFLOPPerPrice: {"tflop_per_dph", "flops_usd flops_per_dphtotal", kindSpeed, "TFLOPS of one card for one unit of the offer's currency an hour", "tflop_per_dph>=100"},
	}
}

func offerFields() map[fieldID]fieldRow {
	return map[fieldID]fieldRow{
		fieldCPUThreads:  {"cpu_threads", "cpu_cores threads cpu_cores_effective", kindCount, "processor threads that come with one slot", "cpu_threads>=8"},
		fieldCPURAM:      {"cpu_ram", "ram", kindMemory, "main memory that comes with one slot in whole GiB, rounded to the nearest", "cpu_ram>=32"},
		fieldDiskFree:    {"disk_free", "disk disk_space", kindDisk, "free disk of the rig in GB of 1000 MB", "disk_free>=100GB"},
		fieldCPUName:     {"cpu_name", "cpu", kindWord, "model of the processor", "cpu_name=*Ryzen*"},
		fieldKernel:      {"kernel", "", kindVersion, "version of the rig's kernel, compared as far as you write it", "kernel>=6.1"},
		fieldDriver:      {"driver", "driver_version", kindVersion, "version of the card's driver, compared as far as you write it: driver=550 finds 550.54.15", "driver>=550.54"},
		fieldCUDA:        {"cuda", "cuda_vers cuda_max_good", kindVersion, "newest CUDA that the driver runs, compared as far as you write it: cuda<=12 includes 12.4", "cuda>=12.4"},
		fieldSlotUp:      {"slot_up", "", kindBits, "bits a second out of a job that come with one slot; 0 where none are promised", "slot_up>=100Mbit/s"},
		fieldSlotDown:    {"slot_down", "", kindBits, "bits a second into a job that come with one slot; 0 where none are promised", "slot_down>=100Mbit/s"},
		fieldPrice:       {"dph", "dph_total", kindMoney, "price of one slot for one hour, in the offer's currency", "dph<0.60"},
		fieldCurrency:    {"currency", "", kindWord, "currency of all prices of the offer", "currency=USD"},
		fieldDiskPrice:   {"disk_price", "", kindMoney, "price of one GB of disk for one hour, in the offer's currency", "disk_price<=0.0002"},
		fieldStorageCost: {"storage_cost", "", kindMoney, "price of one GB of disk for a month of 730 hours, in the offer's currency", "storage_cost<=0.15"},
		fieldInPrice:     {"in_price", "inet_down_cost", kindMoney, "price of one GB into the job, in the offer's currency", "in_price<=0.01"},
		fieldOutPrice:    {"out_price", "inet_up_cost", kindMoney, "price of one GB out of the job, in the offer's currency", "out_price<=0.01"},
		fieldGeolocation: {"geolocation", "country geo", kindWord, "country of the rig as two letters, as it claims: see residency_proof", "geolocation in [DE,NL]"},
		fieldReach:       {"reach", "", kindWord, "how the rig is reached, as it claims: direct, punched, relayed or loopback", "reach=direct"},
		fieldInetUp:      {"inet_up", "up", kindBits, "bits a second out of the rig, as it claims", "inet_up>=100"},
		fieldInetDown:    {"inet_down", "down", kindBits, "bits a second into the rig, as it claims", "inet_down>=500Mbit/s"},
		fieldIsolation:   {"isolation", "", kindWord, "what keeps jobs apart: runc-userns, runc where some protection does not hold, none where they are plain processes", "isolation=runc-userns"},
		fieldImage:       {"image", "", kindWord, "name of an image that the rig has and starts at once", "image=train"},
		fieldImageDigest: {"image_digest", "digest", kindWord, "digest of an image that the rig has and starts at once", "image_digest=sha256:9f86*"},
		fieldMaxDuration: {"max_duration", "duration", kindTime, "longest lease that the rig grants", "max_duration>=2h"},
		fieldMinDuration: {"min_duration", "", kindTime, "shortest lease that the rig grants", "min_duration<=10m"},
		fieldInterval:    {"receipt_interval", "interval", kindTime, "time between two receipts", "receipt_interval<=1m"},
		fieldFirst:       {"first_receipt", "", kindTime, "time to the first receipt", "first_receipt<=10s"},
		fieldGrace:       {"sign_grace", "", kindTime, "time in which a receipt must be signed", "sign_grace>=2m"},
		fieldNotice:      {"notice", "", kindTime, "time between SIGTERM and SIGKILL when the rig ends a job", "notice>=60s"},
		fieldUnattended:  {"max_unattended", "unattended", kindTime, "longest time for which a job may run while your agent is away; unlimited is a value", "max_unattended>=8h"},
		fieldCredit:      {"credit", "", kindMoney, "use that the rig lets you owe, in the offer's currency; unlimited is a value", "credit>=1"},
		fieldRig:         {"rig", "", kindWord, "name that the rig gives itself; two rigs may have the same", "rig=attic-*"},
		fieldRigKey:      {"rig_key", "key", kindKey, "key of the rig, whole", "rig_key=12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"},
		fieldOwnerKey:    {"owner_key", "owner", kindKey, "key of the rig's owner, whole", "owner_key=12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"},
		fieldOfferID:     {"offer_id", "", kindWord, "the rig's own name for the offer", "offer_id=attic-1"},
		fieldState:       {"state", "", kindWord, "open where bids are taken, listed where the cards are only shown", "state=open"},
		fieldSimulated:   {"simulated", "sim", kindSwitch, "whether the cards are simulated; only labs have such offers", "simulated=false"},
		fieldEgress:      {"egress", "internet", kindSwitch, "whether jobs reach the internet", "egress=true"},
		fieldBidders:     {"bidders", "", kindWord, "who may bid: anyone, or trusted: owners whose key the rig's owner trusts", "bidders=anyone"},
		fieldContent:     {"content", "", kindWord, "what the rig's owner allows, in its own words", "content!=*mining*"},
		fieldProtections: {"protections", "protection", kindWord, "what stands between a job and the machine and was seen to hold, by name", "protections=user-namespace"},
		fieldWeak:        {"weak", "", kindWord, "what does not hold between a job and the machine, by name", "weak!=seccomp"},
		fieldBrings:      {"brings", "bring", kindSwitch, "whether renters may bring their own image", "brings=true"},
		fieldPay:         {"pay", "payment", kindWord, "how a lease can be paid ahead, by name of a payment program; none where the rig gives credit", "pay in [lab,hand]"},
		fieldPayAuto:     {"pay_auto", "", kindSwitch, "whether a way of paying settles by itself, without a person", "pay_auto=true"},
		fieldOutcomes:    {"outcomes", "", kindCount, "ended leases whose outcome both sides signed, as the rig counts them; 0 where it counts none", "outcomes>=10"},
		fieldSlotsTotal:  {"slots_total", "", kindCount, "slots of the offer, leased ones included", "slots_total>=4"},
		fieldFreeSlots:   {"free_slots", "", kindCount, "free slots of the offer, whatever the other clauses ask", "free_slots>=2"},
		fieldTotalRAM:    {"gpu_total_ram", "total_vram", kindMemory, "memory of all cards of the offer together", "gpu_total_ram>=96"},
		fieldTotalFLOPS:  {"total_flops", "", kindSpeed, "TFLOPS of all cards of the offer together: see tflops", "total_flops>=100"},
		fieldExpires:     {"expires", "", kindTime, "time for which the offer is still valid; rigs renew it", "expires>=1m"},
	}
}

func standingFields() map[fieldID]fieldRow {
	return map[fieldID]fieldRow{
		fieldChecked:        {"checked", "", kindSwitch, "whether you measured a card of it, and what it claimed was so", "checked=true"},
		fieldLeases:         {"leases", "", kindCount, "leases that you had with its owner", "leases>=1"},
		fieldSeen:           {"seen", "seen_since", kindTime, "time since you first saw its owner", "seen>=7d"},
		fieldAge:            {"age", "", kindTime, "time since you last had the owner's word: what the rig said itself is younger than what others keep", "age<=30s"},
		fieldRTT:            {"rtt", "ping", kindDelay, "shortest round trip from you to the rig", "rtt<=40ms"},
		fieldWithinKm:       {"within_km", "distance", kindCount, "distance in km that the round trip does not let the rig exceed: light in fibre does 100 km and back in a millisecond", "within_km<=800"},
		fieldSource:         {"source", "", kindWord, "who told you: owner, snapshot for another's shelf, remembered for your own disk", "source=owner"},
		fieldSources:        {"sources", "", kindCount, "sources that hold the offer", "sources>=2"},
		fieldGivenName:      {"given_name", "my_name", kindWord, "name that you gave the rig or its owner", "given_name=anna*"},
		fieldReached:        {"reached", "", kindWord, "how you reached the rig: direct, punched, relayed or loopback", "reached=direct"},
		fieldAddressCountry: {"address_country", "", kindWord, "country of the public address at which you reached the rig itself, by a table", "address_country=DE"},
		fieldResidency:      {"residency_proof", "residency", kindProof, "what speaks for the rig's country: refuted, claimed, address or round-trip", "residency_proof>=address"},
		fieldKeeps:          {"my_disk", "keeps", kindSwitch, "whether a disk of yours is kept there", "my_disk=true"},
		fieldLink:           {"link", "", kindBits, "bits a second from you to the rig, measured", "link>=50Mbit/s"},
	}
}

func jobFields() map[fieldID]fieldRow {
	return map[fieldID]fieldRow{
		fieldTotal:     {"total", "all_in", kindMoney, "whole price of your job: slots, disk and traffic for its time, in the offer's currency", "total<=5"},
		fieldStartTime: {"start_time", "start", kindTime, "estimated time to the start of your job: what must be sent first, over the link; 0ms where the rig has the image", "start_time<=1m"},
		fieldHasImage:  {"has_image", "cached", kindSwitch, "whether the rig has your job's image", "has_image=true"},
	}
}
