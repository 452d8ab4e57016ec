package ipxe_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

// TestTroubleshootingGuide: every Reason has a heading with its sentence and
// advice below it, no heading is left over, and links lead somewhere.
func TestTroubleshootingGuide(t *testing.T) {
	t.Parallel()
	const file = "../deploy/docs/troubleshooting.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{"a-machine-that-does-not-move": true}
	for _, section := range strings.Split(string(data), "\n### ")[1:] {
		section, _, _ = strings.Cut(section, "\n## ")
		name, body, _ := strings.Cut(section, "\n")
		if headings[name] {
			t.Errorf("%s: two headings %q", file, name)
		}
		headings[name] = true
		r := hardware.Reason(name)
		if !r.Known() {
			t.Errorf("%s: heading %q is no Reason", file, name)
			continue
		}
		sentence, advice, _ := strings.Cut(body, "\n")
		if !strings.EqualFold(sentence, "*"+r.Sentence()+".*") {
			t.Errorf("%s: %s: the sentence is %s, want *%s.*", file, name, sentence, r.Sentence())
		}
		if strings.TrimSpace(advice) == "" {
			t.Errorf("%s: %s: no advice", file, name)
		}
	}
	for _, r := range hardware.Reasons() {
		if !headings[string(r)] {
			t.Errorf("%s: no heading `### %s`", file, r)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(string(data), -1) {
		if !headings[link[1]] {
			t.Errorf("%s: link to #%s, which is no heading", file, link[1])
		}
	}
}
