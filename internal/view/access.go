package view

// Blocked is somebody who may neither call nor be called. One of Key, Owner and Net is set.
type Blocked struct {
	Key   string `json:"key,omitempty" doc:"of a program"`
	Owner string `json:"owner_key,omitempty" doc:"of an owner: every program of it is meant"`
	Net   string `json:"net,omitempty" doc:"a network"`
	Why   string `json:"why,omitempty"`
	By    string `json:"by" doc:"config, user, or score: what it did"`
	Until *int64 `json:"until_ms,omitempty" doc:"Unix milliseconds; absent: until it is lifted"`
}

// BlockRequest blocks a program's key.
type BlockRequest struct {
	ForMs int64  `json:"for_ms,omitempty" minimum:"0" maximum:"31622400000" doc:"milliseconds; 0: until it is lifted"`
	Why   string `json:"why,omitempty" maxLength:"200" doc:"for the list"`
}
