package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"haggle/internal/view"
)

// CopyLine is one line of a copy's answer: progress so far, or how it ended, which is the last line.
type CopyLine struct {
	Progress *view.Progress   `json:"progress,omitempty"`
	Report   *view.CopyReport `json:"report,omitempty"`
	Problem  *view.Problem    `json:"problem,omitempty"`
}

const (
	linesType   = "application/x-ndjson"
	maxCopyLine = 64 << 10
)

type copyOne struct {
	ID   string `path:"id" maxLength:"128" doc:"an id, or enough of its first digits, or a name"`
	Body view.CopyRequest
}

func copyRoute(api huma.API, c Config, a Inside) {
	op := operation(http.MethodPost, "copy", "/v1/leases/{id}/copy", "Copy files between this machine and a job; the end of the request ends it")
	op.Responses["200"] = &huma.Response{
		Description: "Lines of JSON: progress, and at the end the report or a problem",
		Content: map[string]*huma.MediaType{
			linesType: {Schema: api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[CopyLine](), true, "CopyLine")},
		},
	}
	huma.Register(api, op, func(ctx context.Context, in *copyOne) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(h huma.Context) {
			_, w := humago.Unwrap(h)
			c.copyFiles(ctx, w, a, in)
		}}, nil
	})
}

// copyFiles runs a copy. Its answer begins with the first progress, so that one that fails before has its proper status.
func (c Config) copyFiles(ctx context.Context, w http.ResponseWriter, a Inside, in *copyOne) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &lines{w: w}
	report, err := a.Copy(ctx, in.ID, in.Body, func(p view.Progress) {
		if out.send(CopyLine{Progress: &p}) != nil {
			cancel() // the client is gone
		}
	})
	switch {
	case err == nil:
		err = out.send(CopyLine{Report: &report})
	case out.begun:
		words := view.ProblemOf(publicOf(c.problem("copy", err)))
		err = out.send(CopyLine{Problem: &words})
	default:
		var p *problem
		if errors.As(c.problem("copy", err), &p) {
			writeProblem(w, p.status, p.Err())
		}
		err = nil
	}
	if err != nil {
		panic(http.ErrAbortHandler) // an answer without an end must not look whole
	}
}

// publicOf returns the market error of a problem.
func publicOf(err error) error {
	var p *problem
	if errors.As(err, &p) {
		return p.Err()
	}
	return err
}

// lines writes an answer of lines of JSON.
type lines struct {
	w     http.ResponseWriter
	begun bool
}

func (l *lines) send(line CopyLine) error {
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode a line: %w", err)
	}
	if !l.begun {
		l.begun = true
		l.w.Header().Set("Content-Type", linesType)
		l.w.WriteHeader(http.StatusOK)
	}
	if _, err := l.w.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write a line: %w", err)
	}
	return http.NewResponseController(l.w).Flush()
}

// Copy implements Inside.
func (c *AgentClient) Copy(ctx context.Context, id string, r view.CopyRequest, progress func(view.Progress)) (view.CopyReport, error) {
	s, err := c.open(ctx, http.MethodPost, leasePath(id, "/copy"), nil, r)
	if err != nil {
		return view.CopyReport{}, err
	}
	defer s.Close()
	in := bufio.NewScanner(s)
	in.Buffer(make([]byte, 0, 4<<10), maxCopyLine)
	for in.Scan() {
		var line CopyLine
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			return view.CopyReport{}, fmt.Errorf("copy: read the answer: %w", err)
		}
		switch {
		case line.Report != nil:
			return *line.Report, nil
		case line.Problem != nil:
			return view.CopyReport{}, line.Problem.Err()
		case line.Progress != nil && progress != nil:
			progress(*line.Progress)
		}
	}
	if err := in.Err(); err != nil {
		return view.CopyReport{}, err
	}
	return view.CopyReport{}, lost(ctx, io.ErrUnexpectedEOF)
}
