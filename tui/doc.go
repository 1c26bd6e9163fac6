// Package tui is the screen program of haggle: a renter finds an offer, sees the whole price, rents, watches the job and
// checks the bill, by keys alone.
//
// It knows screens and keys. It decides nothing of the market: it shows what a Market tells, in the words of packages market
// and view, and asks it for what the user wants. Every change is an operation of the agent behind the Market, so that nothing
// is lost when the screens are closed.
//
// One tea.Model holds everything. Its parts are plain structs with verbs and a render method; they are changed by Update
// alone, and everything that waits (the agent, a file, time) runs in commands, which change nothing and answer by a message.
// Three keys lead from the start to a running job: enter on an offer, enter in the form that is filled in already, y in the
// dialog that names the most it can cost.
package tui
