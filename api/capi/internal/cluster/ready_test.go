package cluster

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/capi/internal/appliance"
)

// A token is spoken of in its last two weeks, always in the same words.
func TestTokenEnds(t *testing.T) {
	t.Parallel()
	app := &appliance.Appliance{OwnerPrefix: "capi/mgmt/", Secret: client.ObjectKey{Namespace: "default", Name: "rackstrap"}}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]string{
		0: "", 15 * 24 * time.Hour: "", 13 * 24 * time.Hour: "default/rackstrap ends on 2026-12-04 (make another, and put it there: rackstrap token create NAME --role claimer --owner-prefix capi/mgmt/)",
	} {
		who := &api.WhoAmI{}
		if after > 0 {
			who.Expires = now.Add(after)
		}
		if got := ends(who, app, now); (got == "") != (want == "") || !strings.Contains(got, want) || got != ends(who, app, now.Add(time.Hour)) {
			t.Errorf("%v: %q, want %q", after, got, want)
		}
	}
}
