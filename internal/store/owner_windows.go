package store

// handOver does nothing: on Windows the folder decides.
func handOver(string, ...string) error { return nil }
