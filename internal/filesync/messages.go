package filesync

const (
	protocolMagic   = "hgfs"
	protocolVersion = 1
)

// What a hello asks for.
const (
	opPush = 1
	opPull = 2
)

// Flags of hello and ready.
const (
	flagDelete   = 1
	flagIgnore   = 2
	flagChecksum = 4
	flagFresh    = 8
)

// What a source is.
const (
	sourceFile     = 1
	sourceFolder   = 2 // goes into a folder of its name
	sourceContents = 3
)

// Kinds of entries.
const (
	kindFolder = 1
	kindFile   = 2
	kindLink   = 3
)

// What a receiver answers for an entry.
const (
	answerNone  = 0 // nothing is missing
	answerFull  = 1 // all of the contents
	answerDelta = 2 // what the hashes that follow do not have
	answerSkip  = 3 // not wanted
)

// Where a receiver has a chunk.
const (
	fromPart = 0
	fromOld  = 1
)

// How a finish ends a file.
const (
	finishDone  = 0
	finishAgain = 1
)

type hello struct {
	op    byte
	flags uint16
	kind  byte
	base  string
	path  string
}

func (h *hello) encode() []byte {
	b := append([]byte(protocolMagic), protocolVersion, h.op, byte(h.flags>>8), byte(h.flags), h.kind)
	return appendString(appendString(b, h.base), h.path)
}

func decodeHello(b []byte) (hello, error) {
	d := decoder{b: b}
	if string(d.bytes(int64(len(protocolMagic)))) != protocolMagic {
		return hello{}, badFrame("no hello")
	}
	if v := d.byte(); d.err == nil && v != protocolVersion {
		return hello{}, &Error{Code: CodeFailed, Message: "the two sides speak different versions; update the older one"}
	}
	h := hello{op: d.byte(), flags: d.uint16(), kind: d.byte(), base: d.string(MaxPath), path: d.string(MaxPath)}
	if err := d.end(); err != nil {
		return hello{}, err
	}
	if h.op != opPush && h.op != opPull || h.op == opPush && (h.kind < sourceFile || h.kind > sourceContents) {
		return hello{}, badFrame("an unknown request")
	}
	return h, nil
}

// attrs are what a file has beside its contents.
type attrs struct {
	mode  uint16
	mtime int64 // nanoseconds since 1970
	size  int64
}

func (a attrs) append(b []byte) []byte {
	b = append(b, byte(a.mode>>8), byte(a.mode))
	return appendUint(appendInt(b, a.mtime), uint64(a.size))
}

func (d *decoder) attrs() attrs {
	return attrs{mode: d.uint16() & 0o777, mtime: d.int(), size: d.size()}
}

type entry struct {
	path   string
	target string // of a symlink
	attrs
	kind byte
}

func (e *entry) append(b []byte) []byte {
	b = e.attrs.append(append(b, e.kind))
	b = appendString(b, e.path)
	if e.kind == kindLink {
		b = appendString(b, e.target)
	}
	return b
}

func (d *decoder) entry() entry {
	e := entry{kind: d.byte()}
	e.attrs = d.attrs()
	e.path = d.string(MaxPath)
	switch e.kind {
	case kindLink:
		e.target = d.string(MaxPath)
		e.size = 0
	case kindFolder:
		e.size = 0
	case kindFile:
	default:
		d.fail()
	}
	return e
}

type listEnd struct {
	incomplete                     bool
	entries, files, bytes, skipped int64
}

func (l *listEnd) encode() []byte {
	var flags byte
	if l.incomplete {
		flags = 1
	}
	b := appendUint([]byte{flags}, uint64(l.entries))
	b = appendUint(b, uint64(l.files))
	b = appendUint(b, uint64(l.bytes))
	return appendUint(b, uint64(l.skipped))
}

func decodeListEnd(b []byte) (listEnd, error) {
	d := decoder{b: b}
	l := listEnd{incomplete: d.byte()&1 != 0, entries: d.size(), files: d.size(), bytes: d.size(), skipped: d.size()}
	return l, d.end()
}

// done ends what a sender sends.
type done struct {
	digest  hash
	skipped int64
	failed  int64
}

func (x *done) encode() []byte {
	b := append([]byte(nil), x.digest[:]...)
	return appendUint(appendUint(b, uint64(x.skipped)), uint64(x.failed))
}

func decodeDone(b []byte) (done, error) {
	d := decoder{b: b}
	x := done{digest: d.hash(), skipped: d.size(), failed: d.size()}
	return x, d.end()
}

// result ends what a receiver sends.
type result struct {
	same, skipped, deleted int64
}

func (x *result) encode() []byte {
	return appendUint(appendUint(appendUint(nil, uint64(x.same)), uint64(x.skipped)), uint64(x.deleted))
}

func decodeResult(b []byte) (result, error) {
	d := decoder{b: b}
	x := result{same: d.size(), skipped: d.size(), deleted: d.size()}
	return x, d.end()
}

func (e *Error) encode() []byte {
	b := appendString(nil, string(e.Code))
	b = appendString(b, bounded(e.Path))
	return appendString(b, bounded(e.Message))
}

func decodeError(b []byte) error {
	d := decoder{b: b}
	e := &Error{Code: Code(d.string(32)), Path: d.string(1024), Message: d.string(1024)}
	if err := d.end(); err != nil {
		return err
	}
	if !known(e.Code) {
		e.Code = CodeFailed
	}
	return e
}
