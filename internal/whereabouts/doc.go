// Package whereabouts tells in which country a public address is registered, by a table that is part of the program.
package whereabouts
