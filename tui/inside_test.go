package tui_test

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
	"haggle/tui"
)

// inside has a job with everything that can be inside one, one whose disk is kept, one that is being sent, and one whose files
// came home.
func inside() *fakeMarket {
	f := full()
	now := time.Now().UnixMilli()
	rich := lease(1, "rig-2", "running", 1_000_000)
	rich.Name, rich.Labels, rich.DiskMB = "cats", []string{"project=a\x1b[2Jb"}, 10_000
	rich.Ports = []view.Port{{Name: "jupyter", Port: 8888}, {Port: 6006}}
	rich.Collects = []view.Collected{{Remote: "out/", Local: "/home/me/out"}}
	rich.Checkpoints = []view.CheckpointInfo{{Seq: 1, AtMs: now - 600_000, Bytes: 1000}, {Seq: 2, AtMs: now, Bytes: 12_345_678}}
	kept := lease(2, "rig-2", "paused", 1_000_000)
	kept.Name, kept.KeptMs, kept.DiskMB, kept.DiskUsed, kept.Reason = "dogs", 5_400_000, 10_000, 3_200_000_000, "renter"
	sending := lease(3, "rig-1", "preparing", 1_000_000)
	sending.Uploading = &view.Progress{What: "files", Files: 10_000, FilesDone: 4_321, Bytes: 3_000_000_000, BytesDone: 1_200_000_000}
	done := lease(4, "rig-1", "ended", 1_000_000)
	code := int64(0)
	done.Exit, done.Reason, done.Debt, done.Attempt, done.Resumed = &code, "completed", "final", 1, kept.ID
	done.Collects = []view.Collected{
		{Remote: "out/", Local: "/home/me/out", Done: true, Files: 3, Bytes: 9_000_000},
		{Remote: "log", Local: "/home/me/log", Done: true, Error: "the job left no log"},
		{Remote: "more", Local: "/home/me/more"},
	}
	for i, l := range []*view.Lease{&rich, &kept, &sending, &done} {
		l.Created = now - int64(i)*1000
	}
	f.leases = []view.Lease{rich, kept, sending, done}
	f.logs[rich.ID] = newFakeLog("step 1  loss 2.301")
	return f
}

func TestADiskIsKeptUsedAgainAndDestroyed(t *testing.T) {
	open(t, inside, 80, 24, nil, func(s *screen) {
		s.press("2", "R")
		s.sees("only a lease whose disk is kept")
		s.press("K")
		s.sees("Keep the disk?", "Kept, it costs 0.002 USD an hour")
		s.pass(400 * time.Millisecond)
		s.press("y")
		s.sees("○ paused", "its disk is kept")
		s.press("x")
		s.sees("the job does not run")
		s.sees("step 1  loss 2.301")
		s.market.mu.Lock()
		s.market.logs[s.market.leases[0].ID] = newFakeLog("step 1 of the second start")
		s.market.mu.Unlock()
		s.press("R")
		s.sees("○ preparing", "start 2")
		s.pass(400 * time.Millisecond)
		s.sees("step 1 of the second start")
		s.lacks("loss 2.301")
		s.market.change(s.market.leases[0].ID, func(l *view.Lease) { l.State = "paused" })
		s.pass(400 * time.Millisecond)
		s.press("D")
		s.sees("Destroy the disk?", "Nobody can")
		s.pass(400 * time.Millisecond)
		s.press("n")
		s.lacks("Destroy")
		s.press("D")
		s.pass(400 * time.Millisecond)
		s.press("y")
		s.sees("its disk is destroyed")
		if want := []string{"keep", "resume", "remove"}; !slices.Equal(s.market.orders, want) {
			t.Errorf("orders %v, want %v", s.market.orders, want)
		}
	})
}

func TestMoreTimeIsPricedBeforeItIsAskedFor(t *testing.T) {
	open(t, inside, 80, 24, nil, func(s *screen) {
		s.press("2", "e")
		s.sees("Extend lease cats", "about 0.36 USD", "then 2h in all, at most 1.36 USD")
		s.press("backspace", "backspace")
		s.press("enter")
		s.sees("write a time, an amount of money, or both")
		s.write("2d")
		s.press("enter")
		s.sees("the rig now asks 0.40")
		s.press("e")
		s.press("tab")
		s.write("0.50")
		s.sees("1h adds 0.50 USD")
		s.press("enter")
		s.sees("both signed more time")
	})
}

