// Package train is the job that a lab runs: it trains a small model on real numbers, prints a line per step, writes a
// checkpoint and stops cleanly when it is told to.
//
// The model is a two-layer perceptron that learns to read noisy eight by eight pictures of digits, which the package draws
// itself from a seed. Everything is computed on the CPU; a lab's cards are simulated and the program says so. The same seed
// gives the same numbers on every run, and a run that was stopped and resumed ends with the same model as one that was not.
//
// The package knows nothing of leases, rigs or containers. It keeps no state between calls, and separate calls with separate
// checkpoints may run at the same time.
package train
