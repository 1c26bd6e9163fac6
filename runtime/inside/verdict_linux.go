package inside

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// verdict is a Result without its name.
type verdict struct {
	holds bool
	found string
	count int64
}

func held(format string, args ...any) verdict {
	return verdict{holds: true, found: fmt.Sprintf(format, args...)}
}

func broke(format string, args ...any) verdict {
	return verdict{found: fmt.Sprintf(format, args...)}
}

func (v verdict) counted(n int64) verdict {
	v.count = n
	return v
}

// try is one thing that a wall must refuse.
type try struct {
	what string
	do   func() error
}

// allRefused wants every try to end with an error by which a kernel or a filter says no. Any other error means that the
// request reached code which a job has no business with.
func allRefused(tries ...try) verdict {
	return judge(tries, func(err error) bool {
		for _, no := range []syscall.Errno{unix.EPERM, unix.EACCES, unix.EROFS, unix.ENOSYS, unix.EAFNOSUPPORT} {
			if errors.Is(err, no) {
				return true
			}
		}
		return false
	})
}

// allFail is content with any error, as where a thing may also not be there at all.
func allFail(tries ...try) verdict {
	return judge(tries, func(error) bool { return true })
}

func judge(tries []try, refused func(error) bool) verdict {
	var seen []string
	for _, t := range tries {
		err := t.do()
		if err == nil {
			return broke("%s was allowed", t.what)
		}
		if !refused(err) {
			return broke("%s reached the kernel: %v", t.what, err)
		}
		if s := t.what + ": " + reason(err); len(seen) < 4 {
			seen = append(seen, s)
		}
	}
	if len(seen) < len(tries) {
		seen = append(seen, fmt.Sprintf("and %d more", len(tries)-len(seen)))
	}
	return held("%s", strings.Join(seen, "; "))
}

// reason is the last word of an error, which names no path twice.
func reason(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	return err.Error()
}

// call is a system call as a try. Arguments are ints, or []byte for memory that the kernel reads or fills.
func call(what string, number uintptr, args ...any) try {
	return try{what, func() error {
		_, err := raw(number, args...)
		return err
	}}
}

// raw makes a system call. The memory of args is on the heap, where nothing moves, and is kept until the call is over.
func raw(number uintptr, args ...any) (uintptr, error) {
	var a [6]uintptr
	for i, arg := range args {
		switch v := arg.(type) {
		case int:
			a[i] = uintptr(v)
		case []byte:
			a[i] = uintptr(unsafe.Pointer(&v[0]))
		}
	}
	r, _, no := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	goruntime.KeepAlive(args)
	if no != 0 {
		return 0, no
	}
	return r, nil
}

// text is a string as the kernel reads it.
func text(s string) []byte { return append([]byte(s), 0) }

// openToWrite opens and writes nothing: that it opens is proof enough.
func openToWrite(path string) try {
	return try{"open " + path + " to write", func() error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_ = f.Close()
		}
		return err
	}}
}

// openToRead wants that not even a byte can be had.
func openToRead(path string) try {
	return try{"read " + path, func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.Read(make([]byte, 1)); err != nil {
			return err
		}
		return nil
	}}
}

// status reads one field of /proc/self/status.
func status(field string) string {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
