package train

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	hidden   = 32
	batch    = 32
	rate     = 0.01
	momentum = 0.9
)

// model is a perceptron with one hidden layer and, for each weight, the speed at which training moves it. The last column of
// each layer's weights is its bias.
type model struct {
	First       [hidden][inputs + 1]float64  `json:"first"`
	Second      [classes][hidden + 1]float64 `json:"second"`
	FirstSpeed  [hidden][inputs + 1]float64  `json:"first_speed"`
	SecondSpeed [classes][hidden + 1]float64 `json:"second_speed"`
}

// newModel returns an untrained model with small random weights.
func newModel(rng *rand.Rand) *model {
	m := new(model)
	for h := range m.First {
		for i := range inputs {
			m.First[h][i] = rng.NormFloat64() / math.Sqrt(inputs)
		}
	}
	for c := range m.Second {
		for h := range hidden {
			m.Second[c][h] = rng.NormFloat64() / math.Sqrt(hidden)
		}
	}
	return m
}

// guess returns the hidden layer's values and how likely the model holds each digit to be.
func (m *model) guess(pixels *[inputs]float64) (middle [hidden]float64, likely [classes]float64) {
	for h := range middle {
		sum := m.First[h][inputs]
		for i, v := range pixels {
			sum += m.First[h][i] * v
		}
		middle[h] = math.Tanh(sum)
	}
	top := math.Inf(-1)
	for c := range likely {
		sum := m.Second[c][hidden]
		for h, v := range middle {
			sum += m.Second[c][h] * v
		}
		likely[c] = sum
		top = max(top, sum)
	}
	total := 0.0
	for c := range likely {
		likely[c] = math.Exp(likely[c] - top) // shifted by the largest, so that it cannot overflow
		total += likely[c]
	}
	for c := range likely {
		likely[c] /= total
	}
	return middle, likely
}

// learn goes once over the pictures, a batch at a time, and returns the mean loss before each batch changed the model.
func (m *model) learn(pictures []picture) float64 {
	loss := 0.0
	for part := range slices.Chunk(pictures, batch) {
		var slope model
		for i := range part {
			loss += m.addSlope(&slope, &part[i])
		}
		m.move(&slope, len(part))
	}
	return loss / float64(len(pictures))
}

// addSlope adds one picture's gradient to slope and returns its loss.
func (m *model) addSlope(slope *model, p *picture) float64 {
	middle, likely := m.guess(&p.pixels)
	var back [hidden]float64
	for c := range likely {
		off := likely[c]
		if c == p.digit {
			off--
		}
		for h, v := range middle {
			slope.Second[c][h] += off * v
			back[h] += off * m.Second[c][h]
		}
		slope.Second[c][hidden] += off
	}
	for h, v := range middle {
		off := back[h] * (1 - v*v)
		for i, pixel := range p.pixels {
			slope.First[h][i] += off * pixel
		}
		slope.First[h][inputs] += off
	}
	return -math.Log(max(likely[p.digit], 1e-12))
}

// move shifts the weights against the mean of the n gradients that slope sums.
func (m *model) move(slope *model, n int) {
	for h := range m.First {
		for i := range m.First[h] {
			m.FirstSpeed[h][i] = momentum*m.FirstSpeed[h][i] - rate*slope.First[h][i]/float64(n)
			m.First[h][i] += m.FirstSpeed[h][i]
		}
	}
	for c := range m.Second {
		for h := range m.Second[c] {
			m.SecondSpeed[c][h] = momentum*m.SecondSpeed[c][h] - rate*slope.Second[c][h]/float64(n)
			m.Second[c][h] += m.SecondSpeed[c][h]
		}
	}
}

// accuracy returns the share of pictures, 0 to 1, that the model reads right.
func (m *model) accuracy(pictures []picture) float64 {
	right := 0
	for i := range pictures {
		_, likely := m.guess(&pictures[i].pixels)
		best := 0
		for c := range likely {
			if likely[c] > likely[best] {
				best = c
			}
		}
		if best == pictures[i].digit {
			right++
		}
	}
	return float64(right) / float64(len(pictures))
}
