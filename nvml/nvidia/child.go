//go:build linux && cgo

package nvidia

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	nv "github.com/NVIDIA/go-nvml/pkg/nvml"

	"haggle/nvml"
)

const supported = true

// maxQueue is how many questions may wait for one card: as many as the parent has open in all. Only a card that hangs has
// more, since the parent gives up on them.
const maxQueue = maxPending

// child is the process that has the library loaded. One goroutine asks each card, so that a card that hangs holds up
// nobody else and one card's answers keep the order of its questions.
type child struct {
	lib   *library
	ended chan error // why the child ends; holds one

	writing sync.Mutex
	out     io.Writer

	mu     sync.Mutex
	order  []*card          // by the library's order
	cards  map[string]*card // by UUID
	silent int              // cards that have not told who they are and were not lost
}

// card is one card of the library. Its own goroutine alone uses it, but for what the child's lock guards.
type card struct {
	dev   nv.Device
	uuid  string // guarded by the child's lock until it is known
	asked chan request
}

// RunChild is the main function of the child processes that a Driver starts. The first question says which kind of child it
// is. The one that reads the cards takes questions from in and writes answers to out until in ends, and then returns nil; one
// that makes CDI specs or scrubs a card answers that one question and returns nil, or returns an error when in ends before. A
// library that cannot be loaded is an answer and not an error; errors are a parent that does not keep to the protocol or does
// not listen. Calls to the driver may still hang when RunChild returns: end the process.
func RunChild(in io.Reader, out io.Writer) error {
	var first request
	if err := readFrame(in, &first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return fmt.Errorf("read the first question: %w", err)
	}
	if first.Op == opSpecs || first.Op == opScrub {
		return runShot(first, in, out)
	}
	o := first.Open
	if first.Op != opOpen || o == nil || o.Version != protocolVersion || len(o.Deny) > maxDenied || o.Beat <= 0 || o.Grace <= 0 {
		return fmt.Errorf("read the first question: %w: not how version %d begins", errFrame, protocolVersion)
	}
	c := &child{out: out, ended: make(chan error, 1), cards: make(map[string]*card)}
	stop := make(chan struct{})
	defer close(stop)
	go c.beat(o.Beat, stop)
	go func() {
		c.open(first.ID, *o)
		c.end(c.serve(in))
	}()
	return <-c.ended
}

// end ends RunChild, unless it ended before.
func (c *child) end(err error) {
	select {
	case c.ended <- err:
	default:
	}
}

// beat gives signs of life, so that the parent can tell a child that is stuck from a card that is.
func (c *child) beat(every time.Duration, stop <-chan struct{}) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			c.send(reply{})
		}
	}
}

func (c *child) send(r reply) {
	b, err := frame(r)
	if err != nil {
		b, err = frame(reply{ID: r.ID, Code: codeFailed, Text: "the answer cannot be written"})
	}
	if err == nil {
		c.writing.Lock()
		_, err = c.out.Write(b)
		c.writing.Unlock()
	}
	if err != nil {
		c.end(fmt.Errorf("write an answer: %w", err))
	}
}

// open loads the library, finds the cards and answers the first question.
func (c *child) open(id uint64, o opening) {
	lib, err := openLibrary(o.Library, o.Deny)
	if err != nil {
		c.send(reply{ID: id, Code: codeNoDriver, Text: printable(err.Error(), maxText)})
		return
	}
	c.lib = lib
	if err := c.enumerate(o.Grace); err != nil {
		c.send(reply{ID: id, Code: codeNoDriver, Text: printable(err.Error(), maxText)})
		return
	}
	info := lib.info()
	c.send(reply{ID: id, Info: &info, List: c.list()})
}

