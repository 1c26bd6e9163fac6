package nvidia

import "slices"

// ChildPID is the process that answers now, or 0.
func (d *Driver) ChildPID() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.link == nil {
		return 0
	}
	return d.link.pid
}

// Starts is how many children were started so far.
func (d *Driver) Starts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.starts
}

// Denied is the functions that ended a child.
func (d *Driver) Denied() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.denied)
}
