// Package runtime is what a rig knows about jobs: what one is made of, what states it passes, how its output is
// kept, and the interface that every engine fulfils.
//
// An engine is handed data and streams only, never a callback that runs on its side (Sweep's is asked on the
// caller's), so that it can live in another process. Errors are classes: test them with errors.Is.
//
// The engines are runtime/containerd, runtime/process for labs, and runtimetest.Fake for tests; runtimetest.Conformance says in code what
// all of them promise.
package runtime
