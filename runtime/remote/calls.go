//go:build linux

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"haggle/runtime"
)

// How long the engine may take for a call, however patient the caller is.
const (
	askTimeout   = time.Minute
	workTimeout  = 15 * time.Minute
	readyTimeout = 30 * time.Second // then the client asks again
	orderTimeout = 10 * time.Second // for an order to stop whose caller has gone
)

// request is what a call is asked.
type request struct {
	id     string // of a job, where the path names one
	digest string // of an image, where the path names one
	body   []byte // nil of none
}

// into decodes the body.
func (r request) into(v any) error {
	if r.body == nil {
		return fmt.Errorf("%w: a request without a body", errMalformed)
	}
	return decode(r.body, v)
}

// call is one request that is answered with one JSON value.
type call struct {
	pattern string
	bound   time.Duration
	answer  func(ctx context.Context, r request) (any, error)
}

// none is the answer of a call that has nothing to say.
type none struct{}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	rt := s.cfg.Runtime
	for _, c := range []call{
		{"GET " + pathImages, askTimeout, func(ctx context.Context, _ request) (any, error) { return rt.Images(ctx) }},
		{"DELETE " + pathImage, workTimeout, func(ctx context.Context, r request) (any, error) { return none{}, rt.RemoveImage(ctx, r.digest) }},
		{"GET " + pathJobs, askTimeout, func(ctx context.Context, _ request) (any, error) { return rt.List(ctx) }},
		{"POST " + pathJobs, workTimeout, s.create},
		{"GET " + pathJob, askTimeout, func(ctx context.Context, r request) (any, error) { return rt.Status(ctx, r.id) }},
		{"DELETE " + pathJob, workTimeout, func(ctx context.Context, r request) (any, error) { return none{}, rt.Remove(ctx, r.id) }},
		{"GET " + pathUsage, askTimeout, func(ctx context.Context, r request) (any, error) { return rt.Usage(ctx, r.id) }},
		{"POST " + pathStart, workTimeout, func(ctx context.Context, r request) (any, error) { return none{}, rt.Start(ctx, r.id) }},
		{"POST " + pathKill, workTimeout, func(ctx context.Context, r request) (any, error) { return none{}, rt.Kill(ctx, r.id) }},
		{"POST " + pathStop, maxGrace + workTimeout, s.stop},
		{"GET " + pathSweep, workTimeout, s.candidates},
		{"POST " + pathSweep, workTimeout, s.sweep},
		{"GET " + pathCapabilities, askTimeout, func(ctx context.Context, _ request) (any, error) { return rt.Probe(ctx) }},
		{"GET " + pathReady, readyTimeout, func(ctx context.Context, _ request) (any, error) { return none{}, s.cfg.Ready(ctx) }},
		{"POST " + pathPower, askTimeout, s.power},
	} {
		mux.HandleFunc(c.pattern, s.serve(c))
	}
	mux.HandleFunc("PUT "+pathImages, s.importImage)
	mux.HandleFunc("GET "+pathLog, s.log)
	mux.HandleFunc("GET "+pathWatch, s.watch)
	mux.HandleFunc("POST "+pathEnter, s.enter)
	return mux
}

// serve makes a handler of a call: it waits for its turn, ends with its bound and with its caller, and answers once.
func (s *Server) serve(c call) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), c.bound)
		defer cancel()
		// The request is read before its turn: while it comes, nobody notices that the caller has gone.
		asked, err := read(w, r)
		var answer any
		if err == nil {
			answer, err = s.inTurn(ctx, func() (any, error) { return c.answer(ctx, asked) })
		}
		s.reply(w, r, answer, err)
	}
}

