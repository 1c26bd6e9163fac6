//go:build linux && cgo

package nvidia

// symbols lists, for every method of go-nvml that this package calls, the functions of the library that it may end up in,
// oldest version first: go-nvml takes the newest that the library has. A method that is not here must not be called.
func symbols() map[string][]string {
	return map[string][]string{
		"DeviceGetCount":               {"nvmlDeviceGetCount", "nvmlDeviceGetCount_v2"},
		"DeviceGetHandleByIndex":       {"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByIndex_v2"},
		"EventSetCreate":               {"nvmlEventSetCreate"},
		"GetClockInfo":                 {"nvmlDeviceGetClockInfo"},
		"GetCudaComputeCapability":     {"nvmlDeviceGetCudaComputeCapability"},
		"GetCurrPcieLinkGeneration":    {"nvmlDeviceGetCurrPcieLinkGeneration"},
		"GetCurrPcieLinkWidth":         {"nvmlDeviceGetCurrPcieLinkWidth"},
		"GetCurrentClocksEventReasons": {"nvmlDeviceGetCurrentClocksEventReasons"},
		// The name that drivers before 535 have for the same.
		"GetCurrentClocksThrottleReasons":    {"nvmlDeviceGetCurrentClocksThrottleReasons"},
		"GetDisplayMode":                     {"nvmlDeviceGetDisplayMode"},
		"GetEccMode":                         {"nvmlDeviceGetEccMode"},
		"GetEnforcedPowerLimit":              {"nvmlDeviceGetEnforcedPowerLimit"},
		"GetFieldValues":                     {"nvmlDeviceGetFieldValues"},
		"GetMaxClockInfo":                    {"nvmlDeviceGetMaxClockInfo"},
		"GetMaxPcieLinkGeneration":           {"nvmlDeviceGetMaxPcieLinkGeneration"},
		"GetMaxPcieLinkWidth":                {"nvmlDeviceGetMaxPcieLinkWidth"},
		"GetMaxMigDeviceCount":               {"nvmlDeviceGetMaxMigDeviceCount"},
		"GetMemoryInfo":                      {"nvmlDeviceGetMemoryInfo"},
		"GetMemoryInfo_v2":                   {"nvmlDeviceGetMemoryInfo_v2"},
		"GetMigDeviceHandleByIndex":          {"nvmlDeviceGetMigDeviceHandleByIndex"},
		"GetMigMode":                         {"nvmlDeviceGetMigMode"},
		"GetName":                            {"nvmlDeviceGetName"},
		"GetPciInfo":                         {"nvmlDeviceGetPciInfo", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo_v3"},
		"GetPowerManagementDefaultLimit":     {"nvmlDeviceGetPowerManagementDefaultLimit"},
		"GetPowerManagementLimit":            {"nvmlDeviceGetPowerManagementLimit"},
		"GetPowerManagementLimitConstraints": {"nvmlDeviceGetPowerManagementLimitConstraints"},
		"GetPowerUsage":                      {"nvmlDeviceGetPowerUsage"},
		"GetSupportedEventTypes":             {"nvmlDeviceGetSupportedEventTypes"},
		"GetTemperature":                     {"nvmlDeviceGetTemperature"},
		"GetTotalEccErrors":                  {"nvmlDeviceGetTotalEccErrors"},
		"GetTotalEnergyConsumption":          {"nvmlDeviceGetTotalEnergyConsumption"},
		"GetUUID":                            {"nvmlDeviceGetUUID"},
		"GetUtilizationRates":                {"nvmlDeviceGetUtilizationRates"},
		"Init":                               {"nvmlInit", "nvmlInit_v2"},
		"RegisterEvents":                     {"nvmlDeviceRegisterEvents"},
		"SetPowerManagementLimit":            {"nvmlDeviceSetPowerManagementLimit"},
		"SystemGetCudaDriverVersion":         {"nvmlSystemGetCudaDriverVersion"},
		"SystemGetDriverVersion":             {"nvmlSystemGetDriverVersion"},
		"Wait":                               {"nvmlEventSetWait", "nvmlEventSetWait_v2"},
	}
}

// callable says which methods may be called: those whose function the library has and nobody denied.
func callable(has func(symbol string) bool, deny []string) map[string]bool {
	denied := make(map[string]bool, len(deny))
	for _, symbol := range deny {
		denied[symbol] = true
	}
	may := make(map[string]bool)
	for method, versions := range symbols() {
		taken := ""
		for _, symbol := range versions {
			if has(symbol) {
				taken = symbol
			}
		}
		may[method] = taken != "" && !denied[taken]
	}
	return may
}
