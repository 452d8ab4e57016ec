package rest

import (
	"os"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

// Everybody who meets a Reason can read what to do about it.
func TestSections(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../deploy/docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	about := sections(string(guide))
	for _, r := range hardware.Reasons() {
		text := about[string(r)]
		if text == "" || strings.Contains(text, "\n#") || strings.HasPrefix(text, "*") {
			t.Errorf("%s: %q", r, text)
		}
	}
	got := sections("# T\n\nx\n### a\n*A sentence.*\n\nOne.\n\nTwo.\n\n## Next\n\ny\n### b\nB.\n")
	if len(got) != 2 || got["a"] != "One.\n\nTwo." || got["b"] != "B." {
		t.Errorf("got %q", got)
	}
	if len(sections("")) != 0 {
		t.Error("an empty guide has sections")
	}
}
