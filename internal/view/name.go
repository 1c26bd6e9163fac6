package view

// GivenName is what this machine's user calls somebody. It is never told to anybody.
type GivenName struct {
	Name string `json:"name"`
	Key  string `json:"key" doc:"of an owner or a rig"`
	// Calls is what a rig with the key calls itself, where one is known.
	Calls string `json:"calls_itself,omitempty"`
	Owner bool   `json:"owner" doc:"rigs of this owner are known that have other keys"`
}

// GiveNameRequest names an owner or a rig.
type GiveNameRequest struct {
	Name string `json:"name" maxLength:"64" doc:"letters, digits, dots, dashes and underscores; empty takes the name back"`
}

// Named is a name as people see it: the one that they gave first, beside the one that the other gave itself.
func Named(given, own string) string {
	switch {
	case given == "" || given == own:
		return own
	case own == "":
		return given
	}
	return given + " (calls itself " + own + ")"
}
