package main

import "io"

// forJob returns where a job's output goes: as it is into files and pipes, without control sequences onto a terminal, which a
// hostile rig must not steer.
func forJob(w io.Writer) io.Writer {
	if !isTerminal(w) {
		return w
	}
	return &plainWriter{w: w}
}

// plainWriter lets text through, with its line ends and tabs, and drops escape sequences and other control characters. It
// remembers where it stood when a sequence is cut between two writes.
type plainWriter struct {
	w     io.Writer
	state escapeState
	buf   []byte
	lead  bool // the last byte was 0xC2, which begins the two-byte form of C1 controls
}

// escapeState is where in an escape sequence the output stands.
//
//	text ─ESC→ begun ─[→ csi ─final→ text
//	             └─] P X ^ _→ string ─BEL or ESC \→ text
type escapeState uint8

const (
	inText escapeState = iota
	inEscape
	inCSI
	inString
	inStringEnd // an ESC within a string
)

const (
	bell   = 0x07
	escape = 0x1b
	c1lead = 0xc2
)

func (p *plainWriter) Write(data []byte) (int, error) {
	p.buf = p.buf[:0]
	for _, b := range data {
		p.take(b)
	}
	if _, err := p.w.Write(p.buf); err != nil {
		return 0, err
	}
	return len(data), nil
}

func (p *plainWriter) take(b byte) {
	switch p.state {
	case inText:
		p.text(b)
	case inEscape:
		switch b {
		case '[':
			p.state = inCSI
		case ']', 'P', 'X', '^', '_':
			p.state = inString
		case escape:
		default:
			if b < 0x20 || b > 0x2f { // intermediate bytes go on
				p.state = inText
			}
		}
	case inCSI:
		switch {
		case b == escape:
			p.state = inEscape
		case b >= 0x40 && b <= 0x7e || b == '\n':
			p.state = inText
		}
	case inString:
		switch b {
		case bell, '\n': // a line's end: a string that never ends must not swallow the log
			p.state = inText
		case escape:
			p.state = inStringEnd
		}
	case inStringEnd:
		p.state = inText
		if b != '\\' {
			p.state = inEscape
			p.take(b)
		}
	}
}

func (p *plainWriter) text(b byte) {
	lead := p.lead
	p.lead = false
	switch {
	case lead && b >= 0x80 && b <= 0x9f: // a C1 control, such as CSI in one character
		if b == 0x9b {
			p.state = inCSI
		}
		return
	case lead && b >= 0xa0 && b <= 0xbf: // any other byte leaves a lone lead, which is no text and is dropped
		p.buf = append(p.buf, c1lead)
	}
	switch {
	case b == escape:
		p.state = inEscape
	case b == c1lead:
		p.lead = true
	case b == '\n', b == '\t', b == '\r', b >= 0x20 && b != 0x7f:
		p.buf = append(p.buf, b)
	}
}
