package renter

// KnownOffers returns how many offers the agent knows and holds valid now, without asking anybody.
func (a *Agent) KnownOffers() int {
	offers, _, _ := a.index.live(a.cfg.Clock())
	return len(offers)
}
