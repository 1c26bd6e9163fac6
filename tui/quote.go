package tui

import (
	"haggle/internal/view"
	"haggle/market"
)

// pricedDiskMB is the disk that an agent orders at most where disk costs money.
const pricedDiskMB = 10_000

// priceJob prices a number of cards with their disk for a time of milliseconds, line by line. Traffic cannot be known
// before. The details of the offer must be known for the disk's line.
func priceJob(o view.Offer, cards int, ms int64) (market.Bill, error) {
	p := market.Prices{
		Currency: o.Price.Currency, Slot: market.Rate(o.Price.Micro), Disk: market.Rate(o.DiskPrice.Micro),
		In: market.Rate(o.InPrice.Micro), Out: market.Rate(o.OutPrice.Micro),
	}
	return p.Bill(market.UsageAt(ms, cards, diskOf(o, cards), 0, 0))
}

// diskOf returns the disk in MB that comes with a number of cards.
func diskOf(o view.Offer, cards int) int64 {
	share := market.Offer{Host: o.Host, Slots: o.SlotDetail}.Share(cards).DiskMB
	if o.DiskPrice.Micro > 0 {
		return min(share, pricedDiskMB)
	}
	return share
}
