// Package nvidia reads and controls NVIDIA cards through the driver's library, libnvidia-ml.
//
// The library is never loaded into the process that asks. A function that it lacks ends its caller on the spot with
// exit status 127, a card that hangs holds a thread for 45 seconds or for good, and a fault in the driver is a fault of
// whoever called it. So there are two halves:
//
//   - [RunChild] is the main function of a child process. It loads the library, checks each function that it may call
//     before it calls any, and answers length-prefixed JSON on its standard input and output.
//   - [Driver], which [Open] returns, keeps every promise of [nvml.Driver] in the parent. It starts the child, gives every
//     call a deadline, kills a child that hangs, restarts one that died, and tells of Xids, memory errors, lost cards and
//     hangs as events.
//
// Two things are done by a child of their own, which answers one question and ends, so that its death or hang disturbs no
// reading. It is the same RunChild, which knows by its first question what it is:
//
//   - [Driver.Specs] has NVIDIA's nvcdi describe cards and MIG slices for containers. nvcdi calls the library unchecked: with a
//     driver that lacks a function that child dies, and Specs says which function it was.
//   - [Driver.Scrub] loads CUDA, overwrites the memory of one card and reads samples back.
//
// [Driver.SetPowerLimit] goes through the child that reads, and needs root there.
//
// What the package does not know: readings of MIG slices, processes on a card and NVLink. It makes no slices and resets no card.
//
// The program must not be linked with "-z now" nor run with LD_BIND_NOW set: the dynamic linker would then look for every
// function of the library before main, and end the program. Without cgo, or on another system than Linux, the package
// builds and Open returns nvml.ErrNoDriver.
package nvidia
