package workflow

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// TestIssuesGuide: every kind has a heading with its sentence, how it is found, a fix
// and an exit; no heading is left over; the deadlines are those of the code.
func TestIssuesGuide(t *testing.T) {
	t.Parallel()
	const file = "../deploy/docs/issues.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, section := range strings.Split(string(data), "\n### ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		found[name] = body
		k := hardware.IssueKind(name)
		if k.Title() == name {
			t.Errorf("%s: heading %q is no kind of issue", file, name)
		}
		if sentence, _, _ := strings.Cut(body, "\n"); !strings.EqualFold(sentence, "*"+k.Title()+".*") {
			t.Errorf("%s: %s: the sentence is %s, want *%s.*", file, name, sentence, k.Title())
		}
		for _, part := range []string{"**Found** ", "**Fix**: ", "**Ends** "} {
			if !strings.Contains(body, "\n"+part) {
				t.Errorf("%s: %s has no part %q", file, name, part)
			}
		}
	}
	for _, k := range hardware.IssueKinds() {
		if found[string(k)] == "" {
			t.Errorf("%s: no heading `### %s`", file, k)
		}
	}
	for kind, limits := range map[hardware.IssueKind][]time.Duration{
		hardware.IssueBootStuck:  {BootStuckAfter},
		hardware.IssueNeverSeen:  {NeverSeenAfter, NeverSeenByHand},
		hardware.IssueOSNotUp:    {OSUpAfter},
		hardware.IssueWorkerLost: {WorkerLostAfter, WorkerGoneAfter},
	} {
		for _, d := range limits {
			if words := strings.TrimSuffix(d.String(), "m0s") + " minutes"; !strings.Contains(found[string(kind)], words) {
				t.Errorf("%s: %s does not name %q", file, kind, words)
			}
		}
	}
}
