package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/sse"

	"haggle/internal/view"
)

// Choosing is how an agent's user finds and compares offers.
type Choosing interface {
	// Offers lists the offers that match a query. None is an empty list and no error.
	Offers(ctx context.Context, q view.OfferQuery) (view.OfferList, error)
	// LookAt returns one offer with its details, priced for a job, after its rig was asked again.
	LookAt(ctx context.Context, id string, job view.JobShape) (view.Offer, error)
	// Plan says what a budget buys.
	Plan(ctx context.Context, r view.PlanRequest) (view.Plan, error)
	// WatchOffers tells the offers that match a query now and then every change among them until ctx ends, which closes the channel. A
	// slow reader misses steps in between, never the last one. It returns at once, with the errors that a query has of itself.
	WatchOffers(ctx context.Context, q view.OfferQuery) (<-chan view.OfferChange, error)
	// SavedQueries lists the saved queries by name.
	SavedQueries(ctx context.Context) ([]view.SavedQuery, error)
	// SaveQuery keeps a query under a name.
	SaveQuery(ctx context.Context, name, query string) (view.SavedQuery, error)
	// RemoveQuery forgets a saved query.
	RemoveQuery(ctx context.Context, name string) error
}

// JobParams are the parameters of a request that describe the user's job.
type JobParams struct {
	GPUs       int    `query:"gpus" minimum:"0" doc:"slots of my job, 1 by default"`
	DurationMs int64  `query:"duration_ms" minimum:"0" doc:"its running time, 1 hour by default"`
	DiskMB     int64  `query:"disk_mb" minimum:"0" doc:"its disk"`
	InMB       int64  `query:"in_mb" minimum:"0" doc:"traffic into it"`
	OutMB      int64  `query:"out_mb" minimum:"0" doc:"traffic out of it"`
	Image      string `query:"image" maxLength:"512" doc:"its image"`
	ImageBytes int64  `query:"image_bytes" minimum:"0" doc:"size of the image where it would be sent"`
}

type (
	findOffers struct {
		Query   string `query:"query" maxLength:"1024" doc:"clauses; empty for all; @NAME stands for a saved query"`
		Sort    string `query:"sort" maxLength:"256" doc:"fields, the first counts most, each with a trailing - for descending"`
		Explain bool   `query:"explain" doc:"also say what each clause left"`
		Facets  string `query:"facets" maxLength:"512" doc:"fields whose values are counted, separated by commas"`
		Limit   int    `query:"limit" minimum:"0" doc:"list so many at most; 0 for all"`
		JobParams
	}
	lookAt struct {
		ID string `path:"id" maxLength:"128" doc:"enough of the first digits of an offer's hash, or a rig's name"`
		JobParams
	}
	planFor struct {
		Query    string `query:"query" maxLength:"1024" doc:"clauses; empty for all"`
		Budget   int64  `query:"budget_micro" minimum:"0" doc:"millionths"`
		Currency string `query:"currency" maxLength:"16"`
		JobParams
	}
	saveQuery struct {
		Name string `path:"name" maxLength:"64"`
		Body view.SaveRequest
	}
	queryNamed struct {
		Name string `path:"name" maxLength:"64"`
	}
)

func (p JobParams) shape() view.JobShape { return view.JobShape(p) }

func (in *findOffers) ask() view.OfferQuery {
	return view.OfferQuery{Query: in.Query, Sort: in.Sort, Explain: in.Explain, Facets: in.Facets, Limit: in.Limit, Job: in.shape()}
}

// choosingRoutes registers what is about finding offers.
func choosingRoutes(api huma.API, c Config, a Choosing) {
	read(api, c, "list-offers", "/v1/offers", "Offers that match a query", func(ctx context.Context, in *findOffers) (view.OfferList, error) {
		list, err := a.Offers(ctx, in.ask())
		list.Offers = some(list.Offers)
		return list, err
	})
	read(api, c, "get-offer", "/v1/offers/{id}", "One offer with its details, as its rig tells it now", func(ctx context.Context, in *lookAt) (view.Offer, error) {
		return a.LookAt(ctx, in.ID, in.shape())
	})
	read(api, c, "plan", "/v1/plan", "What a budget buys", func(ctx context.Context, in *planFor) (view.Plan, error) {
		return a.Plan(ctx, view.PlanRequest{
			Query: in.Query, BudgetMicro: in.Budget, Currency: in.Currency, GPUs: in.GPUs, DurationMs: in.DurationMs,
			DiskMB: in.DiskMB, InMB: in.InMB, OutMB: in.OutMB, Image: in.Image, ImageBytes: in.ImageBytes,
		})
	})
	read(api, c, "list-queries", "/v1/queries", "Saved queries by name", func(ctx context.Context, _ *struct{}) ([]view.SavedQuery, error) {
		list, err := a.SavedQueries(ctx)
		return some(list), err
	})
	answerTo(api, c, http.MethodPut, "save-query", "/v1/queries/{name}", "Keep a query under a name", func(ctx context.Context, in *saveQuery) (view.SavedQuery, error) {
		return a.SaveQuery(ctx, in.Name, in.Body.Query)
	})
	act(api, c, http.MethodDelete, "remove-query", "/v1/queries/{name}", "Forget a saved query", func(ctx context.Context, in *queryNamed) error {
		return a.RemoveQuery(ctx, in.Name)
	})
	offerEventRoute(api, c, a)
}

