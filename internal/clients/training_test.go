//go:build linux && clients

package clients_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// training learns digits that Debian's package of scikit-learn brings, one epoch after the other. Whatever it needs to go on it
// writes to /work/ckpt after each, and the model to /work/out. Equal epochs give equal bytes, whoever computed them and where.
const training = `
import hashlib, json, os, random, sys, time
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

epochs, pause = int(sys.argv[1]), float(sys.argv[2])
x, y = load_digits(return_X_y=True)
x, test, y, answers = x[:1200] / 16, x[1200:] / 16, y[:1200], y[1200:]
os.makedirs("ckpt", exist_ok=True)
os.makedirs("out", exist_ok=True)
model = SGDClassifier(learning_rate="constant", eta0=0.01, shuffle=False)
done = 0
if os.path.exists("ckpt/state.npz"):
    state = np.load("ckpt/state.npz")
    done = int(state["done"])
    model.partial_fit(x[:10], y[:10], classes=np.arange(10))
    model.coef_, model.intercept_, model.t_ = state["coef"], state["intercept"], float(state["t"])
    print("resumed after epoch", done, "attempt", os.environ.get("HAGGLE_ATTEMPT", "-"), flush=True)
for epoch in range(done, epochs):
    order = np.random.RandomState(epoch).permutation(len(x))
    model.partial_fit(x[order], y[order], classes=np.arange(10))
    with open("ckpt/state.tmp", "wb") as f:
        np.savez(f, done=epoch + 1, coef=model.coef_, intercept=model.intercept_, t=model.t_)
    os.replace("ckpt/state.tmp", "ckpt/state.npz")
    figure = hashlib.sha256(model.coef_.tobytes() + model.intercept_.tobytes()).hexdigest()
    print("epoch", epoch + 1, "right %.4f" % model.score(test, answers), figure[:16], flush=True)
    time.sleep(pause)
model.coef_.astype("<f8").tofile("out/coef")
print("model", hashlib.sha256(open("out/coef", "rb").read()).hexdigest(), flush=True)
`

const epochs = 12

// trainee is a lab in which the training was done once without a break.
type trainee struct {
	*lab
	image   string
	figures []string // what each epoch printed, and the model's hash
}

// TestATrainingMovesToAnotherRig trains once without a break, and again with a break half-way and the rest on another rig.
func TestATrainingMovesToAnotherRig(t *testing.T) {
	h := &trainee{lab: newLab(t, 2), image: tools().archive(t)}
	h.write("src/train.py", training)
	h.write("src/data.bin", strings.Repeat("x", 1<<20))
	h.write("src/.gitignore", "*.bin\n")
	whole := h.run("haggle", h.train("run", "rig-1", "whole", "0")...)
	h.figures = figures(whole)
	if len(h.figures) != epochs+1 {
		t.Fatalf("the training printed\n%s", whole)
	}
	if got := "model " + sum(h.read("whole/coef")) + "\n"; got != h.figures[epochs] {
		t.Errorf("the model that came home is %s, its job printed %s", got, h.figures[epochs])
	}
	t.Run("after its kill", func(t *testing.T) {
		h := h.at(t)
		first := h.half("first")
		h.run("haggle", "stop", "--kill", first)
		h.awaitState(first, "ended")
		h.rest(first, "second")
	})
	t.Run("after its rig has gone", func(t *testing.T) {
		h := h.at(t)
		third := h.half("third")
		h.killRig(1)
		defer h.restartRig(1)
		h.rest(third, "fourth")
	})
}

func (h *trainee) at(t *testing.T) *trainee {
	t.Helper()
	twin := *h
	twin.lab = h.in(t)
	return &twin
}

// train is the command line of a training that rests after each epoch and brings its model home.
func (h *trainee) train(verb, rig, home, rest string, more ...string) []string {
	args := append([]string{
		verb, "--offer", rig, "--image", h.image, "--src", filepath.Join(h.work, "src"), "--for", "1h",
		"--collect", "out:" + filepath.Join(h.work, home),
	}, more...)
	return append(args, "--", "python3", "train.py", strconv.Itoa(epochs), rest)
}

// figures returns the lines of a log that equal trainings have in common.
func figures(log string) []string {
	return regexp.MustCompile(`(?m)^(epoch|model) .*\n`).FindAllString(log, -1)
}

// half starts a training on the first rig and returns its lease when a checkpoint of it is here.
func (h *trainee) half(name string) string {
	h.t.Helper()
	id := strings.TrimSpace(h.run("haggle", h.train("bid", "rig-1", name, "3", "--name", name, "--checkpoint", "10s")...))
	await(h.t, "a half of the epochs and a checkpoint", func() bool {
		return strings.Contains(h.logs(id), "\nepoch 5 ") && len(h.checkpoints(id)) > 0
	})
	if n := len(figures(h.logs(id))); n >= epochs {
		h.t.Fatalf("the training is over after %d lines", n)
	}
	return id
}

// rest goes on with a training on the other rig, and wants the figures and the model of the one that was never broken.
func (h *trainee) rest(from, home string) {
	h.t.Helper()
	log := h.run("haggle", h.train("run", "rig-2", home, "0", "--resume", from)...)
	after := regexp.MustCompile(`resumed after epoch (\d+) `).FindStringSubmatch(log)
	if after == nil {
		h.t.Fatalf("the training begins anew:\n%s", log)
	}
	at, _ := strconv.Atoi(after[1]) // the pattern has digits only
	if got := figures(log); at < 2 || at >= epochs || strings.Join(got, "") != strings.Join(h.figures[at:], "") {
		h.t.Errorf("the training that was never broken printed\n%s\nthe one that went on printed\n%s", strings.Join(h.figures, ""), log)
	}
	if h.read(home+"/coef") != h.read("whole/coef") {
		h.t.Error("the models differ")
	}
}

// checkpoints returns what is kept of a lease.
func (l *lab) checkpoints(id string) []map[string]any {
	l.t.Helper()
	var list []map[string]any
	if err := json.Unmarshal([]byte(l.run("haggle", "checkpoints", "--json", id)), &list); err != nil {
		l.t.Fatal(err)
	}
	return list
}
