package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/tunnel"
	"haggle/internal/view"
	"haggle/runtime"
)

const (
	openWait   = 2 * time.Minute        // for the port to answer
	openPoll   = 500 * time.Millisecond // between two looks
	tokenTries = 6                      // looks at the log for a token that is printed after the port is open
	maxLink    = 2 << 10
)

func (p *program) openCommand() *cobra.Command {
	var only bool
	var path string
	c := p.action(&cobra.Command{
		Use:   "open LEASE PORT|NAME[:LOCAL]",
		Short: "open a job's web page in the browser",
		Long: "Carry a port of a job to this machine and open it in the browser. A link with the port that the job has written into\n" +
			"its log, such as Jupyter's with its token, gives the path and the token. The link is printed, and copied where the\n" +
			"terminal can. It works until Ctrl-C.",
		Example: "  haggle open train jupyter\n  haggle open train 6006 --print",
		Args:    cli.Words(2, 2, "LEASE and a port"),
	}, func(ctx context.Context, args []string) error {
		l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Lease(ctx, args[0]) })
		if err != nil {
			return err
		}
		f, err := p.listen(ctx, l, loopback, args[1])
		if err != nil {
			return err
		}
		opened := make(chan struct{})
		within, cancel := context.WithCancel(ctx)
		go func() {
			defer close(opened)
			opener := p.fork()
			opener.openPage(within, f, path, !only)
		}()
		err = p.carry(ctx, l, []*forward{f})
		cancel()
		<-opened
		return err
	})
	c.Flags().BoolVar(&only, "print", false, "only print the link")
	c.Flags().StringVar(&path, "path", "", "open this path, in place of the one in the log")
	return c
}

// openPage waits for the port, prints the link, and shows it in the browser where wanted.
func (p *program) openPage(ctx context.Context, f *forward, path string, browse bool) {
	if err := p.awaitPort(ctx, f); err != nil {
		if ctx.Err() == nil {
			p.Say("%s; the link may not work yet", sentence(portFault(err, f.port)))
		}
	}
	link := "http://" + f.listener.Addr().String() + p.pathInLog(ctx, f, path)
	if ctx.Err() != nil {
		return
	}
	p.Show("%s", link)
	if !browse {
		return
	}
	if isTTY(p.Err) {
		_, _ = fmt.Fprintf(p.Err, "\x1b]52;c;%s\a", base64.StdEncoding.EncodeToString([]byte(link))) // OSC 52
		p.Say("the link is in the clipboard, where this terminal allows it; Ctrl-C closes it")
	}
	if err := showInBrowser(ctx, link); err != nil {
		p.Say("no browser is opened: %s", clean(err.Error()))
	}
}

// awaitPort returns when something in the job listens.
func (p *program) awaitPort(ctx context.Context, f *forward) error {
	ctx, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	for said := false; ; said = true {
		err := p.tryPort(ctx, f)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !said {
			p.Say("waiting for %s", f.target())
		}
		pause(ctx, openPoll)
	}
}

// tryPort connects once. A port that takes the connection and is silent is open.
func (p *program) tryPort(ctx context.Context, f *forward) error {
	c, err := p.channel(ctx, f.lease, tunnel.KindDial, tunnel.DialArgs{Port: f.port}, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(openPoll)); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	var told *tunnel.Error
	if errors.As(err, &told) {
		return err
	}
	return nil
}

// pathInLog finds the path and the token of the page in the job's log; wanted takes the place of the path.
func (p *program) pathInLog(ctx context.Context, f *forward, wanted string) string {
	found := &url.URL{Path: "/"}
	for range tokenTries {
		text, err := p.wholeLog(ctx, f.lease)
		if u := linkIn(text, f.port); u != nil {
			found = u
			break
		}
		if err != nil || !bytes.Contains(bytes.ToLower(text), []byte("jupyter")) {
			break // whoever prints a token late says who he is
		}
		pause(ctx, openPoll)
	}
	if wanted != "" {
		if u, err := url.Parse("/" + strings.TrimPrefix(wanted, "/")); err == nil {
			found.Path = u.Path
			if u.RawQuery != "" {
				found.RawQuery = u.RawQuery
			}
		}
	}
	return (&url.URL{Path: found.Path, RawQuery: found.RawQuery}).String()
}

// wholeLog reads what a job has written so far, at most its first 16 MiB.
func (p *program) wholeLog(ctx context.Context, lease string) ([]byte, error) {
	log, err := ask(ctx, p, func(c *api.AgentClient) (io.ReadCloser, error) { return c.Log(ctx, lease, 0, false) })
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var text bytes.Buffer
	if _, _, err := runtime.Demux(io.LimitReader(log, 16<<20), &text, &text); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return text.Bytes(), err
	}
	return text.Bytes(), nil
}

// linkIn returns the last link in a text that leads to a port of the job itself, preferring one with a token.
func linkIn(text []byte, port uint16) *url.URL {
	pattern := regexp.MustCompile(`https?://[A-Za-z0-9.\-\[\]:_]+:` + strconv.Itoa(int(port)) + `(?:/[!-~]*|\b)`)
	var best *url.URL
	for _, link := range pattern.FindAll(text, -1) {
		if len(link) > maxLink {
			continue
		}
		u, err := url.Parse(strings.TrimRight(string(link), ".,;:)>]'\""))
		if err != nil {
			continue
		}
		if u.Path == "" {
			u.Path = "/"
		}
		if best == nil || u.RawQuery != "" || best.RawQuery == "" {
			best = u
		}
	}
	return best
}

// showInBrowser opens a link with the user's browser, where there is one.
func showInBrowser(ctx context.Context, link string) error {
	var command []string
	switch {
	case os.Getenv("BROWSER") != "":
		command = []string{os.Getenv("BROWSER"), link}
	case goruntime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", link}
	case goruntime.GOOS == "darwin":
		command = []string{"open", link}
	case os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "":
		command = []string{"xdg-open", link}
	default:
		return errors.New("this machine has no screen; open the link where one is")
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the user's own browser
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // how a browser ends is its own matter
	return nil
}