// enumerate starts a goroutine for each card and waits until all have told who they are, or for so long.
func (c *child) enumerate(grace time.Duration) error {
	p := &probe{lib: c.lib}
	count := ask(p, "DeviceGetCount", c.lib.api.DeviceGetCount)
	n, ok := count.Get()
	if !ok {
		return fmt.Errorf("%s does not tell the number of cards (%s)", c.lib.path, count.State)
	}
	n = max(0, min(n, maxCards))
	events := c.newWatch()
	c.silent = n
	named := make(chan struct{}, n)
	for i := range n {
		k := &card{asked: make(chan request, maxQueue)}
		c.order = append(c.order, k)
		go func() {
			there := c.identify(k, i)
			if there {
				events.register(k)
			}
			named <- struct{}{}
			if there {
				c.work(k)
			}
		}()
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for left, late := n, false; left > 0 && !late; left-- {
		select {
		case <-named:
		case <-timer.C:
			late = true
		}
	}
	go events.run() // a wait that runs already may not hear of cards that come later
	return nil
}

// identify asks the card at an index who it is, and reports whether it can be used.
func (c *child) identify(k *card, index int) bool {
	p := &probe{lib: c.lib}
	dev, ok := ask(p, "DeviceGetHandleByIndex", func() (nv.Device, nv.Return) {
		return c.lib.api.DeviceGetHandleByIndex(index)
	}).Get()
	uuid := ""
	if ok {
		k.dev = dev
		uuid, _ = ask(p, "GetUUID", dev.GetUUID).Get()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.lost {
		c.silent-- // it has told something: that it is gone
		return false
	}
	if uuid == "" || uuid != printable(uuid, maxUUID) || c.cards[uuid] != nil {
		return false
	}
	c.silent--
	k.uuid = uuid
	c.cards[uuid] = k
	return true
}

func (c *child) list() *listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &listing{UUIDs: []string{}, Silent: c.silent}
	for _, k := range c.order {
		if k.uuid != "" {
			l.UUIDs = append(l.UUIDs, k.uuid)
		}
	}
	return l
}

// serve hands out the questions until there are no more.
func (c *child) serve(in io.Reader) error {
	for {
		var r request
		if err := readFrame(in, &r); err != nil {
			if errors.Is(err, io.EOF) && !errors.Is(err, errFrame) {
				return nil
			}
			return fmt.Errorf("read a question: %w", err)
		}
		switch r.Op {
		case opList:
			c.send(reply{ID: r.ID, List: c.list()})
		case opCard, opSample, opPower:
			c.pass(r)
		default:
			c.send(reply{ID: r.ID, Code: codeFailed, Text: "unknown question"})
		}
	}
}

// pass hands a question to the card's goroutine.
func (c *child) pass(r request) {
	c.mu.Lock()
	k, silent := c.cards[r.UUID], c.silent
	c.mu.Unlock()
	switch {
	case k != nil:
		select {
		case k.asked <- r:
		default:
			c.send(reply{ID: r.ID, Code: codeHung})
		}
	case silent > 0: // it may be the one that has not told who it is
		c.send(reply{ID: r.ID, Code: codeHung})
	default:
		c.send(reply{ID: r.ID, Code: codeNoCard})
	}
}

// work answers the questions about one card.
func (c *child) work(k *card) {
	for r := range k.asked {
		p := &probe{lib: c.lib}
		a := reply{ID: r.ID}
		var err error
		switch r.Op {
		case opCard:
			if a.Card, err = describe(p, k.dev, k.uuid); err == nil {
				err = a.Card.Validate()
			}
		case opPower:
			a.MilliWatt, err = limitPower(p, k.dev, r.MilliWatt)
		default:
			a.Sample = read(p, k.dev, k.uuid)
			err = a.Sample.Validate()
		}
		switch {
		case p.lost:
			a = reply{ID: r.ID, Code: codeLost}
		case err != nil:
			a = reply{ID: r.ID, Code: codeOf(err), Text: printable(err.Error(), maxText)}
		}
		c.send(a)
	}
}

// tell reports an event that nobody asked for.
func (c *child) tell(e nvml.HealthEvent) { c.send(reply{Event: &e}) }
