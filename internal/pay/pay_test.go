//go:build unix

package pay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"haggle/internal/pay"
)

// script writes a payment program for the shell.
func script(t *testing.T, folder, method, text string) {
	t.Helper()
	path := filepath.Join(folder, "haggle-pay-"+method)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}

func programs(t *testing.T, c pay.Config) *pay.Programs {
	t.Helper()
	c.Network = "lab-x"
	if c.Side == "" {
		c.Side = pay.Payer
	}
	p, err := pay.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func order(method string) pay.Order {
	return pay.Order{ID: "ab-1", Method: method, Currency: "USD", Amount: 1_000_000, Request: "pay me"}
}

const good = `{"haggle_pay":1,"state":"settled","amount":1000000,"reference":"r-1"}`

func TestEveryWayToAnswerBadlyIsAnError(t *testing.T) {
	answer := func(text string) string { return "cat >/dev/null; cat <<'END'\n" + text + "\nEND\n" }
	state := func(rest string) string { return answer(`{"haggle_pay":1,` + rest + `}`) }
	for name, text := range map[string]string{
		"nothing":                        "exit 0",
		"it is no JSON":                  answer("paid!"),
		"two answers":                    answer(good + good),
		"another version":                answer(strings.Replace(good, "1", "2", 1)),
		"no version":                     answer(`{"state":"unknown"}`),
		"no state":                       state(`"amount":1`),
		"a state that is none":           state(`"state":"\u001b[31mrich"`),
		"more than the order":            state(`"state":"settled","amount":1000001`),
		"a negative amount":              state(`"state":"pending","amount":-1`),
		"an amount without end":          state(`"state":"pending","amount":99999999999999999999`),
		"an amount above every bound":    state(`"state":"pending","amount":9000000000000000000`),
		"a fraction":                     state(`"state":"settled","amount":1000000.5`),
		"settled with nothing":           state(`"state":"settled"`),
		"failed with money":              state(`"state":"failed","amount":1`),
		"a long reference":               state(`"state":"pending","reference":"` + strings.Repeat("r", 129) + `"`),
		"a reference that rings":         state(`"state":"pending","reference":"r\u0007"`),
		"a long QR code":                 state(`"state":"waiting","qr":"` + strings.Repeat("q", 2049) + `"`),
		"output without end":             "cat >/dev/null; yes '{}' 2>/dev/null",
		"output without end, unkillable": "trap '' PIPE TERM HUP; while :; do echo '{}' 2>/dev/null; done",
		"death by a signal":              "kill -SEGV $$",
		"death after an answer":          answer(good) + "exit 3",
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			script(t, folder, "bad", text)
			a, err := programs(t, pay.Config{Folders: []string{folder}, Slow: 20 * time.Second}).Pay(t.Context(), order("bad"))
			if !errors.Is(err, pay.ErrNonsense) || a != (pay.Answer{}) {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

func TestAProgramGetsItsCallOnStdinAndAlmostNoEnvironment(t *testing.T) {
	t.Setenv("HAGGLE_SECRET", "s")
	folder := t.TempDir()
	script(t, folder, "echo", `cat >call; env >env; echo '`+good+`'`)
	a, err := programs(t, pay.Config{Folders: []string{folder}, Settings: map[string]map[string]string{
		"echo": {"token": "t"}, "other": {"token": "not yours"},
	}}).Pay(t.Context(), order("echo"))
	if err != nil || a != (pay.Answer{State: pay.Settled, Amount: 1_000_000, Reference: "r-1"}) {
		t.Fatalf("%+v, %v", a, err)
	}
	call, err := os.ReadFile(filepath.Join(folder, "call"))
	want := `{"haggle_pay":1,"op":"pay","side":"payer","network":"lab-x","method":"echo","id":"ab-1","currency":"USD","amount":1000000,` +
		`"request":"pay me","settings":{"token":"t"}}`
	if err != nil || string(call) != want {
		t.Errorf("the call is %s, %v", call, err)
	}
	env, err := os.ReadFile(filepath.Join(folder, "env"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(env)) {
		// PWD, OLDPWD, SHLVL and _ are the shell's own.
		if key, _, _ := strings.Cut(line, "="); !slices.Contains([]string{"PATH", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "_"}, key) {
			t.Errorf("it inherits %s", line)
		}
	}
}

func TestAProgramsNoIsItsOwnAndIsTidied(t *testing.T) {
	folder := t.TempDir()
	script(t, folder, "no", `echo '{"haggle_pay":1,"error":"no \u001b[2Jfunds"}'; exit 1`)
	var no *pay.RefusedError
	if _, err := programs(t, pay.Config{Folders: []string{folder}}).Pay(t.Context(), order("no")); !errors.As(err, &no) || no.Why != "no [2Jfunds" {
		t.Errorf("refused with %v", err)
	}
	script(t, folder, "text", `printf '%s' '{"haggle_pay":1,"state":"waiting","text":"a\u202eb\u0007\nc"}'`)
	if a, err := programs(t, pay.Config{Folders: []string{folder}}).Pay(t.Context(), order("text")); err != nil || a.Text != "ab\nc" {
		t.Errorf("%q, %v", a.Text, err)
	}
}

// gone reports whether the process whose number a file holds has ended.
func gone(t *testing.T, path string) bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for range 200 { // it is init that reaps it
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil && syscall.Kill(pid, 0) != nil || err == nil && bytes.Contains(stat, []byte(") Z ")) {
			return true
		}
		<-time.After(10 * time.Millisecond)
	}
	return false
}

func TestAProgramThatHangsIsEndedWithItsChildren(t *testing.T) {
	folder := t.TempDir()
	script(t, folder, "hang", `sleep 1000 & echo $! >child; trap '' TERM; wait`)
	begun := time.Now()
	_, err := programs(t, pay.Config{Folders: []string{folder}, Slow: 300 * time.Millisecond}).Pay(t.Context(), order("hang"))
	if !errors.Is(err, pay.ErrTimeout) {
		t.Errorf("the error is %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if !gone(t, filepath.Join(folder, "child")) {
		t.Error("its child lives on")
	}
}

func TestAChildThatHoldsStdoutDoesNotDelayTheAnswer(t *testing.T) {
	folder := t.TempDir()
	script(t, folder, "fork", `sleep 1000 & echo $! >child; echo '`+good+`'`)
	a, err := programs(t, pay.Config{Folders: []string{folder}}).Pay(t.Context(), order("fork"))
	if err != nil || a.State != pay.Settled {
		t.Errorf("%+v, %v", a, err)
	}
	if !gone(t, filepath.Join(folder, "child")) {
		t.Error("the child lives on")
	}
	begun := time.Now()
	script(t, folder, "leave", `setsid sleep 5 & echo '`+good+`'`)
	if a, err := programs(t, pay.Config{Folders: []string{folder}}).Pay(t.Context(), order("leave")); err != nil || a.State != pay.Settled {
		t.Errorf("%+v, %v", a, err)
	}
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("it waited %s for a child that left its group", took)
	}
}

func TestTheEndOfTheContextEndsTheProgram(t *testing.T) {
	folder := t.TempDir()
	script(t, folder, "hang", `echo $$ >child; sleep 1000`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(300*time.Millisecond, cancel)
	if _, err := programs(t, pay.Config{Folders: []string{folder}}).Pay(ctx, order("hang")); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestOnlyProgramsThatNobodyElseCanWriteAreRun(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "haggle-pay-x")
	for name, prepare := range map[string]func() error{
		"missing":                    func() error { return nil },
		"not executable":             func() error { return os.Chmod(path, 0o600) },
		"writable by anybody":        func() error { return os.Chmod(path, 0o707) },
		"in a folder of everybody":   func() error { return os.Chmod(folder, 0o777) },
		"a link":                     func() error { return errors.Join(os.Rename(path, folder+"/real"), os.Symlink("real", path)) },
		"a folder":                   func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"a pipe":                     func() error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o700)) },
		"under a name in upper case": func() error { return os.Rename(path, filepath.Join(folder, "haggle-pay-X")) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700)); err != nil {
				t.Fatal(err)
			}
			if name != "missing" {
				script(t, folder, "x", `echo '{"haggle_pay":1,"settles":"instant"}'`)
			}
			p := programs(t, pay.Config{Folders: []string{folder}})
			if name != "missing" && len(p.Methods(t.Context())) != 1 {
				t.Fatal("it does not work to begin with")
			}
			if err := prepare(); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Pay(t.Context(), order("x")); !errors.Is(err, pay.ErrMissing) {
				t.Errorf("the error is %v", err)
			}
			if m := p.Methods(t.Context()); len(m) != 0 {
				t.Errorf("it is a method: %+v", m)
			}
		})
	}
	for _, method := range []string{"", "../x", "X", "none", "balance", strings.Repeat("x", 40)} {
		if _, err := programs(t, pay.Config{Folders: []string{folder}}).Pay(t.Context(), order(method)); !errors.Is(err, pay.ErrMissing) {
			t.Errorf("%q: %v", method, err)
		}
	}
}

