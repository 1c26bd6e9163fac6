package p2p

import (
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/huin/goupnp"
	"github.com/huin/goupnp/dcps/internetgateway2"
)

// Bounds of what a router may answer. Whoever is on the LAN can say that it is one, and its answers are kept in memory whole.
const (
	maxRouterAnswer = 1 << 20 // bytes; descriptions of routers have some ten thousand
	maxRouterHeader = 64 << 10
	routerDial      = 3 * time.Second
	routerHeader    = 5 * time.Second
)

// newRouterClient makes a client for questions to routers: no proxy, no redirection to elsewhere, and answers of bounded size.
func newRouterClient() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: boundedAnswers{&http.Transport{
			DialContext: (&net.Dialer{Timeout: routerDial}).DialContext, DisableKeepAlives: true, DisableCompression: true,
			ResponseHeaderTimeout: routerHeader, MaxResponseHeaderBytes: maxRouterHeader,
		}},
	}
}

// boundedAnswers cuts off answers that are too long: reading on is an error.
type boundedAnswers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = http.MaxBytesReader(nil, answer.Body, maxRouterAnswer)
	return answer, nil
}

// boundRouters has goupnp, and with it libp2p's port mapping, read descriptions of routers by such a client. It sets a variable of the library
// for the whole program, before anything there uses it.
var boundRouters = sync.OnceFunc(func() { goupnp.HTTPClientDefault = newRouterClient() })

// boundGate gives a router's firewall such a client, too. It reports false for one that has its questions sent to another machine than the
// one that described it.
func boundGate(c *internetgateway2.WANIPv6FirewallControl1) bool {
	c.SOAPClient.HTTPClient = *newRouterClient()
	return c.Location != nil && c.SOAPClient.EndpointURL.Hostname() == c.Location.Hostname()
}
