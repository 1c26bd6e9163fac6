// Attacker is runtime/inside as a program of its own, which the hostile suite puts into the images of its jobs.
package main

import (
	"os"

	"haggle/runtime/inside"
)

func main() { os.Exit(inside.Main(os.Args[1:], os.Stdout)) }
