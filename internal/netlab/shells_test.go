//go:build linux

package netlab_test

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// box is a lease named box, which the clients that people bring enter.
type box struct{ *renter }

// enter writes the configuration of the renter's OpenSSH.
func (r *renter) enter() *box {
	r.t.Helper()
	require(r.t, "ssh", "sftp", "scp", "rsync")
	write(r.t, filepath.Join(r.dir, "ssh"), r.run("haggle", "ssh-config", "--print"))
	return &box{r}
}

// at returns the same lease for a subtest.
func (b *box) at(t *testing.T) *box {
	twin := *b.renter
	twin.t = t
	return &box{&twin}
}

// ssh makes a command of OpenSSH's.
func (b *box) ssh(name string, args ...string) *exec.Cmd {
	b.t.Helper()
	return b.command(name, append([]string{"-F", filepath.Join(b.dir, "ssh")}, args...)...)
}

// random makes a file that no compression helps with, and returns its hash as sha256sum writes it.
func (b *box) random(name string, size int) string {
	b.t.Helper()
	data := make([]byte, size)
	_, _ = rand.Read(data) // it never fails
	write(b.t, filepath.Join(b.dir, name), string(data))
	return sum(data)
}

func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// wantFile wants a file of the renter's to have a hash.
func (b *box) wantFile(name, hash string) {
	b.t.Helper()
	if got := sum(must[[]byte](b.t)(os.ReadFile(filepath.Join(b.dir, name)))); got != hash {
		b.t.Errorf("%s has changed on its way: %s, not %s", name, got, hash)
	}
}

// wantInside wants a file in the job to have a hash.
func (b *box) wantInside(name, hash string) {
	b.t.Helper()
	if got, want := b.start(b.ssh("ssh", "box", "sha256sum "+name)).wants(0), hash+"  "+name+"\n"; got != want {
		b.t.Errorf("in the job there is %q, want %q", got, want)
	}
}

// clients runs what people enter a job with.
func (b *box) clients() {
	for _, c := range []struct {
		name string
		run  func(*box)
	}{
		{"exit codes are the command's", (*box).exitCodes},
		{"input goes in to its end, and what comes out is whole", (*box).streams},
		{"sftp runs a batch", (*box).sftp},
		{"scp copies both ways", (*box).scp},
		{"rsync copies both ways", (*box).rsync},
		{"haggle's own commands go in and out", (*box).own},
	} {
		b.t.Run(c.name, func(t *testing.T) { c.run(b.at(t)) })
	}
}

func (b *box) exitCodes() {
	for _, code := range []int{0, 7, 255} {
		b.start(b.ssh("ssh", "box", fmt.Sprintf("exit %d", code))).wants(code)
	}
}

func (b *box) streams() {
	hash := b.random("stream", 32<<20)
	for _, cmd := range []*exec.Cmd{b.ssh("ssh", "box", "cat >stream"), b.ssh("ssh", "box", "cat stream | sha256sum")} {
		cmd.Stdin = must[*os.File](b.t)(os.Open(filepath.Join(b.dir, "stream")))
		if out := b.start(cmd).wants(0); out != "" && out != hash+"  -\n" {
			b.t.Errorf("what went in has the hash %q, want %s", out, hash)
		}
	}
	out := b.start(b.ssh("ssh", "box", "cat stream")).wants(0)
	if sum([]byte(out)) != hash {
		b.t.Errorf("%d bytes came out, which are not the ones that went in", len(out))
	}
}

func (b *box) sftp() {
	hash := b.random("f", 4<<20)
	cmd := b.ssh("sftp", "-b", "-", "box")
	cmd.Stdin = strings.NewReader("mkdir d\nput f d/g\nrename d/g d/h\nget d/h f2\nchmod 600 d/h\nls -l d\n")
	b.start(cmd).wants(0)
	b.wantFile("f2", hash)
	b.wantInside("d/h", hash)
}

func (b *box) scp() {
	hash := b.random("tree/a/big", 8<<20)
	b.start(b.ssh("scp", "-r", "tree", "box:scp")).wants(0)
	b.wantInside("scp/a/big", hash)
	b.start(b.ssh("scp", "-rp", "box:/work/scp", "back")).wants(0)
	b.wantFile("back/a/big", hash)
}

func (b *box) rsync() {
	hash := b.random("rs/big", 16<<20)
	shell := "ssh -F " + filepath.Join(b.dir, "ssh")
	b.run("rsync", "-a", "-e", shell, "rs/", "box:rs/")
	b.wantInside("rs/big", hash)
	b.run("rsync", "-a", "-e", shell, "box:rs/", "rs2/")
	b.wantFile("rs2/big", hash)
}

func (b *box) own() {
	hash := b.random("own/a/big", 64<<20)
	b.run("haggle", "cp", "own", "box:")
	b.wantInside("own/a/big", hash)
	b.run("haggle", "sync", "box:own", "own2")
	b.wantFile("own2/a/big", hash)
	b.start(b.command("haggle", "shell", "box", "--", "exit 9")).wants(9)
}
