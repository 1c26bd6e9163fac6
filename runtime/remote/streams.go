//go:build linux

package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"haggle/runtime"
)

// Times of streams.
const (
	importRest = 10 * time.Second // for the rest of an archive that was refused
	heartbeat  = 5 * time.Second  // of a watch
	silence    = 30 * time.Second // of a watch, until its client takes the helper for dead
)

// take takes a place without waiting for one.
func take(places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	default:
		return nil, fmt.Errorf("%d such streams are open, and no more: %w", cap(places), runtime.ErrUnavailable)
	}
}

// log copies a log as it grows. An error after the first byte comes in the trailer.
func (s *Server) log(w http.ResponseWriter, r *http.Request) {
	log, leave, err := s.openLog(r)
	if err != nil {
		s.reply(w, r, nil, err)
		return
	}
	defer leave()
	defer log.Close()
	w.Header().Set("Trailer", errorTrailer)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	buf := make([]byte, 64<<10)
	for err = control.Flush(); err == nil; {
		var n int
		n, err = log.Read(buf)
		if _, gone := w.Write(buf[:n]); gone != nil {
			return
		}
		if gone := control.Flush(); gone != nil {
			return
		}
	}
	if errors.Is(err, io.EOF) {
		return
	}
	if data, err := json.Marshal(apologize(err)); err == nil {
		w.Header().Set(errorTrailer, string(data))
	}
}

func (s *Server) openLog(r *http.Request) (io.ReadCloser, func(), error) {
	id, err := jobID(r)
	if err != nil {
		return nil, nil, err
	}
	ask := r.URL.Query()
	offset, err := strconv.ParseInt(ask.Get("offset"), 10, 64)
	if err != nil {
		return nil, nil, fmt.Errorf("log of job %s: offset %.40q: %w", id, ask.Get("offset"), os.ErrInvalid)
	}
	leave, err := take(s.streams)
	if err != nil {
		return nil, nil, fmt.Errorf("log of job %s: %w", id, err)
	}
	log, err := s.cfg.Runtime.Log(r.Context(), id, offset, ask.Get("follow") == "true")
	if err != nil {
		leave()
		return nil, nil, err
	}
	return log, leave, nil
}

// watch writes a line for each event, and one without an event while there is none.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	leave, err := take(s.watches)
	if err != nil {
		s.reply(w, r, nil, err)
		return
	}
	defer leave()
	events, err := s.cfg.Runtime.Watch(r.Context())
	if err != nil {
		s.reply(w, r, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	lines := json.NewEncoder(w)
	alive := time.NewTicker(heartbeat)
	defer alive.Stop()
	for err = control.Flush(); err == nil; err = control.Flush() {
		var line watchLine
		select {
		case e, open := <-events:
			if !open {
				return
			}
			line.Event = &e
		case <-alive.C:
		}
		if lines.Encode(line) != nil {
			return
		}
	}
}

// importImage gives the engine an archive as it comes, within what all images may take.
func (s *Server) importImage(w http.ResponseWriter, r *http.Request) {
	image, err := s.takeImage(w, r)
	if err == nil {
		s.reply(w, r, image, nil)
		return
	}
	// The client may still be sending. It reads the answer only if the connection stays whole meanwhile.
	// And it is used no more: a deadline that passed in mid-read ends the context of all later requests on it.
	w.Header().Set("Connection", "close")
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // where that fails the client learns that the helper is away, and tries again
	s.reply(w, r, nil, err)
	_ = control.Flush()
	_ = control.SetReadDeadline(time.Now().Add(importRest))
	_, _ = io.Copy(io.Discard, r.Body) // its end, whatever it is, is the end
}

func (s *Server) takeImage(w http.ResponseWriter, r *http.Request) (runtime.Image, error) {
	name := r.URL.Query().Get("name")
	if !imageName.MatchString(name) {
		return runtime.Image{}, fmt.Errorf("import image %.80q: its name: %w", name, os.ErrInvalid)
	}
	select {
	case s.imports <- struct{}{}:
		defer func() { <-s.imports }()
	case <-r.Context().Done():
		return runtime.Image{}, r.Context().Err()
	}
	archive := &bounded{from: r.Body, left: s.cfg.Limits.ImageBytes, over: runtime.ErrImageTooBig, idle: s.cfg.Limits.ImageIdle, control: http.NewResponseController(w)}
	if s.cfg.without(ProtectImages) {
		archive.left = 1 << 62
	} else if err := s.roomFor(r, name, archive); err != nil {
		return runtime.Image{}, fmt.Errorf("import image %s: %w", name, err)
	}
	image, err := s.cfg.Runtime.Import(r.Context(), name, archive)
	if archive.refused { // whatever the engine made of an archive that ended early
		return runtime.Image{}, fmt.Errorf("import image %s: it is larger than what is left for it: %w", name, archive.over)
	}
	return image, err
}

// roomFor bounds an archive by what the images of the engine leave.
func (s *Server) roomFor(r *http.Request, name string, archive *bounded) error {
	list, err := s.cfg.Runtime.Images(r.Context())
	if err != nil {
		return err
	}
	left := s.cfg.Limits.ImagesBytes
	for _, i := range list {
		if i.Name != name { // that one gives its room up
			left -= i.Size
		}
	}
	known := slices.ContainsFunc(list, func(i runtime.Image) bool { return i.Name == name })
	if !known && len(list) >= s.cfg.Limits.Images {
		return fmt.Errorf("%d images are kept here, and no more: %w", len(list), runtime.ErrNoRoom)
	}
	if left < archive.left {
		archive.left, archive.over = max(0, left), runtime.ErrNoRoom
	}
	return nil
}

// bounded reads an archive up to a size, and no slower than one read a minute.
type bounded struct {
	from    io.Reader
	left    int64
	over    error
	refused bool
	idle    time.Duration
	control *http.ResponseController
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if err := b.control.SetReadDeadline(time.Now().Add(b.idle)); err != nil {
		return 0, err
	}
	// Unpacking takes as long as it takes, and the server listens meanwhile for a client that goes.
	defer func() { _ = b.control.SetReadDeadline(time.Time{}) }()
	// One byte more than allowed tells an archive that fits exactly from one that does not.
	n, err := b.from.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		b.refused = true
		return 0, b.over
	}
	return n, err
}
