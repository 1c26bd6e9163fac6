// Package arch keeps the shape of this repository: which package may import which, who alone may use which foreign module, and
// how the source is written. It holds tests only.
//
// The rules are the tables of rules_test.go, the picture of the house in docs/architecture.md as data. What a rule means is in
// layers_test.go (imports) and source_test.go (text); both judge plain values, so that planted violations test the judges
// themselves. load_test.go reads this repository.
package arch
