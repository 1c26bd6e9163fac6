// Command model prints what the event model says of networks of the scenario's sizes, or of those given as arguments:
//
//	go run ./internal/netsim/model [-scenario FILE] [RIGS…]
//
// Every figure is the mean over the scenario's seeds with its 95 % interval. It ends with 1 where an aim is missed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"haggle/internal/netsim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	file := flag.String("scenario", "", "read the scenario from `FILE`")
	flag.Parse()
	if err := run(ctx, *file, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string, sizes []string) error {
	sc, err := scenario(file)
	if err != nil {
		return err
	}
	if len(sizes) > 0 {
		sc.Sizes = nil
	}
	for _, text := range sizes {
		n, err := strconv.Atoi(text)
		if err != nil || n < 10 || n > 2_000_000 {
			return fmt.Errorf("a network has between 10 and 2000000 rigs, not %q", text)
		}
		sc.Sizes = append(sc.Sizes, n)
	}
	var all []*netsim.Measurement
	for _, n := range sc.Sizes {
		m, err := netsim.Measure(ctx, sc, n)
		if err != nil {
			return err
		}
		m.Print(os.Stdout)
		all = append(all, m)
	}
	return netsim.Judge(all)
}

func scenario(file string) (*netsim.Scenario, error) {
	if file == "" {
		return netsim.DefaultScenario()
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return netsim.ReadScenario(f)
}
