package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"haggle/runtime"
)

// jobAttr makes the job a group of its own, which the kernel ends when the supervisor is killed.
func jobAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Fields of /proc/PID/stat, counted from the state, which is the third.
const (
	statGroup   = 2
	statUser    = 11
	statSystem  = 12
	statThreads = 17
	statStart   = 19
	statPages   = 21
	statFields  = 22

	clockTicks = 100 // of the figures in stat, on every architecture
)

// stat returns the fields of a process from its state on, or nil. The name before them may hold anything.
func stat(path string) [][]byte {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < statFields {
		return nil
	}
	return fields
}

// birth tells a process from a later one of the same id.
func birth(pid int) string {
	fields := stat("/proc/" + strconv.Itoa(pid) + "/stat")
	if fields == nil || fields[0][0] == 'Z' {
		return ""
	}
	return string(fields[statStart])
}

// usage adds up the processes of a group; false if there are none.
func usage(pid int) (u runtime.Usage, known bool) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return u, false
	}
	want := []byte(strconv.Itoa(pid))
	for _, file := range files {
		fields := stat(file)
		if fields == nil || !bytes.Equal(fields[statGroup], want) || fields[0][0] == 'Z' {
			continue
		}
		known = true
		number := func(i int) uint64 {
			n, err := strconv.ParseUint(string(fields[i]), 10, 64)
			if err != nil {
				return 0 // negative figures are the kernel's word for none
			}
			return n
		}
		u.CPUNanos += (number(statUser) + number(statSystem)) * (1e9 / clockTicks)
		u.MemoryBytes += number(statPages) * uint64(os.Getpagesize())
		u.Pids += number(statThreads)
	}
	return u, known
}
