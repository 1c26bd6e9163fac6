package main

import "io"

// escapes reads a raw terminal and takes out what is meant for haggle: a ~ at the beginning of a line and what follows it.
type escapes struct {
	in    io.Reader
	end   func()
	help  func()
	begun bool // a line begins here
	tilde bool // a ~ at its beginning was taken
}

// Read implements io.Reader. It returns io.EOF after ~.
func (e *escapes) Read(p []byte) (int, error) {
	if len(p) < 2 {
		return 0, io.ErrShortBuffer
	}
	for {
		raw := make([]byte, len(p)/2) // a ~ that was kept back may come before each byte
		n, err := e.in.Read(raw)
		out, end := e.take(p[:0], raw[:n])
		if end {
			e.end()
			return len(out), io.EOF
		}
		if len(out) > 0 || err != nil {
			return len(out), err
		}
	}
}

// take appends what of in is for the job to out.
func (e *escapes) take(out, in []byte) (_ []byte, end bool) {
	for _, b := range in {
		if e.tilde {
			e.tilde = false
			switch b {
			case '.':
				return out, true
			case '?':
				e.help()
				continue
			case '~':
				out, e.begun = append(out, b), false
				continue
			}
			out = append(out, '~')
			e.begun = false
		}
		if e.begun && b == '~' {
			e.tilde = true
			continue
		}
		out = append(out, b)
		e.begun = b == '\r' || b == '\n'
	}
	return out, false
}