// offerEventRoute registers the stream of changes among the offers that match a query.
func offerEventRoute(api huma.API, c Config, a Choosing) {
	op := operation(http.MethodGet, "watch-offers", "/v1/offer-events", "The offers that match a query now, then every change among them")
	sse.Register(api, op, map[string]any{"offer": view.OfferChange{}, "beat": Beat{}, "problem": view.Problem{}},
		func(ctx context.Context, in *findOffers, send sse.Sender) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			changes, err := a.WatchOffers(ctx, in.ask())
			if err != nil {
				_ = send.Data(view.ProblemOf(err)) // the stream ends either way
				return
			}
			if send.Data(Beat{}) != nil {
				return
			}
			forwardOffers(ctx, c.Heartbeat, changes, send)
		})
}

func forwardOffers(ctx context.Context, every time.Duration, changes <-chan view.OfferChange, send sse.Sender) {
	beat := time.NewTicker(every)
	defer beat.Stop()
	for {
		var event any = Beat{}
		select {
		case <-ctx.Done():
			return
		case change, ok := <-changes:
			if !ok {
				return
			}
			event = change
		case <-beat.C:
		}
		if send.Data(event) != nil {
			return
		}
	}
}

// shapeValues adds a job to a request.
func shapeValues(v url.Values, j view.JobShape) url.Values {
	for name, n := range map[string]int64{
		"gpus": int64(j.GPUs), "duration_ms": j.DurationMs, "disk_mb": j.DiskMB, "in_mb": j.InMB, "out_mb": j.OutMB, "image_bytes": j.ImageBytes,
	} {
		if n != 0 {
			v.Set(name, strconv.FormatInt(n, 10))
		}
	}
	if j.Image != "" {
		v.Set("image", j.Image)
	}
	return v
}

func queryValues(q view.OfferQuery) url.Values {
	v := values("query", q.Query, "sort", q.Sort, "explain", flag(q.Explain), "facets", q.Facets)
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return shapeValues(v, q.Job)
}

// Offers implements Choosing.
func (c *AgentClient) Offers(ctx context.Context, q view.OfferQuery) (view.OfferList, error) {
	return get[view.OfferList](ctx, c.client, "/v1/offers", queryValues(q))
}

// Offer is LookAt for an hour of one slot.
func (c *AgentClient) Offer(ctx context.Context, id string) (view.Offer, error) {
	return c.LookAt(ctx, id, view.JobShape{})
}

// LookAt implements Choosing.
func (c *AgentClient) LookAt(ctx context.Context, id string, job view.JobShape) (view.Offer, error) {
	return get[view.Offer](ctx, c.client, "/v1/offers/"+url.PathEscape(id), shapeValues(url.Values{}, job))
}

// Plan implements Choosing.
func (c *AgentClient) Plan(ctx context.Context, r view.PlanRequest) (view.Plan, error) {
	v := values("query", r.Query, "currency", r.Currency, "budget_micro", strconv.FormatInt(r.BudgetMicro, 10))
	return get[view.Plan](ctx, c.client, "/v1/plan", shapeValues(v, view.JobShape{
		GPUs: r.GPUs, DurationMs: r.DurationMs, DiskMB: r.DiskMB, InMB: r.InMB, OutMB: r.OutMB, Image: r.Image, ImageBytes: r.ImageBytes,
	}))
}

// SavedQueries implements Choosing.
func (c *AgentClient) SavedQueries(ctx context.Context) ([]view.SavedQuery, error) {
	return get[[]view.SavedQuery](ctx, c.client, "/v1/queries", nil)
}

// SaveQuery implements Choosing.
func (c *AgentClient) SaveQuery(ctx context.Context, name, query string) (view.SavedQuery, error) {
	return call[view.SavedQuery](ctx, c.client, http.MethodPut, "/v1/queries/"+url.PathEscape(name), nil, view.SaveRequest{Query: query})
}

// RemoveQuery implements Choosing.
func (c *AgentClient) RemoveQuery(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, "/v1/queries/"+url.PathEscape(name), nil)
}

// WatchOffers implements Choosing. A closed channel before the end of ctx means that the agent is gone.
func (c *AgentClient) WatchOffers(ctx context.Context, q view.OfferQuery) (<-chan view.OfferChange, error) {
	s, err := c.open(ctx, http.MethodGet, "/v1/offer-events", queryValues(q), nil)
	if err != nil {
		return nil, err
	}
	changes, first := make(chan view.OfferChange), make(chan error, 1)
	go func() {
		defer close(changes)
		defer s.Close()
		defer close(first)
		begun := false // the first event is a beat, or says what is wrong with the question
		err := events(s, func(name string, data []byte) bool {
			if !begun {
				begun = true
				if name == "problem" {
					first <- parseProblem(data)
					return false
				}
				first <- nil
			}
			var change view.OfferChange
			if name != "offer" || json.Unmarshal(data, &change) != nil {
				return true
			}
			select {
			case changes <- change:
				return true
			case <-ctx.Done():
				return false
			}
		})
		if !begun {
			first <- lost(ctx, cmp.Or(err, ErrLost))
		}
	}()
	if err := <-first; err != nil {
		return nil, err
	}
	return changes, nil
}
