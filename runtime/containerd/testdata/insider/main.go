// Insider is what the tests put into the engine's own job.
package main

import (
	"os"

	"haggle/runtime/inside"
)

func main() { os.Exit(inside.Main(os.Args[1:], os.Stdout)) }
