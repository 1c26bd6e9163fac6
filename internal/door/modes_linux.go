package door

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// setModes makes a terminal behave as the client's does, as far as RFC 4254 section 8 has words for it.
func setModes(tty *os.File, modes string) {
	sc, err := tty.SyscallConn()
	if err != nil {
		return
	}
	_ = sc.Control(func(fd uintptr) {
		t, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		if err != nil {
			return
		}
		for b := []byte(modes); len(b) >= 5 && b[0] != 0 && b[0] < 160; b = b[5:] {
			setMode(t, b[0], binary.BigEndian.Uint32(b[1:]))
		}
		_ = unix.IoctlSetTermios(int(fd), unix.TCSETS, t)
	})
}

func setMode(t *unix.Termios, op byte, value uint32) {
	if at, ok := controlChars()[op]; ok {
		if value == 255 {
			value = 0 // RFC 4254: none
		}
		t.Cc[at] = byte(value)
		return
	}
	m, ok := modeBits()[op]
	if !ok {
		return
	}
	field := [...]*uint32{&t.Iflag, &t.Lflag, &t.Oflag, &t.Cflag}[m.field]
	if value != 0 {
		*field |= m.bit
	} else {
		*field &^= m.bit
	}
}

func controlChars() map[byte]int {
	return map[byte]int{
		1: unix.VINTR, 2: unix.VQUIT, 3: unix.VERASE, 4: unix.VKILL, 5: unix.VEOF, 6: unix.VEOL, 7: unix.VEOL2,
		8: unix.VSTART, 9: unix.VSTOP, 10: unix.VSUSP, 12: unix.VREPRINT, 13: unix.VWERASE, 14: unix.VLNEXT, 18: unix.VDISCARD,
	}
}

type modeBit struct {
	field int // 0 input, 1 local, 2 output, 3 control
	bit   uint32
}

func modeBits() map[byte]modeBit {
	return map[byte]modeBit{
		30: {0, unix.IGNPAR}, 31: {0, unix.PARMRK}, 32: {0, unix.INPCK}, 33: {0, unix.ISTRIP}, 34: {0, unix.INLCR},
		35: {0, unix.IGNCR}, 36: {0, unix.ICRNL}, 37: {0, unix.IUCLC}, 38: {0, unix.IXON}, 39: {0, unix.IXANY},
		40: {0, unix.IXOFF}, 41: {0, unix.IMAXBEL}, 42: {0, unix.IUTF8},
		50: {1, unix.ISIG}, 51: {1, unix.ICANON}, 52: {1, unix.XCASE}, 53: {1, unix.ECHO}, 54: {1, unix.ECHOE},
		55: {1, unix.ECHOK}, 56: {1, unix.ECHONL}, 57: {1, unix.NOFLSH}, 58: {1, unix.TOSTOP}, 59: {1, unix.IEXTEN},
		60: {1, unix.ECHOCTL}, 61: {1, unix.ECHOKE}, 62: {1, unix.PENDIN},
		70: {2, unix.OPOST}, 71: {2, unix.OLCUC}, 72: {2, unix.ONLCR}, 73: {2, unix.OCRNL}, 74: {2, unix.ONOCR}, 75: {2, unix.ONLRET},
		90: {3, unix.CS7}, 91: {3, unix.CS8}, 92: {3, unix.PARENB}, 93: {3, unix.PARODD},
	}
}

// isTerminal says whether a file is one.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
