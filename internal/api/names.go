package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"haggle/internal/view"
)

// Names is what an agent's user calls owners and rigs.
type Names interface {
	// GivenNames lists them by name.
	GivenNames(ctx context.Context) ([]view.GivenName, error)
	// GiveName names who is meant by a key, a name given before, or what a rig calls itself. An empty name takes the name back.
	GiveName(ctx context.Context, who, name string) (view.GivenName, error)
}

type nameWho struct {
	Who  string `path:"who" maxLength:"128" doc:"a key, a name given before, or what a rig calls itself"`
	Body view.GiveNameRequest
}

// nameRoutes registers what is about names that the user gives.
func nameRoutes(api huma.API, c Config, a Names) {
	read(api, c, "list-names", "/v1/names", "Names that the user gave", func(ctx context.Context, _ *struct{}) ([]view.GivenName, error) {
		list, err := a.GivenNames(ctx)
		return some(list), err
	})
	answerTo(api, c, http.MethodPut, "give-name", "/v1/names/{who}", "Name an owner or a rig, or take the name back", func(ctx context.Context, in *nameWho) (view.GivenName, error) {
		return a.GiveName(ctx, in.Who, in.Body.Name)
	})
}

// GivenNames implements Names.
func (c *AgentClient) GivenNames(ctx context.Context) ([]view.GivenName, error) {
	return get[[]view.GivenName](ctx, c.client, "/v1/names", nil)
}

// GiveName implements Names.
func (c *AgentClient) GiveName(ctx context.Context, who, name string) (view.GivenName, error) {
	return call[view.GivenName](ctx, c.client, http.MethodPut, "/v1/names/"+url.PathEscape(who), nil, view.GiveNameRequest{Name: name})
}
