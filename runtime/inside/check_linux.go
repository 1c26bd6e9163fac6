package inside

import (
	"encoding/json"
	"io"
	"strconv"
	"sync"
)

// metadata is where clouds answer questions about a machine, passwords included.
const metadata = "169.254.169.254:80"

// wall is one protection and how it is tried.
type wall struct {
	name string
	try  func() verdict
}

// check tries every wall once, all at the same time, and tells in a fixed order.
func check(o checkOptions, out io.Writer) int {
	checks := []wall{
		{"user-namespace", mappedRoot},
		{"seccomp", seccomp},
		{"capabilities", capabilities},
		{"no-new-privileges", noNewPrivileges},
		{"mknod", func() verdict { return mknod(nil) }},
		{"mount", mounts},
		{"masked-paths", maskedPaths},
		{"write-proc", writeProc},
		{"device-open", func() verdict { return devices(o.devices) }},
		{"raw-socket", rawSockets},
		{"metadata", func() verdict { return reach("tcp", []string{metadata}) }},
		{"ipv6", ipv6},
		{"ptrace-outside", ownProcesses},
		{"keyctl", keys},
		{"bpf", bpf},
	}
	if len(o.lan) > 0 {
		checks = append(checks, wall{"lan", func() verdict { return reach("tcp", o.lan) }})
	}
	if len(o.rig) > 0 {
		checks = append(checks, wall{"rig", func() verdict { return reach("tcp", o.rig) }})
	}
	verdicts := make([]verdict, len(checks))
	var all sync.WaitGroup
	for i, c := range checks {
		all.Go(func() { verdicts[i] = c.try() })
	}
	all.Wait()
	checks = append(checks, wall{"pids-bounded", nil})
	verdicts = append(verdicts, pidsBounded(o.pids)) // alone, for nobody gets a thread meanwhile
	for i, c := range checks {
		v := verdicts[i]
		tell(out, Result{Name: c.name, Holds: v.holds, Found: v.found, Count: v.count})
	}
	return 0
}

// pidsBounded makes processes until it is refused, fewer than most. A child does it, which may die of it.
func pidsBounded(most int64) verdict {
	answer, err := again("attack", "fork-bomb="+strconv.FormatInt(most, 10)).Output()
	if err != nil {
		return broke("it could not be tried: %v", err)
	}
	var r Result
	if err := json.Unmarshal(answer, &r); err != nil {
		return broke("it could not be tried: %v", err)
	}
	return verdict{r.Holds, r.Found, r.Count}
}
