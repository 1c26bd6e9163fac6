// Package api is the local HTTP API /v1 of both programs, over a unix socket: its server, its OpenAPI description and its
// Go client. It carries what the interfaces Agent and Rig promise and decides nothing itself.
//
// Requests and answers are JSON. An error is a problem document {code, message, hint, args} whose HTTP status follows the
// error's class: 400 usage, 402 budget, 404 not found, 409 refused, 502 unreachable, 500 failed; a body that does not have
// the described form is 413, 415 or 422. GET /v1/openapi.json describes all operations. Every answer carries the server's
// version in the header Haggle-Version.
//
// Only the user who runs the program, and root, get through: the socket is 0600, a folder that is made for it 0700, and on
// Linux the peer's uid is checked too. A rig may open its socket to a group instead.
//
// Servers and clients may be used by many goroutines at once.
package api
