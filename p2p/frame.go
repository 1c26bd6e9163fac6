package p2p

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strconv"

	"haggle/market"
)

// maxLengthBytes is the size of the largest length, that of a frame of market.MaxFrame bytes.
const maxLengthBytes = 3

// readFrame reads one frame and calls begun after its first byte. It returns io.EOF where the peer closed between frames.
// Memory follows what has arrived, not what the length claims.
func readFrame(r io.Reader, begun func()) ([]byte, error) {
	length, err := readLength(r, begun)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, int64(length)); err != nil {
		return nil, cutShort(err)
	}
	return body.Bytes(), nil
}

func readLength(r io.Reader, begun func()) (int, error) {
	length := 0
	b := make([]byte, 1)
	for i := range maxLengthBytes {
		if _, err := io.ReadFull(r, b); err != nil {
			if i == 0 {
				return 0, err
			}
			return 0, cutShort(err)
		}
		if i == 0 {
			begun()
		}
		length |= int(b[0]&0x7f) << (7 * i)
		if b[0] >= 0x80 {
			continue
		}
		switch {
		case b[0] == 0: // an empty frame, or a length with needless bytes
			return 0, market.NewError(market.CodeBadEncoding, "why", "a frame's length is not in its shortest form")
		case length > market.MaxFrame:
			return 0, tooLarge(market.MaxFrame)
		}
		return length, nil
	}
	return 0, tooLarge(market.MaxFrame)
}

// encodeFrame returns a message with its length in front.
func encodeFrame(m market.Message) ([]byte, error) {
	body, err := market.EncodeMessage(m)
	if err != nil {
		return nil, err
	}
	frame := binary.AppendUvarint(make([]byte, 0, len(body)+maxLengthBytes), uint64(len(body)))
	return append(frame, body...), nil
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return market.NewError(market.CodeBadEncoding, "why", "a frame was cut short")
	}
	return err
}

func tooLarge(limit int) error {
	return market.NewError(market.CodeTooLarge, "limit", strconv.Itoa(limit))
}
