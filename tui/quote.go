package tui

import (
	"haggle/internal/view"
	"haggle/market"
)

// priceJob prices a number of cards with a disk of so many MB, 0 for what comes with them, for a time of milliseconds, line by
// line. Traffic cannot be known before. The details of the offer must be known for the disk's line where it is 0.
func priceJob(o view.Offer, cards int, diskMB, ms int64) (market.Bill, error) {
	p := market.Prices{
		Currency: o.Price.Currency, Slot: market.Rate(o.Price.Micro), Disk: market.Rate(o.DiskPrice.Micro),
		In: market.Rate(o.InPrice.Micro), Out: market.Rate(o.OutPrice.Micro),
	}
	return p.Bill(market.UsageAt(ms, cards, diskOf(o, cards, diskMB), 0, 0))
}

// diskOf returns the disk in MB that a number of cards is granted where a bid asks for so much, or for none: 0.
func diskOf(o view.Offer, cards int, asked int64) int64 {
	return market.Offer{Host: o.Host, Slots: o.SlotDetail}.DiskMB(cards, asked)
}