func TestTheFirstFolderThatHasANameHasIt(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	describes := func(text string) string {
		return `echo x >>"$0.calls"; echo '{"haggle_pay":1,"settles":"hand","currencies":["EUR"],"text":"` + text + `"}'`
	}
	script(t, one, "b", describes("mine"))
	script(t, two, "b", describes("theirs"))
	script(t, two, "a", describes("also"))
	script(t, two, "sick", "exit 1")
	script(t, two, "asleep", "exit 1") // which nobody has set up
	for _, file := range []string{"haggle-pay-", "haggle-pay-none", "haggle-pay-Big", "pay-c"} {
		if err := os.WriteFile(filepath.Join(one, file), nil, 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	var logged bytes.Buffer
	p := programs(t, pay.Config{Folders: []string{filepath.Join(one, "missing"), one, two}, Settings: map[string]map[string]string{"sick": {}}, Log: slog.New(slog.NewTextHandler(&logged, nil))})
	want := []pay.Method{
		{Name: "a", Settles: pay.ByHand, Currencies: []string{"EUR"}, Text: "also"},
		{Name: "b", Settles: pay.ByHand, Currencies: []string{"EUR"}, Text: "mine"},
	}
	for range 3 {
		if got := p.Methods(t.Context()); !slices.EqualFunc(got, want, func(a, b pay.Method) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
			t.Errorf("methods are %+v", got)
		}
	}
	if n := strings.Count(logged.String(), "left out"); n != 1 || !strings.Contains(logged.String(), "haggle-pay-sick") {
		t.Errorf("the log says:\n%s", logged.String())
	}
	if calls, err := os.ReadFile(filepath.Join(one, "haggle-pay-b.calls")); err != nil || string(calls) != "x\n" {
		t.Errorf("it was asked more than once: %q, %v", calls, err)
	}
	if f := p.Survey(t.Context()); len(f) != 4 || f[3].Method.Name != "sick" || f[3].Err == nil {
		t.Errorf("the survey is %+v", f)
	}
}

func TestAPayeeMayReceiveMoreThanItAskedFor(t *testing.T) {
	folder := t.TempDir()
	script(t, folder, "more", `echo '{"haggle_pay":1,"state":"settled","amount":5000000}'`)
	p := programs(t, pay.Config{Folders: []string{folder}, Side: pay.Payee})
	if a, err := p.Status(t.Context(), order("more")); err != nil || a.Amount != 5_000_000 {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := p.Request(t.Context(), order("more")); !errors.Is(err, pay.ErrNonsense) {
		t.Errorf("it asks for nothing, and that is %+v, %v", a, err)
	}
}

func TestARigsProgramIsNeverAskedToPay(t *testing.T) {
	folder := t.TempDir()
	script(t, folder, "x", `touch ran; echo '`+good+`'`)
	payee := programs(t, pay.Config{Folders: []string{folder}, Side: pay.Payee})
	_, paid := payee.Pay(t.Context(), order("x"))
	_, quoted := payee.Quote(t.Context(), order("x"))
	_, asked := programs(t, pay.Config{Folders: []string{folder}}).Request(t.Context(), order("x"))
	if paid == nil || quoted == nil || asked == nil {
		t.Errorf("pay: %v, quote: %v, request by a payer: %v", paid, quoted, asked)
	}
	if _, err := os.Stat(filepath.Join(folder, "ran")); err == nil {
		t.Error("it ran")
	}
}

func TestQuotesAreBounded(t *testing.T) {
	folder := t.TempDir()
	script(t, folder, "fee", `echo '{"haggle_pay":1,"fee":1200,"seconds":3}'`)
	script(t, folder, "greedy", `echo '{"haggle_pay":1,"fee":-1}'`)
	p := programs(t, pay.Config{Folders: []string{folder}})
	if q, err := p.Quote(t.Context(), order("fee")); err != nil || q != (pay.Quote{Fee: 1200, Seconds: 3}) {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := p.Quote(t.Context(), order("greedy")); !errors.Is(err, pay.ErrNonsense) {
		t.Errorf("the error is %v", err)
	}
}

func TestAmountsForPeopleComeBack(t *testing.T) {
	for micro, text := range map[int64]string{0: "0.00", 1: "0.000001", 400_000: "0.40", 1_230_000: "1.23", 20_000_000: "20.00", 1_234_500: "1.2345", 1e15: "1000000000.00"} {
		if got := pay.FormatAmount(micro); got != text {
			t.Errorf("%d is %s", micro, got)
		}
		if got, err := pay.ParseAmount(text); err != nil || got != micro {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", ".5", "-1", "1e3", "1,5", "0.0000001", "1 ", "10000000000", "1000000000.000001", "٣"} {
		if got, err := pay.ParseAmount(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}
