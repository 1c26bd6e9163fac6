package market

// Codes about who may call, and who is who.
const (
	CodeNobody      Code = "nobody"
	CodeNotBlocked  Code = "not_blocked"
	CodeBlockDeal   Code = "block_deal"
	CodeGivenTaken  Code = "given_name_taken"
	CodeSeveralSame Code = "several_same"
)

func accessErrors(code Code) (entry, bool) {
	e, ok := map[Code]entry{
		CodeNobody:      {ClassNotFound, "nobody is known as {who}", "`haggle offers` and `haggle names` list names; a key of 52 characters works always"},
		CodeSeveralSame: {ClassUsage, "{count} rigs call themselves {who}", "say which by its key: `haggle show OFFER` has it"},
		CodeGivenTaken:  {ClassUsage, "{name} is what you call {key} already", "choose another name, or take that one back with --remove"},
		CodeNotBlocked:  {ClassNotFound, "{key} is not blocked", "`status` lists who is; what the configuration blocks is changed there"},
		CodeBlockDeal:   {ClassRefused, "{key} is allowed by the configuration, or has an open lease with this program", "end the lease first, or take the key out of `access.allow`"},
	}[code]
	return e, ok
}
