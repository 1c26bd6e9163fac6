// Package e2e holds tests of the whole programs: haggle and haggled as processes, a lab on loopback, real containers. It
// has no code of its own. A test waits for what it sees through the local API, the log files and the exit codes; none of
// them measures how long something takes.
package e2e
