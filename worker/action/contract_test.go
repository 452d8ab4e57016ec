package action

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/workflow"
)

// Every kind of action has a runner that reads that kind's options, and no runner
// is for a kind that no template can name.
func TestEveryKindHasARunner(t *testing.T) {
	t.Parallel()
	runners := Runners()
	for _, k := range workflow.Kinds() {
		r, ok := runners[k]
		if !ok {
			t.Errorf("%s has no runner", k)
			continue
		}
		// An unknown field ends the run before anything is touched, in words of the kind.
		_, err := r.Run(t.Context(), Env{}, json.RawMessage(`{"none-such": 1}`))
		if err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), "(fields of "+string(k)+":") {
			t.Errorf("%s: the runner says %v", k, err)
		}
	}
	for k := range runners {
		if !k.Known() {
			t.Errorf("there is a runner for %q, which is no kind", k)
		}
	}
}
