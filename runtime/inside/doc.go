// Package inside is what can be tried from inside a job: a quick check of the walls that every rig runs at start, and the
// attacks that the hostile suite runs; and what waits in a container that has no job yet. It needs no cgo and imports nothing that is not there on a bare Linux, so that a
// program around it runs in an empty image.
//
// Whatever it tries is bounded by itself. Where a wall is missing, an attack proves it and stops: it opens a file for writing
// and writes nothing, sets the clock to what it is, and ends every bomb after a stated size.
package inside

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Result is the outcome of one attempt, and one line of what Main prints.
type Result struct {
	// Name is the protection that was checked, or the attack as it was ordered, arguments included.
	Name string `json:"name"`
	// Holds is true when the wall held.
	Holds bool `json:"holds"`
	// Found is what was seen, in a sentence.
	Found string `json:"found"`
	// Count is how far the attempt came, where that is a number: processes made, mebibytes written, ports that answered.
	Count int64 `json:"count,omitempty"`
}

// Main runs "check", "attack" or "wait" with what follows and returns the exit code: 0 when all that was asked for could be tried, 1
// when something could not, 2 when args make no sense. What was found out is in the lines on out, one JSON object each, see
// Result; the code does not tell.
//
//	check  [--lan HOST:PORT]… [--rig HOST:PORT]… [--device PATH]… [--pids N]
//	attack NAME[=ARG,ARG…]…
//	wait   DIR
//
// check takes less than 2 seconds. It sends packets only to the addresses that it is given and to the metadata address.
// --device names a node that the job may open. It makes up to N processes, 300 by default, and must be refused before, so
// that it has to run in a job of fewer. Of several attacks each runs in a process of its own. wait is no attempt: it is the first
// process of a container whose job is not known yet, and becomes the job's, see runtime/containerd.
func Main(args []string, out io.Writer) int {
	if len(args) == 0 {
		return usage(out)
	}
	switch args[0] {
	case "check":
		o, err := parseCheck(args[1:])
		if err != nil {
			fmt.Fprintln(out, err)
			return 2
		}
		return check(o, out)
	case "wait":
		if len(args) != 2 {
			return usage(out)
		}
		return wait(args[1])
	case "attack":
		if len(args) < 2 {
			return usage(out)
		}
		return attack(args[1:], out)
	}
	return usage(out)
}

func usage(out io.Writer) int {
	fmt.Fprintln(out, "usage: check [--lan HOST:PORT] [--rig HOST:PORT] [--device PATH] [--pids N] | attack NAME[=ARG,ARG]... | wait DIR")
	return 2
}

// checkOptions are what a check is told.
type checkOptions struct {
	lan, rig, devices []string
	pids              int64
}

func parseCheck(args []string) (checkOptions, error) {
	o := checkOptions{pids: 300}
	for len(args) > 0 {
		flag, value, ok := strings.Cut(args[0], "=")
		args = args[1:]
		if !ok {
			if len(args) == 0 {
				return o, fmt.Errorf("%s needs a value", flag)
			}
			value, args = args[0], args[1:]
		}
		switch flag {
		case "--lan":
			o.lan = append(o.lan, value)
		case "--rig":
			o.rig = append(o.rig, value)
		case "--device":
			o.devices = append(o.devices, value)
		case "--pids":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil || n < 1 || n > 6000 {
				return o, fmt.Errorf("--pids %q is not in 1..6000", value)
			}
			o.pids = n
		default:
			return o, fmt.Errorf("unknown flag %q", flag)
		}
	}
	return o, nil
}

// tell prints one result as a line, in one write.
func tell(out io.Writer, r Result) {
	b, err := json.Marshal(r)
	if err != nil { // of a struct of strings: cannot be
		return
	}
	_, _ = out.Write(append(b, '\n'))
}
