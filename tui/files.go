package tui

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
)

type (
	// copyMsg tells how far a copy is.
	copyMsg struct {
		lease    string
		stream   <-chan view.Progress
		progress view.Progress
	}
	// copiedMsg is the end of a copy.
	copiedMsg struct {
		lease  string
		report view.CopyReport
		err    error
	}
)

// filesPrompt asks what to copy.
func (m *Model) filesPrompt(l view.Lease) *prompt {
	return &prompt{
		title: "Copy files, lease " + called(&l),
		fields: []field{
			choiceField("Way", []string{"out of the job", "into the job"}, 0, "which way the files go"),
			textField("In the job", "", "a file or folder of the job, relative to /work"),
			textField("Here", ".", "a file or folder of this machine; a / at the end of a source means its contents"),
		},
		do: func(p *prompt) (tea.Cmd, error) {
			here, err := localPath(p.value(2))
			if err != nil {
				return nil, err
			}
			r := view.CopyRequest{From: p.value(1), To: here}
			if p.fields[0].at == 1 {
				r = view.CopyRequest{Push: true, From: here, To: p.value(1)}
			} else if p.value(1) == "" {
				return nil, errors.New("name what is to be copied out of the job")
			}
			return m.leases.copy(l.ID, r), nil
		},
	}
}

// localPath makes a path of this machine absolute; ~ is the user's own folder, and a / at the end stays.
func localPath(text string) (string, error) {
	if rest, ok := strings.CutPrefix(text, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("your own folder is not known; write the whole path")
		}
		text = home + rest
	}
	path, err := filepath.Abs(text)
	if err != nil {
		return "", errors.New("the path is not known; write the whole path")
	}
	if text != "" && os.IsPathSeparator(text[len(text)-1]) && !strings.HasSuffix(path, "/") {
		path += "/"
	}
	return path, nil
}

// copy begins a copy and tells its progress.
func (l *leases) copy(id string, r view.CopyRequest) tea.Cmd {
	stream := make(chan view.Progress, 1)
	l.copies[id] = view.Progress{Scanning: true}
	run := l.work(func(ctx context.Context) tea.Msg {
		defer close(stream)
		report, err := l.Market.Copy(ctx, id, r, func(p view.Progress) {
			select {
			case stream <- p:
			default: // the screens are slower; the next one tells more
			}
		})
		return copiedMsg{id, report, err}
	})
	return tea.Batch(run, l.progressOf(id, stream))
}

func (l *leases) progressOf(id string, stream <-chan view.Progress) tea.Cmd {
	return l.work(func(context.Context) tea.Msg {
		p, more := <-stream
		if !more {
			return nil
		}
		return copyMsg{id, stream, p}
	})
}

func (l *leases) tookCopy(msg copyMsg) tea.Cmd {
	if _, going := l.copies[msg.lease]; going {
		l.copies[msg.lease] = msg.progress
	}
	return l.progressOf(msg.lease, msg.stream)
}

func (m *Model) tookCopied(msg copiedMsg) tea.Cmd {
	delete(m.leases.copies, msg.lease)
	if msg.err != nil {
		m.fault(msg.err)
		return m.check(msg.err)
	}
	m.say("copied "+plural(int(msg.report.Files), "file", "files")+", "+thousands(msg.report.Bytes, "B")+"; sent "+thousands(msg.report.Sent, "B"), false)
	return nil
}
