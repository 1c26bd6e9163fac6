package inside

import (
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// What a bomb stops at when no wall does.
const (
	mostProcesses = 6000
	mostMemory    = 1536 // MiB
	mostDisk      = 3072 // MiB
	mostFiles     = 2_000_000
	mostOutput    = 2048 // MiB
)

func bombs() []weapon {
	return []weapon{
		{"fork-bomb", forkBomb},
		{"thread-bomb", threadBomb},
		{"memory-bomb", memoryBomb},
		{"tmpfs-bomb", tmpfsBomb},
		{"disk-fill", diskFill},
		{"inode-fill", inodeFill},
		{"log-flood", logFlood},
		{"open-files", openFiles},
		{"cpu-hog", cpuHog},
		{"inotify", inotify},
		{"aio", aio},
		{"queues", queues},
		{"terminals", terminals},
		{"locked-memory", lockedMemory},
	}
}

// forkBomb makes up to args[0] processes that do nothing. It holds if the kernel says no before.
func forkBomb(args []string) verdict {
	most := min(number(args, 0, mostProcesses), mostProcesses)
	debug.SetGCPercent(-1)   // it could want a thread, and there will be none
	goruntime.LockOSThread() // the children die with this thread
	defer goruntime.UnlockOSThread()
	var children []int
	defer func() {
		for _, pid := range children {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for range children {
			_, _ = unix.Wait4(-1, nil, 0, nil)
		}
	}()
	for int64(len(children)) < most {
		pid, err := idleChild()
		if err != nil {
			return held("fork: %v after %d processes", reason(err), len(children)).counted(int64(len(children)))
		}
		children = append(children, pid)
	}
	return broke("%d processes were made", len(children)).counted(int64(len(children)))
}

// idleChild forks a child that makes no other calls than these three.
func idleChild() (int, error) {
	pid, _, no := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if no != 0 {
		return 0, no
	}
	if pid == 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
		for {
			_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	return int(pid), nil
}

// threadBomb makes up to args[0] threads in children, because Go's runtime ends the program that is refused one.
func threadBomb(args []string) verdict {
	most := min(number(args, 0, mostProcesses), mostProcesses)
	if word(args, 1, "") != "child" {
		return inChild("thread-bomb="+strconv.FormatInt(most, 10)+",child", most)
	}
	for n := int64(1); n <= most; n++ {
		started := make(chan struct{})
		go func() {
			goruntime.LockOSThread()
			close(started)
			select {}
		}()
		<-started
		if n%10 == 0 {
			_, _ = os.Stdout.WriteString(".")
		}
	}
	return broke("%d threads were made", most).counted(most)
}

// memoryBomb takes and touches up to args[0] MiB. Where memory is bounded it does not return: the kernel kills it.
func memoryBomb(args []string) verdict {
	most := min(number(args, 0, mostMemory), mostMemory)
	for n := range most {
		b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return held("mmap: %v after %d MiB", reason(err), n).counted(n)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	return broke("%d MiB were taken", most).counted(most)
}

// tmpfsBomb writes up to args[0] MiB into each folder that may lie in memory.
func tmpfsBomb(args []string) verdict {
	most := min(number(args, 0, 256), mostMemory)
	total := int64(0)
	for _, dir := range []string{"/dev/shm", "/dev", "/run", "/run/secrets", "/sys/fs/cgroup", "/proc"} {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil || st.Type != unix.TMPFS_MAGIC {
			continue
		}
		path := filepath.Join(dir, "hg-bomb")
		n, err := fill(path, most)
		_ = os.Remove(path)
		if err == nil {
			return broke("%d MiB fit into %s", n, dir).counted(n)
		}
		total += n
	}
	return held("%d MiB fit into all file systems that lie in memory", total).counted(total)
}

// fill writes up to most MiB into a new file and says how many it took.
func fill(path string, most int64) (int64, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * 7)
	}
	for n := range most {
		if _, err := f.Write(block); err != nil {
			return n, err
		}
	}
	return most, nil
}

// diskFill writes up to args[0] MiB into the root file system and into /work, keeps them for args[1] seconds, and with "die"
// ends as a job does that cannot go on.
func diskFill(args []string) verdict {
	most := min(number(args, 0, mostDisk), mostDisk)
	var total int64
	v := verdict{}
	for _, path := range []string{"/hg-fill", "/work/hg-fill"} {
		n, err := fill(path, most)
		total += n
		if err == nil {
			v = broke("%d MiB fit into %s", n, path).counted(total)
			break
		}
		v = held("%d MiB fit, then: %s", total, reason(err)).counted(total)
		if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
			v = broke("%s: %v", path, err).counted(total)
		}
	}
	time.Sleep(min(time.Duration(number(args, 1, 0))*time.Second, attackLimit/2))
	if word(args, 2, "") == "die" {
		tell(os.Stdout, Result{Name: "disk-fill=" + strings.Join(args, ","), Holds: v.holds, Found: v.found, Count: v.count})
		os.Exit(1)
	}
	_, _ = os.Remove("/hg-fill"), os.Remove("/work/hg-fill")
	return v
}

// inodeFill makes up to args[0] empty files in /work.
func inodeFill(args []string) verdict {
	most := min(number(args, 0, mostFiles), mostFiles)
	for n := range most {
		dir := "/work/hg-" + strconv.FormatInt(n/5000, 10)
		if n%5000 == 0 {
			if err := os.Mkdir(dir, 0o755); err != nil {
				return held("%d files, then: %s", n, reason(err)).counted(n)
			}
		}
		fd, err := unix.Open(dir+"/"+strconv.FormatInt(n, 10), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return held("%d files, then: %s", n, reason(err)).counted(n)
		}
		_ = unix.Close(fd)
	}
	return broke("%d files were made", most).counted(most)
}

// logFlood writes args[0] MiB to the log as fast as it goes.
func logFlood(args []string) verdict {
	most := min(number(args, 0, 100), mostOutput)
	line := make([]byte, 1<<20)
	for i := range line {
		line[i] = 'x'
		if i%100 == 99 {
			line[i] = '\n'
		}
	}
	start := time.Now()
	for n := range most {
		if _, err := os.Stdout.Write(line); err != nil {
			return broke("%d MiB written, then: %v", n, err).counted(n)
		}
	}
	return held("%d MiB written in %s", most, time.Since(start).Round(time.Millisecond)).counted(most)
}

// openFiles opens up to args[0] files, after raising its own bound as far as that goes.
func openFiles(args []string) verdict {
	most := number(args, 0, 1<<20)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil {
		for _, more := range []uint64{1 << 20, 1 << 17, limit.Max} {
			if unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: more, Max: max(more, limit.Max)}) == nil {
				break
			}
		}
	}
	return untilRefused("files", most, func() error {
		_, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
}

// untilRefused does a thing up to most times. The files that this opens are closed by the end of the process.
func untilRefused(things string, most int64, do func() error) verdict {
	for n := range most {
		if err := do(); err != nil {
			return held("%d %s, then: %s", n, things, reason(err)).counted(n)
		}
	}
	return broke("%d %s were had", most, things).counted(most)
}
