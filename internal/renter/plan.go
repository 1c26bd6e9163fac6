package renter

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// Bounds of what is done inside a lease.
const (
	maxLabels      = 16
	maxLabel       = 64
	maxPorts       = 32
	maxCollects    = 16
	maxTargets     = 4
	maxPath        = 4096
	minEveryMs     = int64(1000)
	workDir        = "/work"
	defaultCkptDir = "/work/ckpt"
	defaultEveryMs = int64(10 * 60 * 1000)
)

// Targets of checkpoints.
const (
	toRenter = "renter"
	toLease  = "lease:"
)

// Inside is what is done inside a lease: what the renter ordered, and how far it is. It holds paths and no contents, and no
// secrets. It changes on its own, beside the record that the link owns.
type Inside struct {
	Name   string   `cbor:"1,keyasint,omitempty"`
	Labels []string `cbor:"2,keyasint,omitempty"`
	Ports  []Port   `cbor:"3,keyasint,omitempty"`

	Src       string `cbor:"4,keyasint,omitempty"` // local folder whose contents go to /work before the start
	Ignore    bool   `cbor:"5,keyasint,omitempty"` // by .gitignore and .haggleignore
	ImageFile string `cbor:"6,keyasint,omitempty"` // local archive of the job's image
	Secrets   bool   `cbor:"7,keyasint,omitempty"` // the job needs secrets, which are kept in memory alone

	Collects    []Collect    `cbor:"8,keyasint,omitempty"`
	Checkpoint  *Checkpoint  `cbor:"9,keyasint,omitempty"`
	Checkpoints []Kept       `cbor:"10,keyasint,omitempty"` // oldest first
	Resumed     *Restoration `cbor:"11,keyasint,omitempty"`

	ImageSent bool          `cbor:"12,keyasint,omitempty"`
	Uploaded  bool          `cbor:"13,keyasint,omitempty"` // all that comes before the start is there
	Failed    *market.Error `cbor:"14,keyasint,omitempty"` // why this side gave the job up
	Asked     []byte        `cbor:"15,keyasint,omitempty"` // an extension that the rig has not answered yet
	Keeps     bool          `cbor:"16,keyasint,omitempty"` // the renter ordered to keep the disk, at least once
}

// Port is a port on which a job listens.
type Port struct {
	Name string `cbor:"1,keyasint,omitempty"`
	Port uint16 `cbor:"2,keyasint"`
}

// Collect is a part of the job's disk that comes home when the job has ended.
type Collect struct {
	Remote string `cbor:"1,keyasint"`
	Local  string `cbor:"2,keyasint"`
	After  uint32 `cbor:"3,keyasint,omitempty"` // the attempt after which it came, counted from 1; 0 is none yet
	Over   bool   `cbor:"4,keyasint,omitempty"` // nothing more is tried
	Error  string `cbor:"5,keyasint,omitempty"`
	Files  int64  `cbor:"6,keyasint,omitempty"`
	Bytes  int64  `cbor:"7,keyasint,omitempty"`
}

// Checkpoint says how checkpoints are kept.
type Checkpoint struct {
	Dir     string   `cbor:"1,keyasint"`
	EveryMs int64    `cbor:"2,keyasint"`
	To      []string `cbor:"3,keyasint"`
}

// Kept is one checkpoint that is kept.
type Kept struct {
	Seq    int64    `cbor:"1,keyasint"`
	AtMs   int64    `cbor:"2,keyasint"`
	Bytes  int64    `cbor:"3,keyasint"`
	Digest string   `cbor:"4,keyasint"` // of the state
	Where  []string `cbor:"5,keyasint"`
}

// Restoration is a checkpoint from which a job begins.
type Restoration struct {
	Lease    market.LeaseID `cbor:"1,keyasint"` // whose checkpoint it is
	Seq      int64          `cbor:"2,keyasint"`
	Dir      string         `cbor:"3,keyasint"` // in the job
	Attempts uint32         `cbor:"4,keyasint"` // of all leases before
}

// nameForm is the form of a lease's name.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// newInside checks what a request wants inside its lease.
func newInside(r view.BidRequest) (Inside, error) {
	in := Inside{
		Name: r.Name, Labels: r.Labels, Src: r.Src, Ignore: r.SrcIgnore, ImageFile: r.ImageFile, Secrets: len(r.Secrets) > 0,
	}
	if err := checkName(r.Name, r.Labels); err != nil {
		return in, err
	}
	for _, p := range r.Ports {
		in.Ports = append(in.Ports, Port(p))
	}
	if err := checkPorts(in.Ports); err != nil {
		return in, err
	}
	for _, local := range []string{r.Src, r.ImageFile} {
		if local != "" && !isLocal(local) {
			return in, badRequest("a local path is not absolute: " + clip(local))
		}
	}
	if len(r.Collect) > maxCollects {
		return in, badRequest(fmt.Sprintf("more than %d folders are to be collected", maxCollects))
	}
	for _, c := range r.Collect {
		if !isRemote(c.Remote) || !isLocal(c.Local) {
			return in, badRequest("a folder to collect needs a path in the job and an absolute local one")
		}
		in.Collects = append(in.Collects, Collect{Remote: c.Remote, Local: c.Local})
	}
	if r.Checkpoint == nil {
		return in, nil
	}
	c, err := newCheckpoint(*r.Checkpoint)
	in.Checkpoint = &c
	return in, err
}

