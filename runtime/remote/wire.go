//go:build linux

package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"haggle/runtime"
)

// Paths of the protocol. {id} is a job's, {digest} an image's.
const (
	pathImages       = "/v1/images"
	pathImage        = "/v1/images/{digest}"
	pathJobs         = "/v1/jobs"
	pathJob          = "/v1/jobs/{id}"
	pathStart        = "/v1/jobs/{id}/start"
	pathStop         = "/v1/jobs/{id}/stop"
	pathKill         = "/v1/jobs/{id}/kill"
	pathUsage        = "/v1/jobs/{id}/usage"
	pathLog          = "/v1/jobs/{id}/log"
	pathEnter        = "/v1/jobs/{id}/enter"
	pathWatch        = "/v1/watch"
	pathSweep        = "/v1/sweep"
	pathCapabilities = "/v1/capabilities"
	pathReady        = "/v1/ready"
	pathPower        = "/v1/power"
)

// Bounds of one message and of what it waits for.
const (
	maxHeader   = 16 << 10
	maxRequest  = 8 << 20  // a spec with all its arguments and secrets takes less
	maxAnswer   = 32 << 20 // a list of all jobs with all their labels takes less
	maxEvent    = 64 << 10
	maxMessage  = 2 << 10 // of an error
	maxGrace    = 24 * time.Hour
	maxSweep    = 100_000 // ids
	bodyTimeout = 10 * time.Second
)

// errorTrailer ends a stream that could not be read to its end: an apology as JSON.
const errorTrailer = "Haggle-Error"

// createRequest is a runtime.Spec. Its arguments and its environment may hold any byte, which a text in JSON may not, and its
// secrets are left out of its JSON.
type createRequest struct {
	Spec    runtime.Spec
	Args    [][]byte          `json:",omitempty"`
	Env     [][]byte          `json:",omitempty"`
	Secrets map[string][]byte `json:",omitempty"`
}

func packSpec(s runtime.Spec) createRequest {
	r := createRequest{Args: toBytes(s.Args), Env: toBytes(s.Env), Secrets: s.Secrets}
	s.Args, s.Env, s.Secrets = nil, nil, nil
	r.Spec = s
	return r
}

func (r createRequest) unpack() runtime.Spec {
	s := r.Spec
	s.Args, s.Env, s.Secrets = toStrings(r.Args), toStrings(r.Env), r.Secrets
	return s
}

func toBytes(list []string) [][]byte {
	var out [][]byte
	for _, s := range list {
		out = append(out, []byte(s))
	}
	return out
}

func toStrings(list [][]byte) []string {
	var out []string
	for _, b := range list {
		out = append(out, string(b))
	}
	return out
}

// stopRequest orders the end of a job.
type stopRequest struct {
	GraceNanos int64
}

// sweepRequest names what goes. A sweep is two requests, since keep is a function: the first removes nothing and returns all
// ids that the engine has something of.
type sweepRequest struct {
	Remove []string
}

// sweepAnswer is what a sweep did, as far as it came.
type sweepAnswer struct {
	IDs    []string `json:",omitempty"`
	Report runtime.SweepReport
	Error  *apology `json:",omitempty"`
}

// powerRequest bounds the power of a card.
type powerRequest struct {
	UUID      string
	Milliwatt int64
}

type powerAnswer struct {
	Now int64
}

// watchLine is one line of a watch: an event, or nothing, which says that the helper is alive.
type watchLine struct {
	Event *runtime.Event `json:",omitempty"`
}

// imageName is what an image may be called. It is never written to.
var imageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}$`)

// deviceUUID is what a card may be called. It is never written to.
var deviceUUID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// errMalformed means that a message is not in the form of this protocol: the two programs are of different versions.
var errMalformed = errors.New("the helper and the daemon do not speak the same version")

// readAll reads a message of at most limit bytes.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%w: a message of more than %d bytes", errMalformed, limit)
	}
	return data, err
}

// decode reads one JSON value that holds no field which we do not know, and nothing behind it.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows the message", errMalformed)
	}
	return nil
}
