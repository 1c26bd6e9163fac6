package inside

import (
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// inChild runs an attack in a child that prints a dot for every ten things it got, and counts them.
func inChild(item string, most int64) verdict {
	answer, err := again("attack", item).Output()
	n := int64(strings.Count(string(answer), ".")) * 10
	if err == nil && n >= most-10 {
		return broke("%d were made", n).counted(n)
	}
	return held("refused after about %d", n).counted(n)
}

// cpuHog keeps four threads busy for args[0] seconds. What they got stands in the cgroup's figures, outside.
func cpuHog(args []string) verdict {
	for range 4 {
		go func() {
			goruntime.LockOSThread()
			for x := uint64(1); ; x = x*6364136223846793005 + 1 {
				if x == 0 {
					goruntime.Gosched()
				}
			}
		}()
	}
	time.Sleep(min(time.Duration(number(args, 0, 2))*time.Second, attackLimit/2))
	return held("four threads were busy")
}

// inotify takes watchers, of which a user may have few.
func inotify(args []string) verdict {
	return untilRefused("watchers", number(args, 0, 20000), func() error {
		_, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		return err
	})
}

// aio reserves asynchronous requests, of which the whole machine has one number, and keeps them for args[1] seconds.
func aio(args []string) verdict {
	most := number(args, 0, 1<<20)
	total := int64(0)
	var last error
	for size := int64(65536); size >= 64 && total < most; {
		context := make([]byte, 8)
		if _, err := raw(unix.SYS_IO_SETUP, int(size), context); err != nil {
			last = err
			size /= 2
			continue
		}
		total += size
	}
	v := verdict{total == 0, fmt.Sprintf("%d requests reserved, then: %v", total, last), total}
	keep("aio-taken", v, number(args, 1, 0))
	return v
}

// keep tells what was taken and holds it for some seconds.
func keep(name string, v verdict, seconds int64) {
	if seconds > 0 {
		tell(os.Stdout, Result{Name: name, Holds: v.holds, Found: v.found, Count: v.count})
		time.Sleep(min(time.Duration(seconds)*time.Second, attackLimit*3/4))
	}
}

// queues makes message queues, semaphores and shared memory of the old kind.
func queues(args []string) verdict {
	most := number(args, 0, 40000)
	counts := make([]string, 0, 3)
	total := int64(0)
	for _, q := range []struct {
		name   string
		number uintptr
		args   []any
	}{
		{"message queues", unix.SYS_MSGGET, []any{0, 0o600}},
		{"semaphores", unix.SYS_SEMGET, []any{0, 1, 0o600}},
		{"shared memories", unix.SYS_SHMGET, []any{0, 4096, 0o600}},
	} {
		v := untilRefused(q.name, most, func() error {
			_, err := raw(q.number, q.args...)
			return err
		})
		if !v.holds {
			return v
		}
		counts = append(counts, v.found)
		total += v.count
	}
	return held("%s", strings.Join(counts, "; ")).counted(total)
}

// terminals opens pseudo terminals, of which the whole machine has one number, and keeps them for args[1] seconds.
func terminals(args []string) verdict {
	v := untilRefused("terminals", number(args, 0, 1024), func() error {
		_, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		return err
	})
	keep("terminals-taken", v, number(args, 1, 0))
	return v
}

// lockedMemory pins memory so that it cannot be taken back, up to args[0] MiB.
func lockedMemory(args []string) verdict {
	return untilRefused("MiB locked", min(number(args, 0, 512), mostMemory), func() error {
		b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return err
		}
		return unix.Mlock(b)
	})
}