func newCheckpoint(r view.Checkpoint) (Checkpoint, error) {
	c := Checkpoint{Dir: r.Dir, EveryMs: r.EveryMs, To: slices.Clone(r.To)}
	if c.Dir == "" {
		c.Dir = defaultCkptDir
	}
	c.Dir = inJob(c.Dir)
	if c.EveryMs == 0 {
		c.EveryMs = defaultEveryMs
	}
	if len(c.To) == 0 {
		c.To = []string{toRenter}
	}
	switch {
	case !isRemote(c.Dir) || c.Dir == workDir || c.Dir == "/":
		return c, badRequest("checkpoints need a folder of their own in the job")
	case c.EveryMs < minEveryMs:
		return c, badRequest("checkpoints are at least a second apart")
	case len(c.To) > maxTargets:
		return c, badRequest(fmt.Sprintf("checkpoints go to %d places at most", maxTargets))
	}
	for _, to := range c.To {
		if !isTarget(to) {
			return c, badRequest("checkpoints go to renter, to a URL with {seq} in it, or to lease:ID, not to " + clip(to))
		}
	}
	return c, nil
}

// isTarget reports whether checkpoints can go somewhere.
func isTarget(to string) bool {
	if to == toRenter || strings.HasPrefix(to, toLease) && len(to) > len(toLease) && len(to) <= maxLabel+len(toLease) {
		return true
	}
	return isURL(to)
}

func isURL(to string) bool {
	u, err := url.Parse(to)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && len(to) <= maxPath && strings.Contains(to, "{seq}")
}

func checkName(name string, labels []string) error {
	if name != "" && !nameForm.MatchString(name) {
		return market.NewError(market.CodeBadName, "name", clip(name))
	}
	if len(labels) > maxLabels {
		return badRequest(fmt.Sprintf("a lease has %d labels at most", maxLabels))
	}
	for _, l := range labels {
		if l == "" || len(l) > maxLabel || market.Printable(l) != l {
			return badRequest(fmt.Sprintf("a label is text of %d bytes at most", maxLabel))
		}
	}
	return nil
}

func checkPorts(ports []Port) error {
	if len(ports) > maxPorts {
		return badRequest(fmt.Sprintf("a lease has %d ports at most", maxPorts))
	}
	names := map[string]bool{}
	for _, p := range ports {
		if p.Port == 0 || p.Name != "" && (!nameForm.MatchString(p.Name) || names[p.Name]) {
			return badRequest("a port is 1 to 65535, with a name of its own or none")
		}
		names[p.Name] = true
	}
	return nil
}

func isLocal(p string) bool {
	return filepath.IsAbs(p) && len(p) <= maxPath && !strings.ContainsRune(p, 0)
}

func isRemote(p string) bool {
	return p != "" && len(p) <= maxPath && !strings.ContainsRune(p, 0) && !slices.Contains(strings.Split(p, "/"), "..")
}

// inJob returns a path in the job as an absolute one.
func inJob(p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(workDir, p)
}

// far returns a path in the job as its door takes it: what is below /work is relative, for it is elsewhere in labs.
func far(p string) string {
	if rest, below := strings.CutPrefix(p, workDir+"/"); below {
		return "./" + rest
	}
	return p
}

func badRequest(why string) error { return market.NewError(market.CodeBadRequest, "why", why) }

// wants reports whether an inside needs bytes before the start.
func (in Inside) wants() bool { return in.Src != "" || in.ImageFile != "" || in.Resumed != nil }

// owes reports whether something has still to come home, now that the job has ended or was paused after an attempt.
func (in Inside) owes(attempt uint32) bool {
	return slices.ContainsFunc(in.Collects, func(c Collect) bool { return c.owed(attempt) })
}

func (c Collect) owed(attempt uint32) bool { return !c.Over && c.After <= attempt }

// newest returns the newest checkpoint, or one without a number.
func (in Inside) newest() Kept {
	if n := len(in.Checkpoints); n > 0 {
		return in.Checkpoints[n-1]
	}
	return Kept{}
}
