//go:build linux && cgo

package nvidia

import (
	"errors"
	"fmt"
	"io"
)

// runShot answers one question. It ends when the answer is written, or when in ends before.
func runShot(r request, in io.Reader, out io.Writer) error {
	ended := make(chan error, 2)
	go func() {
		b, err := sized(answer(r), maxShot)
		if err == nil {
			_, err = out.Write(b)
		}
		if err != nil {
			err = fmt.Errorf("write the answer: %w", err)
		}
		ended <- err
	}()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		ended <- errors.New("nobody waits for the answer any more")
	}()
	return <-ended
}

// answer does what was asked.
func answer(r request) shotReply {
	switch {
	case r.Op == opSpecs && r.Specs != nil && r.Specs.Version == protocolVersion:
		return makeSpecs(*r.Specs)
	case r.Op == opScrub && r.Scrub != nil && r.Scrub.Version == protocolVersion:
		bytes, err := scrub(*r.Scrub, r.UUID)
		if err != nil {
			return failed(err)
		}
		return shotReply{Bytes: bytes}
	default:
		return shotReply{Code: codeFailed, Text: "unknown question"}
	}
}

// failed is the answer for an error.
func failed(err error) shotReply {
	return shotReply{Code: codeOf(err), Text: printable(err.Error(), maxText)}
}
