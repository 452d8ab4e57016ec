package rest

import (
	"net/http"
	"strings"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

// reasons answers with the closed set and what the guide says of each.
func (s *server) reasons(w http.ResponseWriter, r *http.Request) error {
	if err := queryKnown(r.URL.Query()); err != nil {
		return err
	}
	about := sections(s.Guide)
	out := api.List[api.ReasonText]{APIVersion: api.Version, Kind: "ReasonTextList"}
	for _, x := range hardware.Reasons() {
		out.Items = append(out.Items, api.ReasonText{Reason: x, Sentence: x.Sentence(), About: about[string(x)]})
	}
	return writeJSON(w, http.StatusOK, out)
}

// sections cuts a guide at its headings of the third level. The sentence in italics at
// the head of each is left out, the Reason has it.
func sections(guide string) map[string]string {
	out := map[string]string{}
	for i, part := range strings.Split("\n"+guide, "\n### ") {
		if i == 0 {
			continue // what is before the first
		}
		word, text, _ := strings.Cut(part, "\n")
		text, _, _ = strings.Cut(text, "\n## ")
		if first, rest, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "*") && strings.HasSuffix(first, "*") {
			text = rest
		}
		out[strings.TrimSpace(word)] = strings.TrimSpace(text)
	}
	return out
}
