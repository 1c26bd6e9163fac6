package view

// PeerSource is one way to find the first peers, and what it gave.
type PeerSource struct {
	Name        string `json:"name" doc:"list, remembered, lan, dns or public"`
	On          bool   `json:"on"`
	Found       int    `json:"found" doc:"peers that it named"`
	Connected   int    `json:"connected" doc:"of these now"`
	AtMs        int64  `json:"at_ms,omitempty" doc:"when it last answered, Unix milliseconds; absent: never"`
	AnnouncedMs int64  `json:"announced_ms,omitempty" doc:"when this program last announced itself there"`
	Reason      string `json:"reason,omitempty" doc:"why it is off or gives nobody"`
}
