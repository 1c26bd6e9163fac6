package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"haggle/internal/view"
)

// Version is what GET /v1/version answers.
type Version struct {
	Program string `json:"program" doc:"haggle for an agent, haggled for a rig"`
	Version string `json:"version"`
}

// operation describes one operation. Every error of it is a problem document.
func operation(method, id, path, summary string) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary,
		MaxBodyBytes:    maxBody + 1, // bodyReader has bounded it already
		BodyReadTimeout: -1,          // by bodyReader, which also lifts it again
		Responses: map[string]*huma.Response{"default": {
			Description: "A problem",
			Content:     map[string]*huma.MediaType{problemType: {Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}}},
		}},
	}
}

// read registers an operation that only reads.
func read[I, O any](api huma.API, c Config, id, path, summary string, do func(context.Context, *I) (O, error)) {
	answerTo(api, c, http.MethodGet, id, path, summary, do)
}

// answerTo registers an operation with an answer.
func answerTo[I, O any](api huma.API, c Config, method, id, path, summary string, do func(context.Context, *I) (O, error)) {
	huma.Register(api, operation(method, id, path, summary), func(ctx context.Context, in *I) (*answer[O], error) {
		out, err := do(ctx, in)
		if err != nil {
			return nil, c.problem(id, err)
		}
		return &answer[O]{out}, nil
	})
}

// answerBytes registers an operation whose answer is what somebody signed.
func answerBytes[I any](api huma.API, c Config, method, id, path, summary string, do func(context.Context, *I) ([]byte, error)) {
	huma.Register(api, operation(method, id, path, summary), func(ctx context.Context, in *I) (*bytesOut, error) {
		data, err := do(ctx, in)
		if err != nil {
			return nil, c.problem(id, err)
		}
		return &bytesOut{"application/octet-stream", data}, nil
	})
}

// act registers an operation that answers 204.
func act[I any](api huma.API, c Config, method, id, path, summary string, do func(context.Context, *I) error) {
	huma.Register(api, operation(method, id, path, summary), func(ctx context.Context, in *I) (*struct{}, error) {
		if err := do(ctx, in); err != nil {
			return nil, c.problem(id, err)
		}
		return nil, nil
	})
}

// describe returns an API on a mux, without operations yet. Nothing but JSON is spoken.
func describe(mux *http.ServeMux, c Config, program string) huma.API {
	components := &huma.Components{Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)}
	api := humago.New(mux, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0", Components: components,
			Info: &huma.Info{Title: program + " local API", Version: c.Version},
		},
		OpenAPIPath:   "/v1/openapi",
		Formats:       map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{wordProblem},
	})
	components.Schemas.Schema(reflect.TypeFor[view.Problem](), true, "Problem")
	read(api, c, "get-version", "/v1/version", "Which program answers", func(context.Context, *struct{}) (Version, error) {
		return Version{Program: program, Version: c.Version}, nil
	})
	return api
}

// forget takes the schemas of errors that we never send out of the description.
func forget(api huma.API) {
	for _, name := range []string{"ErrorModel", "ErrorDetail"} {
		delete(api.OpenAPI().Components.Schemas.Map(), name)
	}
}
