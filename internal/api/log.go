package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"haggle/internal/view"
)

// problemTrailer carries the problem document of a log that broke off in mid-stream.
const problemTrailer = "Haggle-Problem"

type readLog struct {
	ID     string `path:"id" maxLength:"128" doc:"an id, or enough of its first digits"`
	Offset int64  `query:"offset" minimum:"0" doc:"in bytes; 0 or the end of a record"`
	Follow bool   `query:"follow" doc:"wait for more until the log ends"`
}

func logRoute(api huma.API, c Config, a Agent) {
	op := operation(http.MethodGet, "read-log", "/v1/leases/{id}/log", "A lease's log as it is written: records of a stream's number, three zero bytes, a length and the output")
	op.Responses["200"] = &huma.Response{
		Description: "The log; the trailer " + problemTrailer + " says why it broke off, if it did",
		Content:     map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
	}
	huma.Register(api, op, func(ctx context.Context, in *readLog) (*huma.StreamResponse, error) {
		log, err := a.Log(ctx, in.ID, in.Offset, in.Follow)
		if err != nil {
			return nil, c.problem(op.OperationID, err)
		}
		return &huma.StreamResponse{Body: func(h huma.Context) {
			defer log.Close()
			_, w := humago.Unwrap(h)
			c.copyLog(ctx, w, log)
		}}, nil
	})
}

// copyLog sends a log as it comes. A log that does not end as it should never looks whole to the client.
func (c Config) copyLog(ctx context.Context, w http.ResponseWriter, log io.ReadCloser) {
	stop := context.AfterFunc(ctx, func() { _ = log.Close() })
	defer stop()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Trailer", problemTrailer)
	w.WriteHeader(http.StatusOK)
	door := http.NewResponseController(w)
	flushed := door.Flush()
	buf := make([]byte, 64<<10)
	for flushed == nil {
		n, err := log.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				panic(http.ErrAbortHandler) // the client is gone
			}
			flushed = door.Flush()
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil && ctx.Err() != nil:
			panic(http.ErrAbortHandler) // the client or this program goes away
		case err != nil:
			var p *problem
			if errors.As(c.problem("read-log", err), &p) {
				w.Header().Set(problemTrailer, trailer(p.Problem))
			}
			return
		}
	}
	panic(http.ErrAbortHandler)
}

// trailer writes a problem on one line of printable ASCII, as headers want it.
func trailer(p view.Problem) string {
	p.Message, p.Hint = "", "" // the client words it again
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings only
	}
	ascii := make([]byte, 0, len(text))
	for _, b := range string(text) {
		if b >= 0x20 && b < 0x7f {
			ascii = append(ascii, byte(b))
		}
	}
	return string(ascii)
}
