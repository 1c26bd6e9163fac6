// Command haggle-pay-hand is a payment program for people: it shows the payer what the rig's owner wrote about how to pay, as a
// text and a QR code, and settles when the owner confirms that the money has come. It moves no money itself.
// docs/payments.md says what it reads and writes, and lists its settings; nobody starts it by hand.
package main

import (
	"context"
	"fmt"
	"os"

	"haggle/internal/pay"
)

func main() {
	if err := pay.Serve(context.Background(), hand{}, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
