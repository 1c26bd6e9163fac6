package market

// Codes about choosing an offer.
const (
	CodeBadClaim     Code = "bad_claim"
	CodeResidency    Code = "residency"
	CodeNoPlace      Code = "residency_none"
	CodeUnproven     Code = "residency_unproven"
	CodeBadSaved     Code = "bad_saved_query"
	CodeSavedUnknown Code = "saved_query_unknown"
)

func choiceErrors(code Code) (entry, bool) {
	e, ok := map[Code]entry{
		CodeBadClaim:     {ClassUsage, "{name} is not a name for a claim", "use 1 to 32 small letters, digits, _ and -, a letter in front; `haggle fields claim` lists the registered ones"},
		CodeResidency:    {ClassRefused, "rig {rig} stands in {country}, and the job may run in {countries} only", "choose another offer, with geolocation in [...] in the query"},
		CodeNoPlace:      {ClassNotFound, "none of {offers} matching offers stands in {countries}", "`haggle offers --facets=geolocation` counts where they stand"},
		CodeUnproven:     {ClassNotFound, "what speaks for the place of {rig} is {seen}, and {level} is asked for", "`haggle show OFFER` says what is known of its place; --residency DE:claimed takes the rig's word"},
		CodeBadSaved:     {ClassUsage, "{name} is not a name for a saved query", "use 1 to 32 small letters, digits and dashes, and no dash in front"},
		CodeSavedUnknown: {ClassNotFound, "there is no saved query {name}", "saved are: {known}"},
	}[code]
	return e, ok
}
