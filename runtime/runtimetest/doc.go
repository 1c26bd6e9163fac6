// Package runtimetest is for tests of and with package runtime: a Fake engine that keeps the rules without
// processes, the Conformance suite that holds every engine to them, and Probe, the program that both run.
package runtimetest
