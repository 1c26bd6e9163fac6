package tui

import (
	"errors"
	"os"
	"path"
	"strconv"
	"strings"

	"haggle/internal/view"
)

// brings reads what goes into the job and comes out of it. Where that makes no sense, the error says what is wrong with which
// field.
func (f *form) brings(b *view.BidRequest) (at int, err error) {
	if text := f.fields[fieldSource].value(); text != "" {
		if b.Src, err = localPath(text); err != nil {
			return fieldSource, err
		}
		b.Src, b.SrcIgnore = strings.TrimSuffix(b.Src, "/"), true
	}
	words, err := splitWords(f.fields[fieldCollect].value())
	if err != nil {
		return fieldCollect, err
	}
	for _, word := range words {
		remote, local, _ := strings.Cut(word, ":")
		if remote == "" {
			return fieldCollect, errors.New("name what the job leaves behind, such as out or out:results")
		}
		if local == "" {
			local = path.Base(strings.TrimRight(remote, "/"))
		}
		if local, err = localPath(local); err != nil {
			return fieldCollect, err
		}
		b.Collect = append(b.Collect, view.Collect{Remote: remote, Local: local})
	}
	if b.Ports, err = parsePorts(f.fields[fieldPorts].value()); err != nil {
		return fieldPorts, err
	}
	return 0, nil
}

// parsePorts reads ports, with or without names.
func parsePorts(text string) ([]view.Port, error) {
	var list []view.Port
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		name, number, named := strings.Cut(word, "=")
		if !named {
			name, number = "", word
		}
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || n == 0 {
			return nil, errors.New("write a port from 1 to 65535, such as 8888 or jupyter=8888")
		}
		list = append(list, view.Port{Name: name, Port: uint16(n)})
	}
	return list, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
