package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"haggle/internal/view"
	"haggle/market"
)

const problemType = "application/problem+json"

// problem is a market error on its way to a client.
type problem struct {
	view.Problem
	status int
}

func (p *problem) Error() string             { return p.Message }
func (p *problem) GetStatus() int            { return p.status }
func (p *problem) ContentType(string) string { return problemType }

// problem words an error for the client and logs what the client must not see, once.
func (c Config) problem(operation string, err error) error {
	var public *market.Error
	switch {
	case errors.As(err, &public):
		c.Log.Debug("request refused", "op", operation, "code", string(public.Code))
	case errors.Is(err, context.Canceled):
		c.Log.Debug("request given up", "op", operation)
	default:
		c.Log.Error("request failed", "op", operation, "err", err)
	}
	return &problem{view.ProblemOf(err), statusOf(err)}
}

// statusOf maps an error's class to a status of HTTP.
func statusOf(err error) int {
	switch market.Explain(err).Class {
	case market.ClassUsage:
		return http.StatusBadRequest
	case market.ClassNotFound:
		return http.StatusNotFound
	case market.ClassRefused:
		return http.StatusConflict
	case market.ClassUnreachable:
		return http.StatusBadGateway
	case market.ClassBudget:
		return http.StatusPaymentRequired
	default:
		return http.StatusInternalServerError
	}
}

// wordProblem turns the errors that huma makes of a malformed request into our problem documents.
func wordProblem(_ huma.Context, _ string, v any) (any, error) {
	model, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	if model.Status == http.StatusRequestEntityTooLarge {
		return &problem{view.ProblemOf(tooLarge()), model.Status}, nil
	}
	if model.Status >= http.StatusInternalServerError {
		return &problem{view.ProblemOf(errors.New(model.Detail)), model.Status}, nil
	}
	why := model.Detail
	for _, e := range model.Errors {
		why += "; " + strings.TrimPrefix(e.Location+": ", ": ") + e.Message
	}
	return &problem{view.ProblemOf(market.NewError(market.CodeBadRequest, "why", "the request is malformed: "+why)), model.Status}, nil
}

func tooLarge() error {
	return market.NewError(market.CodeTooLarge, "limit", strconv.Itoa(maxBody))
}
