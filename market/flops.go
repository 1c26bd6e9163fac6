package market

import "strings"

// flops is the speed of a slot's card in thousandths of a TFLOPS of 32 bits: what the offer claims, else what the maker of a card of that
// name states. A slice of a card has neither.
func (o *Offer) flops(s *Slot) value {
	if v := o.claim("tflops_fp32", kindSpeed); v.known {
		return v
	}
	if s.Kind != SlotCard {
		return value{}
	}
	n := statedFLOPS(s.Model)
	return value{known: n > 0, num: n}
}

// statedFLOPS returns what the maker's data sheet states of a model for 32 bits without sparsity and at its own boost clock, in GFLOPS,
// which are thousandths of a TFLOPS; 0 for a model that is not listed. Such figures are printed in
// the makers' data sheets; about a third of these were compared with published tables. What an offer claims goes before them.
func statedFLOPS(model string) int64 {
	switch trimModel(model) {
	case "GTX_1060":
		return 4_400
	case "GTX_1070":
		return 6_500
	case "GTX_1080":
		return 8_900
	case "GTX_1080_TI":
		return 11_300
	case "RTX_2060":
		return 6_500
	case "RTX_2070":
		return 7_500
	case "RTX_2080":
		return 10_100
	case "RTX_2080_TI":
		return 13_400
	case "RTX_3060":
		return 12_700
	case "RTX_3060_TI":
		return 16_200
	case "RTX_3070":
		return 20_300
	case "RTX_3080":
		return 29_800
	case "RTX_3090":
		return 35_600
	case "RTX_3090_TI":
		return 40_000
	case "RTX_4060":
		return 15_100
	case "RTX_4060_TI":
		return 22_100
	case "RTX_4070":
		return 29_100
	case "RTX_4070_TI":
		return 40_100
	case "RTX_4080":
		return 48_700
	case "RTX_4090":
		return 82_600
	}
	return statedServerFLOPS(trimModel(model))
}

func statedServerFLOPS(model string) int64 {
	switch model {
	case "RTX_5070":
		return 30_900
	case "RTX_5080":
		return 56_300
	case "RTX_5090":
		return 104_800
	case "RTX_A4000":
		return 19_200
	case "RTX_A5000":
		return 27_800
	case "RTX_A6000":
		return 38_700
	case "RTX_6000ADA", "RTX_6000_ADA":
		return 91_100
	case "T4", "TESLA_T4":
		return 8_100
	case "V100", "TESLA_V100":
		return 15_700
	case "A10":
		return 31_200
	case "A40":
		return 37_400
	case "A100", "A100_PCIE", "A100_SXM", "A100_SXM4":
		return 19_500
	case "L4":
		return 30_300
	case "L40":
		return 90_500
	case "L40S":
		return 91_600
	case "H100_PCIE":
		return 51_000
	case "H100", "H100_SXM", "H100_SXM5", "H200":
		return 67_000
	}
	return 0
}

// trimModel writes a model as the table has it. It allocates only for names in small letters.
func trimModel(model string) string { return strings.ToUpper(model) }
