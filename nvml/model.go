package nvml

import "strings"

// UnknownModel is the model of a card whose name says nothing.
const UnknownModel = "UNKNOWN"

// NormaliseModel turns a driver's name of a card into the word that offers and queries use: capitals, digits, dots and
// underscores, at most 96 bytes, never empty.
//
//	NVIDIA GeForce RTX 4090             RTX_4090
//	NVIDIA GeForce RTX 4090 Laptop GPU  RTX_4090_LAPTOP
//	NVIDIA H100 80GB HBM3               H100_SXM
//	NVIDIA A100-PCIE-40GB               A100_PCIE
//
// Vendor and family words and the size of the memory fall away, since offers have fields for them; what changes the
// speed (laptop, Max-Q, SXM, PCIe, Ti, SUPER) stays. A normalised model normalises to itself.
func NormaliseModel(raw string) string {
	var words []string
	h100, hbm3 := false, false
	for _, w := range modelWords(raw) {
		switch w {
		case "H100":
			h100 = true
		case "HBM3":
			hbm3 = true
		}
		words = addModelWord(words, w)
	}
	// Only the SXM board of the H100 carries HBM3 without saying SXM, PCIe or NVL in its name.
	if h100 && hbm3 && !hasAny(words, "SXM", "PCIE", "NVL") {
		words = append(words, "SXM")
	}
	if len(words) == 0 {
		return UnknownModel
	}
	return strings.Join(words, "_")
}

// modelWords cuts a bounded name into capital words.
func modelWords(raw string) []string {
	raw = raw[:min(len(raw), maxText)]
	up := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '(', r == ')':
			return r
		default:
			return ' '
		}
	}, raw)
	up = strings.NewReplacer("(R)", " ", "(TM)", " ", "(", " ", ")", " ").Replace(up)
	var words []string
	for _, w := range strings.Fields(up) {
		if w = strings.Trim(w, "."); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// addModelWord appends w, drops it, or joins it to the word before.
func addModelWord(words []string, w string) []string {
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	switch w {
	case "NVIDIA", "GEFORCE", "TESLA", "AMD", "RADEON", "INSTINCT", "INTEL", "SIMULATED",
		"GPU", "GRAPHICS", "DEVICE", "GENERATION", "EDITION", "DESIGN", "WITH", "BLACKWELL",
		"HBM2", "HBM2E", "HBM3", "HBM3E":
		return words
	case "GB":
		if isDigits(last) {
			return words[:len(words)-1]
		}
		return words
	case "Q":
		if last == "MAX" {
			return append(words[:len(words)-1], "MAXQ")
		}
	case "WORKSTATION":
		if last == "MAXQ" {
			return words
		}
	case "SXM2", "SXM3", "SXM4", "SXM5", "SXM6":
		w = "SXM"
	}
	if isDigits(strings.TrimSuffix(w, "GB")) && strings.HasSuffix(w, "GB") {
		return words
	}
	return append(words, w)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func hasAny(words []string, wanted ...string) bool {
	for _, w := range words {
		for _, x := range wanted {
			if w == x {
				return true
			}
		}
	}
	return false
}
