package capi_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every reason of a condition has its heading with advice in capi.md, and no heading is
// left over; what pages link to is there.
func TestReasonsAreExplained(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../api/capi/v1beta1/common.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\s*\w+Reason\s*=\s*"(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		reasons[m[1]] = true
	}
	if len(reasons) < 30 {
		t.Fatalf("only %d reasons in common.go", len(reasons))
	}
	page, err := os.ReadFile("../docs/capi.md")
	if err != nil {
		t.Fatal(err)
	}
	_, conditions, ok := strings.Cut(string(page), "\n## Conditions\n")
	if !ok {
		t.Fatal("capi.md has no section Conditions")
	}
	said := map[string]bool{}
	for _, section := range strings.Split(conditions, "\n### ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		if said[name] {
			t.Errorf("capi.md: two headings %q", name)
		}
		said[name] = true
		if !reasons[name] {
			t.Errorf("capi.md: heading %q is no reason", name)
		}
		if strings.TrimSpace(body) == "" {
			t.Errorf("capi.md: %s: no advice", name)
		}
	}
	for r := range reasons {
		if !said[r] {
			t.Errorf("capi.md: no heading `### %s`", r)
		}
	}
}

// Links of the pages on the Cluster API lead somewhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/capi*.md")
	if err != nil || len(pages) < 4 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`).FindAllStringSubmatch(string(text), -1) {
			to := page
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(page), m[1])
			}
			target, err := os.ReadFile(to)
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if m[2] != "" && !strings.Contains(strings.ReplaceAll(strings.ToLower(string(target)), " ", "-"), "#-"+m[2]+"\n") {
				t.Errorf("%s: no heading #%s in %s", page, m[2], to)
			}
		}
		for _, file := range regexp.MustCompile(`deploy/[a-z]+/[A-Za-z0-9_./-]*\.(?:ya?ml|md)`).FindAllString(string(text), -1) {
			if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}
