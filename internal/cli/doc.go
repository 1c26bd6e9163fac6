// Package cli is what the command lines of both programs share: where results and talk go, how an error becomes one line
// and an exit code, and how tables and facts are written. It knows no command.
package cli
