package market

import "bytes"

// Bounds on any CBOR of ours, checked before a decoder allocates for it.
const (
	maxDepth = 8    // nesting of arrays and maps
	maxItems = 4096 // items in all, keys included
)

// checkCanonical reports, in one pass and without allocating, whether data is exactly one item of deterministic CBOR as
// RFC 8949 section 4.2.1 defines it, in the part of CBOR that haggle uses: integers, byte and text strings, arrays, maps
// with ascending keys, and the two booleans. Everything else (floats, tags, null, indefinite lengths, a longer form than
// needed, keys out of order or twice, bytes after the end) is refused, so that equal values have equal bytes and nobody
// can make two encodings of one record.
func checkCanonical(data []byte) error {
	w := walker{data: data}
	if why := w.item(0); why != "" {
		return NewError(CodeBadEncoding, "why", why)
	}
	if w.at != len(data) {
		return NewError(CodeBadEncoding, "why", "bytes after the end")
	}
	return nil
}

type walker struct {
	data  []byte
	at    int
	items int
}

// item steps over one data item. It returns "" or the reason why the bytes are refused.
func (w *walker) item(depth int) string {
	if depth > maxDepth {
		return "nested too deeply"
	}
	if w.items++; w.items > maxItems {
		return "too many items"
	}
	major, arg, why := w.head()
	if why != "" {
		return why
	}
	switch major {
	case 0, 1: // unsigned and negative integers; those beyond int64 are the typed decoder's to refuse
		return ""
	case 2, 3:
		if arg > uint64(len(w.data)-w.at) {
			return "string longer than the data"
		}
		w.at += int(arg)
		return ""
	case 4:
		return w.array(arg, depth)
	case 5:
		return w.fields(arg, depth)
	default: // 7: head has let through only false and true
		return ""
	}
}

func (w *walker) array(length uint64, depth int) string {
	if length > uint64(len(w.data)-w.at) {
		return "array longer than the data"
	}
	for range length {
		if why := w.item(depth + 1); why != "" {
			return why
		}
	}
	return ""
}

func (w *walker) fields(length uint64, depth int) string {
	if length > uint64(len(w.data)-w.at)/2 {
		return "map longer than the data"
	}
	var previous []byte
	for i := range length {
		start := w.at
		if why := w.item(depth + 1); why != "" {
			return why
		}
		key := w.data[start:w.at]
		if i > 0 && bytes.Compare(previous, key) >= 0 {
			return "map keys not in ascending order"
		}
		previous = key
		if why := w.item(depth + 1); why != "" {
			return why
		}
	}
	return ""
}

// head reads an item's first byte and its argument, and refuses every form that is not the shortest.
func (w *walker) head() (major byte, arg uint64, why string) {
	if w.at >= len(w.data) {
		return 0, 0, "ends too early"
	}
	first := w.data[w.at]
	w.at++
	major, low := first>>5, first&31
	switch {
	case major == 6:
		return 0, 0, "tag"
	case major == 7 && low != 20 && low != 21:
		return 0, 0, "float, null or unknown simple value"
	case low < 24:
		return major, uint64(low), ""
	case low > 27:
		return 0, 0, "indefinite length"
	}
	size := 1 << (low - 24)
	if len(w.data)-w.at < size {
		return 0, 0, "ends too early"
	}
	for range size {
		arg = arg<<8 | uint64(w.data[w.at])
		w.at++
	}
	if arg < 24 || size > 1 && arg>>(size*4) == 0 {
		return 0, 0, "integer or length not in its shortest form"
	}
	return major, arg, ""
}
