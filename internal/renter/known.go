package renter

// KnownOffers returns how many offers the agent knows and holds valid now, without asking anybody.
func (a *Agent) KnownOffers() int { return a.index.Count(a.cfg.Clock()) }