// inTurn does something when fewer than the bound are at work.
func (s *Server) inTurn(ctx context.Context, do func() (any, error)) (any, error) {
	select {
	case s.calls <- struct{}{}:
		defer func() { <-s.calls }()
		return do()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// reply writes an answer, or an apology.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, answer any, err error) {
	status := http.StatusOK
	if err != nil {
		a := apologize(err)
		answer, status = a, a.status()
	}
	data, err := json.Marshal(answer)
	if err != nil {
		s.cfg.Log.Error("answer cannot be written", "path", r.URL.Path, "err", err)
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // who does not wait for the answer has gone
}

func (s *Server) create(ctx context.Context, r request) (any, error) {
	var ask createRequest
	if err := r.into(&ask); err != nil {
		return nil, err
	}
	spec := ask.unpack()
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if !s.cfg.without(ProtectJobs) {
		list := func() ([]runtime.Status, error) { return s.cfg.Runtime.List(ctx) }
		if err := s.making.begin(spec.ID, list, s.cfg.Limits.Jobs); err != nil {
			return nil, err
		}
		defer s.making.end(spec.ID)
	}
	return none{}, s.cfg.Runtime.Create(ctx, spec)
}

// stop carries an order out even if its caller does not wait for it: a daemon that dies after it has told a job to end must not
// leave the job running beyond its grace.
func (s *Server) stop(ctx context.Context, r request) (any, error) {
	var ask stopRequest
	if err := r.into(&ask); err != nil {
		return nil, err
	}
	grace := time.Duration(ask.GraceNanos)
	if grace < 0 || grace > maxGrace {
		return nil, fmt.Errorf("stop job %s: a grace of %s: %w", r.id, grace, os.ErrInvalid)
	}
	order, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	// The engine owns the order from the moment that it has taken it, and forgets none when our wait ends.
	gone := context.AfterFunc(ctx, func() {
		late := time.NewTimer(orderTimeout)
		defer late.Stop()
		select {
		case <-late.C:
		case <-order.Done():
		case <-s.ended:
		}
		cancel()
	})
	defer gone()
	return none{}, s.cfg.Runtime.Stop(order, r.id, grace)
}

// candidates asks the engine of what it would ask whether to keep it. Only what has no id of a job goes already now.
func (s *Server) candidates(ctx context.Context, _ request) (any, error) {
	var answer sweepAnswer
	seen := map[string]bool{}
	report, err := s.cfg.Runtime.Sweep(ctx, func(id string) bool {
		if !seen[id] && len(answer.IDs) < maxSweep {
			seen[id] = true
			answer.IDs = append(answer.IDs, id)
		}
		return true
	})
	answer.Report, answer.Error = report, apologize(err)
	return answer, nil
}

func (s *Server) sweep(ctx context.Context, r request) (any, error) {
	var ask sweepRequest
	if err := r.into(&ask); err != nil {
		return nil, err
	}
	slices.Sort(ask.Remove)
	report, err := s.cfg.Runtime.Sweep(ctx, func(id string) bool {
		_, remove := slices.BinarySearch(ask.Remove, id)
		return !remove
	})
	return sweepAnswer{Report: report, Error: apologize(err)}, nil
}

func (s *Server) power(ctx context.Context, r request) (any, error) {
	var ask powerRequest
	if err := r.into(&ask); err != nil {
		return nil, err
	}
	switch {
	case !deviceUUID.MatchString(ask.UUID) || ask.Milliwatt < 0:
		return nil, fmt.Errorf("power limit of card %.80q: %d mW: %w", ask.UUID, ask.Milliwatt, os.ErrInvalid)
	case s.cfg.Power == nil:
		return nil, fmt.Errorf("power limit of card %s: no driver that could set it: %w", ask.UUID, runtime.ErrUnsupported)
	}
	now, err := s.cfg.Power.SetPowerLimit(ctx, ask.UUID, ask.Milliwatt)
	return powerAnswer{Now: now}, err
}

// read takes in what a call is asked, the whole body within its time, so that from then on the connection can be watched for
// its end.
func read(w http.ResponseWriter, r *http.Request) (request, error) {
	id, err := jobID(r)
	asked := request{id: id, digest: r.PathValue("digest")}
	if strings.Contains(r.Pattern, "{digest}") && !runtime.ValidDigest(asked.digest) {
		err = fmt.Errorf("image %.80q: its digest: %w", asked.digest, os.ErrInvalid)
	}
	if err != nil || r.Body == http.NoBody {
		return asked, err
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil {
		return request{}, err
	}
	asked.body, err = readAll(r.Body, maxRequest)
	return asked, errors.Join(err, control.SetReadDeadline(time.Time{}))
}

// jobID returns the id that a path names, or "" where it names none.
func jobID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if strings.Contains(r.Pattern, "{id}") && runtime.ValidateID(id) != nil {
		return "", fmt.Errorf("job %.80q: %w", id, runtime.ErrNotFound)
	}
	return id, nil
}
