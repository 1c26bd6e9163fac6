package market

import (
	"slices"
	"strconv"
	"strings"
)

// Buckets are coarse words under which the DHT finds rigs. They say whom to ask and nothing else: what an answer holds is
// judged by the query. An offer is announced in few of them, so that nobody can flood all.
const (
	BucketAny     = "any"
	bucketModel   = "model/"
	bucketMemory  = "memory/"
	bucketRegion  = "region/"
	maxAskBuckets = 8 // a query that needs more asks BucketAny
)

// memoryClasses returns the classes of card memory in GB, as Field gpu_ram counts it.
func memoryClasses() []int64 { return []int64{8, 12, 16, 24, 48, 80} }

// memoryBucket returns the bucket of a card's memory in thousandths of a GiB: the largest class that is not above it.
func memoryBucket(memory int64) (string, bool) {
	classes := memoryClasses()
	for i := len(classes) - 1; i >= 0; i-- {
		if classes[i]*1000 <= memory {
			return bucketMemory + strconv.FormatInt(classes[i], 10), true
		}
	}
	return "", false
}

func modelBucket(model string) (string, bool) {
	name := strings.ToUpper(strings.ReplaceAll(model, " ", "_"))
	return bucketModel + name, isOfferName(name)
}

func regionBucket(country string) (string, bool) {
	name := strings.ToUpper(country)
	return bucketRegion + name, len(name) == 2 && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// Buckets returns the buckets in which a rig announces an offer: any, its models, its memory classes and its
// country. The slice is sorted and the caller's.
func Buckets(o Offer) []string {
	buckets := []string{BucketAny}
	add := func(bucket string, ok bool) {
		if ok {
			buckets = append(buckets, bucket)
		}
	}
	add(regionBucket(o.Net.Country))
	for i := range o.Slots {
		add(modelBucket(o.Slots[i].Model))
		add(memoryBucket(asSold(o.Slots[i].Memory)))
	}
	slices.Sort(buckets)
	return slices.Compact(buckets)
}

// Buckets returns the buckets to ask for offers that can match: at least one of them holds each such offer. They belong to
// the most selective clause, of models before memory and region; BucketAny where no clause is selective.
func (q Query) Buckets() []string {
	best := bestBuckets(q.nodes)
	if best == nil {
		return []string{BucketAny}
	}
	return best
}

// bestBuckets chooses among nodes that must all hold.
func bestBuckets(nodes []node) []string {
	var best []string
	for i := range nodes {
		if b := nodes[i].buckets(); b != nil && (best == nil || bucketCost(b) < bucketCost(best)) {
			best = b
		}
	}
	return best
}

// bucketCost is how much is asked for with a set of buckets: a model's bucket is smaller than any other.
func bucketCost(buckets []string) int {
	cost := 0
	for _, b := range buckets {
		if strings.HasPrefix(b, bucketModel) {
			cost++
		} else {
			cost += 10
		}
	}
	return cost
}

// buckets returns the buckets that together hold every offer for which the node can be true, nil if only BucketAny does.
func (n *node) buckets() []string {
	switch n.kind {
	case nodeAnd:
		return bestBuckets(n.kids)
	case nodeOr:
		var all []string
		for i := range n.kids {
			b := n.kids[i].buckets()
			if b == nil {
				return nil
			}
			all = append(all, b...)
		}
		return fewBuckets(all)
	default:
		return n.clause.buckets()
	}
}

func (c *clause) buckets() []string {
	switch c.field {
	case fieldGPUName:
		return c.wordBuckets(modelBucket)
	case fieldGeolocation:
		return c.wordBuckets(regionBucket)
	case fieldGPURAM:
		return c.memoryBuckets()
	}
	return nil
}

// wordBuckets returns one bucket for each word that is asked for.
func (c *clause) wordBuckets(bucket func(string) (string, bool)) []string {
	if c.op != opEqual && c.op != opIn {
		return nil
	}
	var all []string
	for _, d := range c.values {
		b, ok := bucket(d.word.typed)
		if !ok || !d.word.literal() {
			return nil
		}
		all = append(all, b)
	}
	return fewBuckets(all)
}

// memoryBuckets returns the classes in which a card can lie that fits.
func (c *clause) memoryBuckets() []string {
	var all []string
	for _, d := range c.values {
		lowest, ok := memoryBucket(d.num)
		if !ok {
			return nil // cards below the lowest class are in no memory bucket
		}
		switch c.op {
		case opEqual, opIn:
			all = append(all, lowest)
		case opMore, opAtLeast, opRange:
			for _, class := range memoryClasses() {
				b := bucketMemory + strconv.FormatInt(class, 10)
				if (class*1000 > d.num || b == lowest) && (c.op != opRange || class*1000 <= c.values[1].num) {
					all = append(all, b)
				}
			}
			return fewBuckets(all)
		default:
			return nil
		}
	}
	return fewBuckets(all)
}

// fewBuckets sorts buckets and drops repeated ones; nil if there are too many to ask.
func fewBuckets(buckets []string) []string {
	slices.Sort(buckets)
	buckets = slices.Compact(buckets)
	if len(buckets) > maxAskBuckets {
		return nil
	}
	return buckets
}
