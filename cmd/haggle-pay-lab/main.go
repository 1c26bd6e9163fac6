// Command haggle-pay-lab is a payment program with play money, for labs and tests. Its bank is a folder. It refuses networks
// that are not labs'. docs/payments.md says what it reads and writes, and lists its settings; nobody starts it by hand.
package main

import (
	"context"
	"fmt"
	"os"

	"haggle/internal/pay"
)

func main() {
	if err := pay.Serve(context.Background(), lab{}, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
