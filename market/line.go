package market

// Line is one line of a bill, for people.
type Line struct {
	What     string // slots, disk, traffic in, traffic out
	Quantity string // a decimal, rounded down, and its unit
	Rate     Rate   // for one of that unit
	Amount   Micro
}

// Lines returns the lines of a bill that were used or cost something.
func (p Prices) Lines(u Usage) ([]Line, error) {
	bill, err := p.Bill(u)
	if err != nil {
		return nil, err
	}
	var list []Line
	for _, l := range []struct {
		line         Line
		have, one    int64
		name, single string
	}{
		{Line{What: "slots", Rate: p.Slot, Amount: bill.Slot}, u.SlotMs, msPerHour, "slot-hours", "slot-hour"},
		{Line{What: "disk", Rate: p.Disk, Amount: bill.Disk}, u.DiskMBMs, mbMsPerGBH, "GB-hours", "GB-hour"},
		{Line{What: "traffic in", Rate: p.In, Amount: bill.In}, u.InBytes, bytesPerGB, "GB", "GB"},
		{Line{What: "traffic out", Rate: p.Out, Amount: bill.Out}, u.OutBytes, bytesPerGB, "GB", "GB"},
	} {
		if l.line.What != "slots" && l.line.Rate == 0 {
			continue // free, and nobody looks for it on a bill
		}
		quantity, err := price(1_000_000, l.have, l.one)
		if err != nil {
			return nil, err
		}
		unit := l.name
		if quantity == 1_000_000 {
			unit = l.single
		}
		l.line.Quantity = quantity.String() + " " + unit
		list = append(list, l.line)
	}
	return list, nil
}
