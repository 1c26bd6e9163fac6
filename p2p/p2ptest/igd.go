package p2ptest

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Router answers as a home router's UPnP service does: it maps ports of IPv4 and opens pinholes of IPv6, in its memory only. All methods
// may be called by any goroutine.
type Router struct {
	URL string // of its description

	mu       sync.Mutex
	mapped   []Mapping
	pinholes map[int]Pinhole
	next     int
	shut     bool // lets nobody open its IPv6 firewall
	external string
}

// Mapping is a port that the router passes on.
type Mapping struct {
	Protocol string // TCP or UDP
	External int
	Client   string
	Internal int
	Lease    int // seconds
}

// Pinhole is an address and port that the router's firewall lets in.
type Pinhole struct {
	Client   string
	Port     int
	Protocol int // 6 is TCP, 17 is UDP
	Lease    int // seconds
	Renewed  int // times
}

// ServeRouter answers HTTP on a listener, which it closes, until ctx ends. external is the router's address outside.
func ServeRouter(ctx context.Context, l net.Listener, external string) *Router {
	r := &Router{URL: "http://" + l.Addr().String() + "/igd.xml", pinholes: map[int]Pinhole{}, next: 1, external: external}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /igd.xml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, description)
	})
	mux.HandleFunc("POST /control/", r.control)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(l) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return r
}

// AnswerSearches answers SSDP's searches for a router on a socket until it is closed. The socket must be a member of 239.255.255.250
// at port 1900, on an interface behind which the searching machines are.
func (r *Router) AnswerSearches(c net.PacketConn) error {
	buf := make([]byte, 2048)
	for {
		n, from, err := c.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, target := range searched(string(buf[:n])) {
			answer := "HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=60\r\nEXT:\r\nLOCATION: " + r.URL + "\r\nSERVER: test UPnP/1.1 test/1\r\nST: " +
				target + "\r\nUSN: uuid:7e57::" + target + "\r\n\r\n"
			if _, err := c.WriteTo([]byte(answer), from); err != nil {
				return err
			}
		}
	}
}

// searched returns which of the router's services a search is for.
func searched(text string) []string {
	if !strings.HasPrefix(text, "M-SEARCH") {
		return nil
	}
	var out []string
	for _, target := range []string{device, connectionDevice, ipConnection, firewall} {
		if strings.Contains(text, target) || strings.Contains(text, "ssdp:all") {
			out = append(out, target)
		}
	}
	return out
}

// Mapped returns the ports that are mapped now.
func (r *Router) Mapped() []Mapping {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mapped)
}

// Pinholes returns those that are open now, by their addresses and protocols.
func (r *Router) Pinholes() []Pinhole {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Pinhole
	for _, p := range r.pinholes {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Pinhole) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return out
}

// ShutFirewall has the router say that nobody may open its firewall.
func (r *Router) ShutFirewall() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shut = true
}

// Restart has the router forget everything, as one does that lost its power.
func (r *Router) Restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mapped, r.pinholes = nil, map[int]Pinhole{}
}

const (
	device           = "urn:schemas-upnp-org:device:InternetGatewayDevice:1"
	connectionDevice = "urn:schemas-upnp-org:device:WANConnectionDevice:1"
	ipConnection     = "urn:schemas-upnp-org:service:WANIPConnection:1"
	firewall         = "urn:schemas-upnp-org:service:WANIPv6FirewallControl:1"
)

const description = `<?xml version="1.0"?>
<root xmlns="urn:schemas-upnp-org:device-1-0"><specVersion><major>1</major><minor>0</minor></specVersion>
<device><deviceType>` + device + `</deviceType><friendlyName>test</friendlyName><UDN>uuid:7e57</UDN>
<deviceList><device><deviceType>urn:schemas-upnp-org:device:WANDevice:1</deviceType><friendlyName>test</friendlyName><UDN>uuid:7e58</UDN>
<deviceList><device><deviceType>` + connectionDevice + `</deviceType><friendlyName>test</friendlyName><UDN>uuid:7e59</UDN>
<serviceList>
<service><serviceType>` + ipConnection + `</serviceType><serviceId>urn:upnp-org:serviceId:WANIPConn1</serviceId>
<controlURL>/control/ip</controlURL><eventSubURL>/event</eventSubURL><SCPDURL>/scpd.xml</SCPDURL></service>
<service><serviceType>` + firewall + `</serviceType><serviceId>urn:upnp-org:serviceId:WANIPv6Firewall1</serviceId>
<controlURL>/control/firewall</controlURL><eventSubURL>/event</eventSubURL><SCPDURL>/scpd.xml</SCPDURL></service>
</serviceList></device></deviceList></device></deviceList></device></root>`

