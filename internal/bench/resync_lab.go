package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/lab"
	"haggle/internal/view"
	"haggle/market"
)

// receiptEvery is the time between two receipts where programs are killed: a short one, so that a kill meets some.
const receiptEvery = time.Second

// paidRig is the name of the lab's rig, and of its home.
const paidRig = "rig-1"

// paidLab is a lab of plain processes with a job that runs and is paid ahead, with play money.
type paidLab struct {
	*runningLab
	agent   *api.AgentClient
	owner   *api.RigClient
	daemons []daemon // of the rig and the agent
	lease   string
}

// daemon is a program that is killed and started again.
type daemon struct {
	name string
	args []string // of haggle
	log  string
	pid  func(context.Context) (int, error)
}

func startPaid(ctx context.Context) (*paidLab, error) {
	home, err := os.MkdirTemp("/tmp", "hgb")
	if err != nil {
		return nil, err
	}
	l := &paidLab{runningLab: &runningLab{home: home}}
	if err := l.find(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	if out, err := l.command(ctx, haggle, "lab", "up", "--engine", "process", "--rigs", rigs).CombinedOutput(); err != nil {
		err = fmt.Errorf("start a lab: %w: %s", err, bytes.TrimSpace(out))
		if begun, _ := filepath.Glob(filepath.Join(home, "rig-*")); len(begun) == 0 { // the pattern is well formed
			return nil, errors.Join(err, os.RemoveAll(home))
		}
		l.stop()
		return nil, err
	}
	if err := l.hurry(ctx); err != nil {
		l.stop()
		return nil, err
	}
	if err := l.rent(ctx); err != nil {
		l.stop()
		return nil, err
	}
	return l, nil
}

// find notes where the lab's programs answer and how they are started.
func (l *paidLab) find() error {
	agent, err := config.AgentPaths(l.home)
	if err != nil {
		return err
	}
	if l.rig, err = config.RigPaths(filepath.Join(l.home, paidRig)); err != nil {
		return err
	}
	l.agent, l.owner = api.DialAgent(agent.Socket), api.DialRig(l.rig.Socket)
	l.daemons = []daemon{
		{name: "rig", args: []string{lab.RigCommand, "serve", "--home", l.rig.Home}, log: l.rig.Log, pid: l.rigPID},
		{name: "agent", args: []string{"agent", "run", "--home", l.home}, log: agent.Log, pid: func(ctx context.Context) (int, error) {
			s, err := l.agent.Status(ctx)
			return s.PID, err
		}},
	}
	return nil
}

func (l *paidLab) stop() {
	l.agent.Close()
	l.owner.Close()
	l.runningLab.stop()
}

// hurry has the rig ask for a receipt every second, and waits until the agent knows.
func (l *paidLab) hurry(ctx context.Context) error {
	cfg, err := lab.LoadRig(l.rig.Home)
	if err != nil {
		return err
	}
	cfg.Rules.First, cfg.Rules.Interval = receiptEvery, receiptEvery
	if err := config.WriteRig(cfg.Paths.Config, cfg); err != nil {
		return err
	}
	pid, err := l.rigPID(ctx)
	if err != nil {
		return err
	}
	if err := killed(pid); err != nil {
		return err
	}
	if err := l.daemons[0].start(ctx); err != nil {
		return err
	}
	return l.wait(ctx, "an offer with a receipt every second", func(ctx context.Context) bool {
		o, err := l.agent.Offer(ctx, paidRig)
		return err == nil && o.Rentable && o.Free > 0 && len(o.Images) > 0 && len(o.Pays) > 0 && o.Rules.IntervalMs == receiptEvery.Milliseconds()
	})
}

// rent has a job run that does next to nothing and is paid for.
func (l *paidLab) rent(ctx context.Context) error {
	c := l.command(ctx, haggle, "bid", "--offer", paidRig, "--image", "lab", "--for", "2h", "--budget", "5.00", "--pay", "lab",
		"--", "train", "--checkpoint", filepath.Join(l.home, "checkpoint"), "--steps", "1000000", "--step-time", "1s")
	var out, complaint bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaint
	if err := c.Run(); err != nil {
		return fmt.Errorf("haggle bid: %w: %s", err, bytes.TrimSpace(complaint.Bytes()))
	}
	l.lease = strings.TrimSpace(out.String())
	return l.wait(ctx, "a job that is paid and runs", func(ctx context.Context) bool {
		v, err := l.agent.Lease(ctx, l.lease)
		return err == nil && v.State == string(market.JobRunning) && v.Pay != nil && v.Pay.Payments > 0 && v.Receipts > 0
	})
}

// start starts a program that has been killed. The lab's end ends it.
func (d daemon) start(ctx context.Context) error {
	program, err := filepath.Abs(haggle)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(d.log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.CommandContext(context.WithoutCancel(ctx), program, d.args...)
	c.Stdout, c.Stderr, c.SysProcAttr = log, log, &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return fmt.Errorf("start the %s: %w", d.name, err)
	}
	go func() { _ = c.Wait() }() // how it ends shows in what is measured
	return nil
}

// agreed waits until both sides hold the same receipts, which begin with those before and have at least one more, and both say
// that the job runs and that they are connected. It returns the receipts.
func (l *paidLab) agreed(ctx context.Context, before [][]byte) (chain [][]byte, err error) {
	var fault error
	err = l.wait(ctx, "the same receipts on both sides", func(ctx context.Context) bool {
		if !l.alike(ctx, len(before)) {
			return false
		}
		mine, errMine := receiptsOf(l.agent.Evidence(ctx, l.lease))
		theirs, errTheirs := receiptsOf(l.owner.Evidence(ctx, l.lease))
		n := len(mine)
		if errMine != nil || errTheirs != nil || n <= len(before) || len(theirs) < n || !slices.EqualFunc(mine, theirs[:n], bytes.Equal) {
			return false
		}
		if !slices.EqualFunc(before, mine[:len(before)], bytes.Equal) {
			fault = errors.New("a receipt that both had signed is lost")
		}
		chain = mine
		return true
	})
	return chain, errors.Join(err, fault)
}

// alike tells whether both sides' views of the lease agree on a newest receipt after so many.
func (l *paidLab) alike(ctx context.Context, after int) bool {
	mine, err := l.agent.Lease(ctx, l.lease)
	if err != nil {
		return false
	}
	list, err := l.owner.Leases(ctx, true)
	i := slices.IndexFunc(list, func(v view.Lease) bool { return v.ID == l.lease })
	if err != nil || i < 0 || list[i].Receipts != mine.Receipts || int(mine.Receipts) <= after {
		return false
	}
	for _, v := range []view.Lease{mine, list[i]} {
		if v.State != string(market.JobRunning) || !v.Connected {
			return false
		}
	}
	return true
}

func receiptsOf(evidence []byte, err error) ([][]byte, error) {
	if err != nil {
		return nil, err
	}
	e, err := market.DecodeEvidence(evidence)
	return e.Receipts, err
}

// wait is wait with a limit of its own.
func (l *paidLab) wait(ctx context.Context, what string, ask func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	return wait(ctx, what, func() bool { return ask(ctx) })
}
