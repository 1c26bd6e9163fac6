package market

// Codes of joining a network.
const (
	CodeBadInvitation Code = "bad_invitation" // the line of `network join`
	CodeNotCreator    Code = "not_creator"    // only the creator's key signs the list
)

func networkErrors(code Code) (entry, bool) {
	e, ok := map[Code]entry{
		CodeBadInvitation: {ClassUsage, "this is not the line of an invitation: {why}", "copy the whole line that `haggle network invite` printed, from hgn1 to its end"},
		CodeNotCreator:    {ClassUsage, "network {network} was made with another key, and only that key changes who belongs to it", "ask {creator}, who made it"},
	}[code]
	return e, ok
}
