package nvml_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"haggle/nvml"
)

func TestModelsAreNormalised(t *testing.T) {
	for raw, want := range map[string]string{
		"NVIDIA GeForce RTX 4090":                           "RTX_4090",
		"GeForce RTX 4090":                                  "RTX_4090",
		"Simulated RTX 4090":                                "RTX_4090",
		"NVIDIA GeForce RTX 4090 D":                         "RTX_4090_D",
		"NVIDIA GeForce RTX 4090 Laptop GPU":                "RTX_4090_LAPTOP",
		"NVIDIA GeForce RTX 4070 Ti SUPER":                  "RTX_4070_TI_SUPER",
		"NVIDIA GeForce RTX 2080 Super with Max-Q Design":   "RTX_2080_SUPER_MAXQ",
		"NVIDIA GeForce GTX 1060 6GB":                       "GTX_1060",
		"NVIDIA GeForce MX330":                              "MX330",
		"NVIDIA H100 80GB HBM3":                             "H100_SXM",
		"NVIDIA H100 PCIe":                                  "H100_PCIE",
		"NVIDIA H100 NVL":                                   "H100_NVL",
		"NVIDIA H200":                                       "H200",
		"NVIDIA H200 NVL":                                   "H200_NVL",
		"NVIDIA GH200 480GB":                                "GH200",
		"NVIDIA B200":                                       "B200",
		"NVIDIA A100-SXM4-80GB":                             "A100_SXM",
		"NVIDIA A100-PCIE-40GB":                             "A100_PCIE",
		"NVIDIA A100 80GB PCIe":                             "A100_PCIE",
		"A100-SXM4-40GB":                                    "A100_SXM",
		"NVIDIA A100-SXM4-80GB MIG 1g.10gb":                 "A100_SXM_MIG_1G.10GB",
		"Tesla V100-SXM2-16GB":                              "V100_SXM",
		"Tesla T4":                                          "T4",
		"Tesla M40 24GB":                                    "M40",
		"NVIDIA L40S":                                       "L40S",
		"NVIDIA TITAN V":                                    "TITAN_V",
		"NVIDIA RTX A6000":                                  "RTX_A6000",
		"NVIDIA RTX 6000 Ada Generation":                    "RTX_6000_ADA",
		"Quadro RTX 6000":                                   "QUADRO_RTX_6000",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition":      "RTX_PRO_6000_SERVER",
		"NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "RTX_PRO_6000_WORKSTATION",
		"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": "RTX_PRO_6000_MAXQ",
		"AMD Radeon RX 7900 XTX":                                  "RX_7900_XTX",
		"AMD Instinct MI300X":                                     "MI300X",
		"Intel(R) Arc(TM) A770 Graphics":                          "ARC_A770",
		"NVIDIA Graphics Device":                                  nvml.UnknownModel,
		"":                                                        nvml.UnknownModel,
		"\x00\xff\x1b[2J":                                         "2J",
		strings.Repeat("A", 200):                                  strings.Repeat("A", 96),
	} {
		if got := nvml.NormaliseModel(raw); got != want {
			t.Errorf("%q: %s, want %s", raw, got, want)
		}
	}
}

func TestNormalisingTwiceChangesNothing(t *testing.T) {
	word := rapid.SampledFrom(strings.Fields("NVIDIA GeForce RTX H100 A100 80GB 80 GB HBM3 PCIe SXM4 Max Q Max-Q Workstation Ti (R) (TM) R .GB 1g.10gb. GPU MIG -"))
	rapid.Check(t, func(t *rapid.T) {
		raw := strings.Join(rapid.SliceOfN(word, 0, 12).Draw(t, "words"), " ")
		if rapid.Bool().Draw(t, "any text") {
			raw = rapid.String().Draw(t, "text")
		}
		once := nvml.NormaliseModel(raw)
		if twice := nvml.NormaliseModel(once); twice != once {
			t.Fatalf("%q becomes %q and then %q", raw, once, twice)
		}
	})
}

func FuzzNormaliseModel(f *testing.F) {
	f.Add("NVIDIA H100 80GB HBM3")
	f.Add("RTX 3080 with Max-Q Design")
	f.Fuzz(func(t *testing.T, raw string) {
		got := nvml.NormaliseModel(raw)
		if got == "" || len(got) > 96 || strings.Trim(got, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._") != "" {
			t.Fatalf("%q becomes %q", raw, got)
		}
		if again := nvml.NormaliseModel(got); again != got {
			t.Fatalf("%q becomes %q and then %q", raw, got, again)
		}
	})
}
