// Package networks keeps what a program knows of its private networks: who belongs to each, as its creator signed it, and the line
// that leads back there. It changes the configuration when a network is made, joined or left, and takes part in none itself.
package networks