func TestFilesAreCopiedBothWays(t *testing.T) {
	open(t, inside, 80, 24, nil, func(s *screen) {
		s.press("2", "f", "tab", "tab", "enter")
		s.sees("name what is to be copied out of the job")
		s.press("shift+tab")
		s.write("out/model")
		s.press("enter")
		s.sees("copying", "50 %  2 kB of 4 kB, 2 of 4 files")
		close(s.market.copied)
		s.settle()
		s.sees("copied 4 files, 4 kB; sent 3 kB")
		s.lacks("copying")
		s.press("f", "right", "tab")
		s.write("in")
		s.press("tab", "backspace")
		s.write("/tmp/")
		s.press("enter")
		if got := s.market.copies; len(got) != 2 || got[0].From != "out/model" || got[0].Push || !strings.HasPrefix(got[0].To, "/") ||
			got[1] != (view.CopyRequest{Push: true, From: "/tmp/", To: "in"}) {
			t.Errorf("copies: %+v", got)
		}
	})
}

func TestAPortIsChosenAndItsLinkCopied(t *testing.T) {
	var asked []uint16
	with := func(c *tui.Config) {
		c.Forward = func(_ context.Context, _ string, port uint16) (string, error) {
			if asked = append(asked, port); port == 6006 {
				return "", market.NewError(market.CodePortClosed, "port", "6006")
			}
			return "http://127.0.0.1:8888/lab?token=abc", nil
		}
	}
	open(t, inside, 80, 24, with, func(s *screen) {
		s.press("2", "o")
		s.sees("Open a port", "jupyter=8888")
		s.press("enter")
		s.sees("clipboard: http://127.0.0.1:8888/lab?token=abc", "open: http://127.0.0.1:8888/lab?token=abc")
		s.press("o", "right", "enter")
		s.sees("nothing in the job listens on port 6006")
		s.press("down", "o")
		s.write("x")
		s.press("enter")
		s.sees("write a port from 1 to 65535")
		s.press("esc")
		if !slices.Equal(asked, []uint16{8888, 6006}) {
			t.Errorf("asked for %v", asked)
		}
	})
}

func TestAShellIsThatOfTheChosenLease(t *testing.T) {
	asked := ""
	with := func(c *tui.Config) {
		c.Shell = func(lease string) *exec.Cmd { asked = lease; return exec.CommandContext(context.Background(), "true") }
	}
	open(t, inside, 80, 24, with, func(s *screen) {
		s.press("2", "down", "s")
		if asked != s.market.leases[1].ID {
			t.Errorf("a shell of %q", asked)
		}
	})
	open(t, inside, 80, 24, nil, func(s *screen) {
		s.press("2", "s")
		s.sees("`haggle shell")
	})
}

func TestTheFormSendsWhatTheJobBrings(t *testing.T) {
	open(t, full, 80, 24, nil, func(s *screen) {
		s.press("end", "enter", "up")
		s.write("cats")
		s.press("up")
		s.write("jupyter=8888 x")
		s.sees("write a port from 1 to 65535")
		s.press("backspace", "backspace", "up")
		s.write("out/ log:/tmp/log")
		s.press("up")
		s.write("/nosuch")
		s.press("enter")
		s.sees("there is no folder /nosuch")
		for range "nosuch" {
			s.press("backspace")
		}
		s.write("tmp")
		s.press("enter")
		s.sees("the files of /tmp are sent before the start")
		s.pass(400 * time.Millisecond)
		s.press("y")
		if len(s.market.bids) != 1 {
			t.Fatalf("bids: %+v", s.market.bids)
		}
		b := s.market.bids[0]
		if b.Name != "cats" || b.Src != "/tmp" || !b.SrcIgnore || !slices.Equal(b.Ports, []view.Port{{Name: "jupyter", Port: 8888}}) ||
			len(b.Collect) != 2 || b.Collect[1] != (view.Collect{Remote: "log", Local: "/tmp/log"}) || !strings.HasSuffix(b.Collect[0].Local, "/out") {
			t.Errorf("bid: %+v", b)
		}
	})
}
