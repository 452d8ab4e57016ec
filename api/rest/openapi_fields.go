package rest

import (
	_ "embed"
	"strings"
)

// fieldTexts says what the types and fields of the bodies mean, a line each: the comments
// of the Go types in words of the API. TestFields writes it.
//
//go:embed openapi_fields.txt
var fieldTexts string

// fieldAbout is fieldTexts by package.Type and package.Type.Field.
func fieldAbout() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(fieldTexts) {
		if key, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			out[key] = text
		}
	}
	return out
}