// call is one action with its arguments, in any order.
type call struct {
	XMLName xml.Name
	Body    struct {
		Action struct {
			XMLName xml.Name
			Args    []struct {
				XMLName xml.Name
				Text    string `xml:",chardata"`
			} `xml:",any"`
		} `xml:",any"`
	} `xml:"Body"`
}

// control answers one action.
func (r *Router) control(w http.ResponseWriter, q *http.Request) {
	var c call
	if err := xml.NewDecoder(io.LimitReader(q.Body, 64<<10)).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	args := map[string]string{}
	for _, a := range c.Body.Action.Args {
		args[a.XMLName.Local] = a.Text
	}
	name := c.Body.Action.XMLName.Local
	r.mu.Lock()
	results, fault := r.act(name, args)
	r.mu.Unlock()
	w.Header().Set("Content-Type", `text/xml; charset="utf-8"`)
	const envelope = `<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><s:Body>%s</s:Body></s:Envelope>`
	if fault != 0 {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprintf(w, envelope, fmt.Sprintf(`<s:Fault><faultcode>s:Client</faultcode><faultstring>UPnPError</faultstring><detail>`+
			`<UPnPError xmlns="urn:schemas-upnp-org:control-1-0"><errorCode>%d</errorCode><errorDescription>no</errorDescription></UPnPError></detail></s:Fault>`, fault))
		return
	}
	space, _, _ := strings.Cut(strings.Trim(q.Header.Get("SOAPAction"), `"`), "#")
	var text strings.Builder
	for _, pair := range results {
		fmt.Fprintf(&text, "<%s>%s</%s>", pair[0], pair[1], pair[0])
	}
	_, _ = fmt.Fprintf(w, envelope, fmt.Sprintf(`<u:%sResponse xmlns:u="%s">%s</u:%sResponse>`, name, space, text.String(), name))
}

// act does what an action asks for. r.mu is held. A fault is one of UPnP's error codes.
func (r *Router) act(name string, args map[string]string) (results [][2]string, fault int) {
	number := func(arg string) int { n, _ := strconv.Atoi(args[arg]); return n }
	switch name {
	case "GetNATRSIPStatus":
		return [][2]string{{"NewRSIPAvailable", "0"}, {"NewNATEnabled", "1"}}, 0
	case "GetExternalIPAddress":
		return [][2]string{{"NewExternalIPAddress", r.external}}, 0
	case "AddPortMapping":
		m := Mapping{args["NewProtocol"], number("NewExternalPort"), args["NewInternalClient"], number("NewInternalPort"), number("NewLeaseDuration")}
		r.unmap(m.Protocol, m.External)
		r.mapped = append(r.mapped, m)
	case "DeletePortMapping":
		r.unmap(args["NewProtocol"], number("NewExternalPort"))
	case "GetFirewallStatus":
		allowed := "1"
		if r.shut {
			allowed = "0"
		}
		return [][2]string{{"FirewallEnabled", "1"}, {"InboundPinholeAllowed", allowed}}, 0
	case "AddPinhole":
		r.pinholes[r.next] = Pinhole{Client: args["InternalClient"], Port: number("InternalPort"), Protocol: number("Protocol"), Lease: number("LeaseTime")}
		r.next++
		return [][2]string{{"UniqueID", strconv.Itoa(r.next - 1)}}, 0
	case "UpdatePinhole", "DeletePinhole":
		p, known := r.pinholes[number("UniqueID")]
		if !known {
			return nil, 704 // NoSuchEntry
		}
		p.Renewed++
		r.pinholes[number("UniqueID")] = p
		if name == "DeletePinhole" {
			delete(r.pinholes, number("UniqueID"))
		}
	default:
		return nil, 401 // invalid action
	}
	return nil, 0
}

func (r *Router) unmap(protocol string, port int) {
	r.mapped = slices.DeleteFunc(r.mapped, func(m Mapping) bool { return m.Protocol == protocol && m.External == port })
}
