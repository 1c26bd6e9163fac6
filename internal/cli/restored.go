package cli

// ShowRestored says what a restore has put in place, and where what was there before is now; previous is empty where nothing was.
func (t Terminal) ShowRestored(path, previous string, leases int) {
	t.Show("restored %s: %d leases", path, leases)
	if previous != "" {
		t.Say("what was there before is %s; remove it when nothing of it is missed", previous)
	}
}
