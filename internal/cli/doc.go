// Package cli is what the command lines of both programs share: where results and talk go, how an error becomes one line
// and an exit code, how tables and facts are written, and what commands that both of them have do. It opens no socket.
package cli
