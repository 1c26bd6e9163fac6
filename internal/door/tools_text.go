package door

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// maxTail is how many lines tail keeps.
const maxTail = 1 << 20

func cat(t *tool) {
	t.each(func(_ string, r io.Reader) error {
		_, err := io.Copy(t.out, r)
		return err
	})
}

func tee(t *tool) {
	to := []io.Writer{t.out}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if t.has("a") {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	for _, name := range t.args {
		f, err := os.OpenFile(t.path(name), flags, 0o666)
		if t.check(err) {
			defer f.Close()
			to = append(to, f)
		}
	}
	_, err := io.Copy(io.MultiWriter(to...), t.in)
	t.check(err)
}

func (t *tool) lines() int {
	n := 10
	if t.number != "" {
		var err error
		if n, err = strconv.Atoi(t.number); err != nil || n < 0 || n > maxTail {
			t.check(errors.New("bad number of lines"))
		}
	}
	return n
}

func head(t *tool) {
	n := t.lines()
	t.each(func(_ string, r io.Reader) error {
		b := bufio.NewReader(r)
		for i := 0; i < n; {
			part, err := b.ReadSlice('\n')
			if _, werr := t.out.Write(part); werr != nil {
				return werr
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil {
				return eof(err)
			}
			i++
		}
		return nil
	})
}

func tail(t *tool) {
	n := t.lines()
	t.each(func(_ string, r io.Reader) error {
		var last [][]byte
		b := bufio.NewReader(io.LimitReader(r, 1<<40))
		for {
			line, err := b.ReadBytes('\n')
			if len(line) > 0 {
				if last = append(last, line); len(last) > n {
					last = last[1:]
				}
			}
			if err != nil {
				_, werr := t.out.Write(bytes.Join(last, nil))
				return errors.Join(eof(err), werr)
			}
		}
	})
}

func wc(t *tool) {
	t.each(func(name string, r io.Reader) error {
		var lines, words, size int64
		between := true
		buf := make([]byte, 64<<10)
		for {
			n, err := r.Read(buf)
			for _, c := range buf[:n] {
				if c == '\n' {
					lines++
				}
				space := c == ' ' || c >= '\t' && c <= '\r'
				if between && !space {
					words++
				}
				between = space
			}
			size += int64(n)
			if err != nil {
				t.count(name, lines, words, size)
				return eof(err)
			}
		}
	})
}

func (t *tool) count(name string, lines, words, size int64) {
	sep := ""
	for _, c := range []struct {
		letter string
		n      int64
	}{{"l", lines}, {"w", words}, {"c", size}} {
		if !t.has("lwc") || t.has(c.letter) {
			fmt.Fprintf(t.out, "%s%d", sep, c.n)
			sep = " "
		}
	}
	if name != "" {
		fmt.Fprintf(t.out, " %s", name)
	}
	fmt.Fprintln(t.out)
}

func eof(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
