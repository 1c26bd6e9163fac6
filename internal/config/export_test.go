package config

// CleanHost is how a rig gets its name from a machine's.
func CleanHost(host string) string { return cleanHost(host) }

// TableFaults returns what is wrong with the tables: a default that its own knob refuses, or a kind without a place.
func TableFaults() []string {
	return append(faults(agentTable()), faults(rigTable())...)
}

func faults[T any](table []spec[T]) (list []string) {
	var fresh T
	seen := map[string]bool{}
	for _, s := range table {
		if seen[s.Name] {
			list = append(list, s.Name+" is there twice")
		}
		seen[s.Name] = true
		if s.Doc == "" {
			list = append(list, s.Name+" is not explained")
		}
		if literal(s.field(&fresh), s.Kind) == "" {
			list = append(list, s.Name+" cannot be written")
		}
		if s.Default == "" {
			continue
		}
		if err := s.set(&fresh, s.Default); err != nil {
			list = append(list, s.Name+" "+err.Error())
		}
	}
	return list
}

// Claim makes a folder among those of strangers.
func Claim(folder string) error { return claim(folder) }
