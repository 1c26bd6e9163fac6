package rigcore

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"

	"haggle/internal/host"
)

// memoryStatus is MEMORYSTATUSEX.
type memoryStatus struct {
	length, load                     uint32
	total, free                      uint64
	totalPages, freePages            uint64
	totalVirtual, freeVirtual, extra uint64
}

// describe fills in what the system says.
func describe(m *host.Machine) error {
	status := memoryStatus{length: uint32(unsafe.Sizeof(memoryStatus{}))}
	call := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")
	if ok, _, err := call.Call(uintptr(unsafe.Pointer(&status))); ok == 0 {
		return err
	}
	m.Memory = int64(status.total)
	m.CPU = os.Getenv("PROCESSOR_IDENTIFIER")
	v := windows.RtlGetVersion()
	m.Kernel = fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
	return nil
}

// space returns the bytes of a file's disk: those that are free for us, and all.
func space(path string) (free, total int64, err error) {
	folder, err := windows.UTF16PtrFromString(filepath.Dir(path))
	if err != nil {
		return 0, 0, err
	}
	var ours, all uint64
	if err := windows.GetDiskFreeSpaceEx(folder, &ours, &all, nil); err != nil {
		return 0, 0, err
	}
	return int64(ours), int64(all), nil
}
