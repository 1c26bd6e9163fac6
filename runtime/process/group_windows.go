package process

import (
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"haggle/runtime"
)

// group is the job object of a job. The system ends what is in it with the supervisor.
type group struct{ object windows.Handle }

func newGroup(p *os.Process) (group, error) {
	object, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return group{}, err
	}
	g := group{object}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	if _, err := windows.SetInformationJobObject(object, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		g.close()
		return group{}, err
	}
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err != nil {
		g.close()
		return group{}, err
	}
	defer func() { _ = windows.CloseHandle(process) }() // nothing was written through it
	if err := windows.AssignProcessToJobObject(object, process); err != nil {
		g.close()
		return group{}, err
	}
	return g, nil
}

// ask cannot ask: a process without a console gets no signals.
func (g group) ask() bool { return false }

// kill ends every process of the job; none is no fault.
func (g group) kill() { _ = windows.TerminateJobObject(g.object, killedCode) }

func (g group) close() { _ = windows.CloseHandle(g.object) }

// killGone has nothing to do: the system ended the job with its supervisor.
func killGone(started) {}

func exitCode(s *os.ProcessState) int { return s.ExitCode() }

// detached starts a supervisor that neither a terminal's end nor Ctrl-C reaches.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}

func jobAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW}
}

func birth(int) string { return "" }

// usage is not known of a running job here.
func usage(int) (runtime.Usage, bool) { return runtime.Usage{}, false }

// executable returns the name that a program must have to be run.
func executable(path string) string {
	if filepath.Ext(path) != "" {
		return path
	}
	return path + ".exe"
}
