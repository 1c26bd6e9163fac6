// Package index is a program's book of offers: what is offered in the market now, as far as this program has heard.
//
// It asks rigs for their offers, and other programs for snapshots of the offers that they have heard of, looks rigs up in the
// network's buckets, and merges what comes as it comes. An offer is its rig's word, proved by its signature, whoever passed it on:
// who passes offers on can leave some out, and forge none. So an index asks at least two for each cell, and compares what they say
// with whom the network itself names there.
//
// An agent's index serves the questions of its renter. A rig's index is its shelf: it holds the offers of the rigs in its own cells
// and serves them as snapshots.
//
// All methods of Index may be called by any goroutine. Run owns every goroutine of the index.
package index
