package pay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"
)

// Bounds of how many programs there are and run at once, and of how long a description is believed.
const (
	mostPrograms = 8
	mostRunning  = 8
	describedFor = time.Minute
)

// name is compiled once and never written to again. It is what market allows for a method.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// reserved are names that mean something else where a method is named, or where it is set up.
func reserved() []string { return []string{"balance", "none", "path", "methods"} }

// Config says where programs lie and what they are told.
type Config struct {
	Folders  []string                     // absolute; where programs lie. The first that has a name has it
	Settings map[string]map[string]string // by method: what its owner tells the program, credentials among it
	Network  string                       // of the market
	Side     Side                         // of every order
	Quick    time.Duration                // limit of every call but Pay; 0 means QuickLimit
	Slow     time.Duration                // limit of Pay; 0 means PayLimit
	Log      *slog.Logger                 // nil discards
}

// Programs runs this machine's payment programs. All methods may be called at the same time.
type Programs struct {
	config  Config
	running chan struct{} // one for each process
	mu      sync.Mutex
	known   map[string]described // by path
}

// described is what a program said of itself, and which file it was.
type described struct {
	file   fs.FileInfo
	at     time.Time
	method Method
	err    error
}

// New makes Programs. Nothing runs before it is asked for; the folders need not exist.
func New(c Config) (*Programs, error) {
	if c.Side != Payee && c.Side != Payer {
		return nil, fmt.Errorf("payment programs: no such side: %q", c.Side)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Quick == 0 {
		c.Quick = QuickLimit
	}
	if c.Slow == 0 {
		c.Slow = PayLimit
	}
	return &Programs{config: c, running: make(chan struct{}, mostRunning), known: map[string]described{}}, nil
}

// Methods lists the programs that work, by name. One that does not is logged and left out. The list is at most a minute old;
// where it is not, making it may take as long as the slowest program, which is bounded.
func (p *Programs) Methods(ctx context.Context) []Method {
	var works []Method
	for _, f := range p.Survey(ctx) {
		if f.Err == nil {
			works = append(works, f.Method)
		}
	}
	return works
}

// Found is a payment program and whether it works.
type Found struct {
	Path   string
	Method Method // only its Name where Err is not nil
	Err    error  // why it cannot be used
}

// Survey lists all programs that are found, by name, with those that do not work.
func (p *Programs) Survey(ctx context.Context) []Found {
	found := p.find()
	var wait sync.WaitGroup
	for i := range found {
		if found[i].Err != nil {
			continue
		}
		wait.Go(func() { found[i].Method, found[i].Err = p.describe(ctx, found[i].Method.Name, found[i].Path) })
	}
	wait.Wait()
	return found
}

// Quote says what paying an order would cost beside its amount.
func (p *Programs) Quote(ctx context.Context, o Order) (Quote, error) {
	r, err := p.ask(ctx, "quote", o)
	if err != nil {
		return Quote{}, err
	}
	return r.quote()
}

// Request asks the payee's program for what the payer's needs. The same order has the same answer.
func (p *Programs) Request(ctx context.Context, o Order) (Answer, error) {
	return p.order(ctx, "request", o)
}

// Pay pays an order, once, however often it is called. Where it fails nobody knows whether the money went: call it again, or
// ask for the Status. The end of ctx kills the program.
func (p *Programs) Pay(ctx context.Context, o Order) (Answer, error) { return p.order(ctx, "pay", o) }

// Status says how far an order is.
func (p *Programs) Status(ctx context.Context, o Order) (Answer, error) {
	return p.order(ctx, "status", o)
}

func (p *Programs) order(ctx context.Context, op string, o Order) (Answer, error) {
	r, err := p.ask(ctx, op, o)
	if err != nil {
		return Answer{}, err
	}
	a, err := r.answer(p.config.Side, op, o)
	if err != nil {
		return Answer{}, fmt.Errorf("%s, %s: %w", programName(o.Method), op, err)
	}
	return a, nil
}

// ask runs an order's program.
func (p *Programs) ask(ctx context.Context, op string, o Order) (reply, error) {
	if err := o.check(); err != nil {
		return reply{}, err
	}
	if !p.config.Side.may(op) {
		return reply{}, fmt.Errorf("a %s's program is not asked to %s", p.config.Side, op)
	}
	path, err := p.lookup(o.Method)
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", programName(o.Method), err)
	}
	c := p.call(op, o.Method)
	c.ID, c.Currency, c.Amount, c.Request = o.ID, o.Currency, o.Amount, o.Request
	if o.Network != "" {
		c.Network = o.Network
	}
	r, err := p.speak(ctx, path, c)
	if err != nil {
		return reply{}, fmt.Errorf("%s, %s: %w", programName(o.Method), op, err)
	}
	return r, nil
}

// describe asks a program what it is, unless it has said so lately.
func (p *Programs) describe(ctx context.Context, method, path string) (Method, error) {
	file, err := usable(path)
	if err != nil {
		return Method{Name: method}, err
	}
	p.mu.Lock()
	last, ok := p.known[path]
	p.mu.Unlock()
	same := ok && last.file.ModTime().Equal(file.ModTime()) && last.file.Size() == file.Size()
	if same && time.Since(last.at) < describedFor {
		return last.method, last.err
	}
	m := Method{Name: method}
	r, err := p.speak(ctx, path, p.call("describe", method))
	if err == nil {
		m, err = r.method(method)
	}
	if ctx.Err() != nil {
		return m, err // it was not its fault
	}
	if err != nil && (!same || last.err == nil) {
		level := slog.LevelDebug // one that nobody has set up may lie there
		if p.config.Settings[method] != nil {
			level = slog.LevelWarn
		}
		p.config.Log.Log(ctx, level, "payment program left out", "program", programName(method), "err", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[path] = described{file, time.Now(), m, err}
	return m, err
}

func (p *Programs) call(op, method string) call {
	settings := p.config.Settings[method]
	if settings == nil {
		settings = map[string]string{}
	}
	return call{Version: Version, Op: op, Side: p.config.Side, Network: p.config.Network, Method: method, Settings: settings}
}

// may tells whether a side's program has an operation on orders. A rig's is never asked to pay.
func (s Side) may(op string) bool {
	switch op {
	case "status":
		return true
	case "request":
		return s == Payee
	case "quote", "pay":
		return s == Payer
	}
	return false
}

// check refuses an order that no program needs to see.
func (o Order) check() error {
	switch {
	case !name.MatchString(o.Method) || slices.Contains(reserved(), o.Method):
		return fmt.Errorf("payment method %q: %w", o.Method, ErrMissing)
	case o.ID == "" || len(o.ID) > MostReference || o.Currency == "" || len(o.Currency) > 16:
		return errors.New("a payment without an id or a currency")
	case o.Amount <= 0 || o.Amount > MostAmount || len(o.Request) > MostText:
		return errors.New("a payment whose amount or request is out of bounds")
	}
	return nil
}
