package workflow

import (
	"os"
	"strings"
	"testing"
)

// Every kind has a chapter in the guide that names all of its options.
func TestActionsGuide(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../deploy/docs/actions.md")
	if err != nil {
		t.Fatal(err)
	}
	head, chapters, _ := strings.Cut(string(b), "\n## ")
	said := map[string]string{}
	for _, c := range strings.Split(chapters, "\n## ") {
		title, text, _ := strings.Cut(c, "\n")
		said[title] = text
	}
	for _, k := range Kinds() {
		text, ok := said[string(k)]
		if !ok {
			t.Errorf("actions.md has no chapter %q", k)
		}
		about := k.About()
		if !strings.HasPrefix(strings.Join(strings.Fields(text), " "), about.Does) || !strings.HasSuffix(about.Does, ".") {
			t.Errorf("actions.md: %s does not begin with %q", k, about.Does)
		}
		for _, f := range optionFields(kinds()[k].options()) {
			if !strings.Contains(text, "`"+f+"`") {
				t.Errorf("actions.md: %s does not name `%s`", k, f)
			}
			for _, v := range k.OptionAbout(f).OneOf {
				if !strings.Contains(text, "`"+v+"`") {
					t.Errorf("actions.md: %s does not say that %s may be `%s`", k, f, v)
				}
			}
		}
		delete(said, string(k))
	}
	for title := range said {
		t.Errorf("actions.md: %q is no kind", title)
	}
	for _, v := range Variables() {
		if !strings.Contains(head, "- `${"+v.Name+"}`: "+v.Means+"\n") {
			t.Errorf("actions.md does not say of `${%s}`: %s", v.Name, v.Means)
		}
	}
	if !strings.Contains(head, "`with:`") {
		t.Error("actions.md does not begin with what all actions have")
	}
}
