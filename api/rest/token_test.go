package rest_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// A token is made over REST, is good at once, and ends at once.
func TestTokenLife(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	status, text := g.ask(g.sock, "POST", api.Base+"/tokens", "", `{"metadata":{"name":"ci"},"spec":{"role":"operator","expires":"90d"}}`)
	var made api.CreatedToken
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != http.StatusCreated || made.Secret == "" || !strings.HasPrefix(text, `{"apiVersion":"rackstrap/v1","kind":"Token"`) {
		t.Fatalf("%d %s", status, text)
	}
	if days := made.Spec.Expires.Sub(g.now()).Hours() / 24; days < 89.9 || days > 90.1 {
		t.Errorf("it ends in %.1f days", days)
	}
	for _, path := range []string{"/tokens", "/tokens/ci"} {
		if _, text := g.ask(g.sock, "GET", api.Base+path, "", ""); strings.Contains(text, made.Secret) || strings.Contains(text, "hash") || !strings.Contains(text, made.Status.ID) {
			t.Errorf("%s: %s", path, text)
		}
	}
	if _, text := g.ask(g.url, "GET", api.Base+"/whoami", made.Secret, ""); !strings.Contains(text, `"name":"ci","role":"operator"`) {
		t.Errorf("whoami: %s", text)
	}
	if _, text := g.ask(g.sock, "GET", api.Base+"/whoami", "", ""); !strings.Contains(text, `"name":"socket","role":"admin"`) {
		t.Errorf("whoami on the socket: %s", text)
	}
	stream := g.send(g.url, "GET", api.Base+"/events?", made.Secret, "")
	defer stream.Body.Close()
	if status, _ := g.ask(g.sock, "DELETE", api.Base+"/tokens/ci", "", ""); status != http.StatusNoContent {
		t.Fatal(status)
	}
	for sc := bufio.NewScanner(stream.Body); sc.Scan(); { // ends, or the test times out
	}
	status, text = g.ask(g.url, "GET", api.Base+"/whoami", made.Secret, "")
	if status != http.StatusUnauthorized || !strings.Contains(text, string(api.CodeTokenUnknown)) {
		t.Errorf("after it was revoked: %d %s", status, text)
	}
}

func TestNewTokens(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for _, tc := range []struct {
		spec   string
		status int
		want   string
	}{
		{`"role":"viewer"`, 201, `"expires":"`},
		{`"role":"viewer","expires":"never"`, 201, `"spec":{"role":"viewer"},`},
		{`"role":"viewer","expires":"12h"`, 201, `"secret":"rst_`},
		{`"role":"viewer","expires":"2099-01-31T00:00:00Z"`, 201, `"expires":"2099-01-31T00:00:00Z"`},
		{`"role":"claimer","ownerPrefix":"a/","selector":"team in (a)"`, 201, `"ownerPrefix":"a/"`},
		{`"role":"viewer","expires":"2001-01-31T00:00:00Z"`, 422, `is over`},
		{`"role":"viewer","expires":"0d"`, 422, `more than nothing`},
		{`"role":"viewer","expires":"-1h"`, 422, `more than nothing`},
		{`"role":"viewer","expires":"65535d"`, 422, `at most 36500d`},
		{`"role":"viewer","expires":"90 days"`, 422, `write it as 90d`},
		{`"role":"root"`, 422, `admin, operator, viewer or claimer`},
		{`"role":"claimer"`, 422, `spec.ownerPrefix`},
		{`"role":"viewer","rule":"x"`, 422, `did you mean role?`},
		{`"role":"viewer"},"kind":"Hardware","x":{`, 422, `kind`},
	} {
		status, text := g.ask(g.sock, "POST", api.Base+"/tokens", "", `{"metadata":{"name":"t"},"spec":{`+tc.spec+`}}`)
		if status != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %d %s, want %d …%s…", tc.spec, status, text, tc.status, tc.want)
		}
		if status == http.StatusCreated {
			g.must(g.db.DeleteToken(t.Context(), "t", 0))
		}
	}
}

// What is wrong with a request's token is told by code; what is in a URL is no token.
func TestWrongTokens(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	good := g.token("ci", hardware.TokenSpec{Role: hardware.RoleViewer, Expires: g.now().Add(time.Hour)})
	ask := func(path string, header ...string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), "GET", g.url+path, nil)
		g.must(err)
		r.Header["Authorization"] = header
		resp, err := http.DefaultClient.Do(r)
		g.must(err)
		return resp
	}
	for _, tc := range []struct {
		name   string
		path   string
		header []string
		code   api.Code
	}{
		{"none", "/api/v1/whoami", nil, api.CodeTokenMissing},
		{"in the URL", "/api/v1/whoami?access_token=" + good, nil, api.CodeTokenMissing},
		{"no path either", "/api/v1/nothing", nil, api.CodeTokenMissing},
		{"basic", "/api/v1/whoami", []string{"Basic YTpi"}, api.CodeTokenMalformed},
		{"two", "/api/v1/whoami", []string{"Bearer " + good, "Bearer " + good}, api.CodeTokenMalformed},
		{"cut short", "/api/v1/whoami", []string{"Bearer " + good[:40]}, api.CodeTokenMalformed},
		{"other", "/api/v1/whoami", []string{"Bearer " + good[:len(good)-4] + "aaaa"}, api.CodeTokenUnknown},
		{"lower-case scheme", "/api/v1/whoami", []string{"bearer  " + good}, ""},
	} {
		resp := ask(tc.path, tc.header...)
		var p api.Problem
		err := json.NewDecoder(resp.Body).Decode(&p)
		_ = resp.Body.Close()
		if tc.code == "" {
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %d", tc.name, resp.StatusCode)
			}
			continue
		}
		if err != nil || resp.StatusCode != http.StatusUnauthorized || p.Code != tc.code || p.Hint == "" || !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: %d %+v %v", tc.name, resp.StatusCode, p, resp.Header)
		}
	}
	g.pass(time.Hour)
	if status, text := g.ask(g.url, "GET", api.Base+"/whoami", good, ""); status != 401 || !strings.Contains(text, string(api.CodeTokenExpired)) {
		t.Errorf("expired: %d %s", status, text)
	}
}

// A flood of wrong tokens gets short answers and writes nothing; a good one from the
// same address is answered all the while.
func TestFloodOfWrongTokens(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	good := g.token("ci", hardware.TokenSpec{Role: hardware.RoleViewer})
	_, _ = g.ask(g.url, "GET", api.Base+"/whoami", good, "") // its use is written once
	before, err := g.db.Cursor(t.Context())
	g.must(err)
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for range 4 {
		wg.Go(func() {
			for range 100 {
				wrong, _ := hardware.NewTokenSecret()
				status, _ := g.ask(g.url, "GET", api.Base+"/hardware", wrong, "")
				mu.Lock()
				codes[status]++
				mu.Unlock()
				if status, _ := g.ask(g.url, "GET", api.Base+"/whoami", good, ""); status != http.StatusOK {
					t.Errorf("a good token: %d", status)
				}
			}
		})
	}
	wg.Wait()
	if codes[401] < 10 || codes[401] > 60 || codes[401]+codes[429] != 400 {
		t.Errorf("answers: %v", codes)
	}
	if after, err := g.db.Cursor(t.Context()); err != nil || after != before {
		t.Errorf("the flood made %d writes, %v", after-before, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.noted) != codes[401] {
		t.Errorf("%d notes for %d refusals", len(g.noted), codes[401])
	}
}

// Who changed what can be asked for afterwards; secrets and bodies are not in it.
func TestAudit(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	ci := g.token("ci", hardware.TokenSpec{Role: hardware.RoleOperator})
	eye := g.token("eye", hardware.TokenSpec{Role: hardware.RoleViewer})
	m1 := `{"metadata":{"name":"m1"},"spec":{"interfaces":[{"mac":"52:54:00:00:00:01"}],"userData":"tops3cret"}}`
	if status, text := g.ask(g.url, "POST", api.Base+"/hardware", ci, m1); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := g.ask(g.url, "POST", api.Base+"/hardware", ci, m1); status != http.StatusConflict {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := g.ask(g.url, "POST", api.Base+"/hardware/m1/hold", ci, ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := g.ask(g.url, "DELETE", api.Base+"/hardware/m1", eye, ""); status != http.StatusForbidden || !strings.Contains(text, "operator") {
		t.Fatalf("%d %s", status, text)
	}
	_, text := g.ask(g.url, "GET", api.Base+"/events?by=ci", eye, "")
	var list api.List[api.Event]
	g.must(json.Unmarshal([]byte(text), &list))
	var got []string
	for _, e := range list.Items {
		got = append(got, string(e.Reason)+" "+e.Detail)
		if e.By != "ci" {
			t.Errorf("by %q", e.By)
		}
	}
	// the change's own event is in its transaction; the request's comes after it
	want := []string{"record-created ", "api-change POST /api/v1/hardware: done", "on-hold", "api-change POST /api/v1/hardware/m1/hold: done"}
	for i, w := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], w) && w != "on-hold" {
			t.Errorf("event %d: want %q, got %q", i, w, got)
		}
	}
	if strings.Contains(text, "tops3cret") || strings.Contains(text, ci) {
		t.Errorf("a secret: %s", text)
	}
	if _, text := g.ask(g.url, "GET", api.Base+"/events?by=ci&reason=api-change", eye, ""); strings.Count(text, `"api-change"`) != 2 || strings.Contains(text, "record-created") {
		t.Errorf("by reason: %s", text)
	}
	if status, _ := g.ask(g.url, "GET", api.Base+"/events?before=../x", eye, ""); status != http.StatusBadRequest {
		t.Errorf("a word that is no id of an event: %d", status)
	}
	if status, _ := g.ask(g.url, "GET", api.Base+"/events?reason=nonsense", eye, ""); status != http.StatusBadRequest {
		t.Errorf("unknown reason: %d", status)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.noted) != 1 || g.noted[0].By != "eye" || g.noted[0].Reason != hardware.ReasonAPIRefused || g.noted[0].Detail != "DELETE /api/v1/hardware/m1: forbidden" {
		t.Errorf("refused: %+v", g.noted)
	}
}

// A claimer's list of events has those of its machines.
func TestClaimerEvents(t *testing.T) {
	t.Parallel()
	g := held(t)
	mine := g.token("c", hardware.TokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: "a/", Selector: "team=a"})
	ctx := t.Context()
	for _, m := range []string{"mine", "theirs"} {
		h, err := g.db.HardwareByName(ctx, m)
		g.must(err)
		g.must(g.db.AppendEvent(ctx, workflow.Event{Reason: hardware.ReasonOSSeen, Hardware: h.Meta.UID, Machine: m}))
	}
	_, text := g.ask(g.url, "GET", api.Base+"/events", mine, "")
	if !strings.Contains(text, `"machine":"mine"`) || strings.Contains(text, "theirs") || strings.Contains(text, "expendable") {
		t.Errorf("list: %s", text)
	}
	stream := g.send(g.url, "GET", api.Base+"/events?", mine, "")
	defer stream.Body.Close()
	sc := bufio.NewScanner(stream.Body)
	theirs, err := g.db.HardwareByName(ctx, "theirs")
	g.must(err)
	own, err := g.db.HardwareByName(ctx, "mine")
	g.must(err)
	g.must(g.db.AppendEvent(ctx, workflow.Event{Reason: hardware.ReasonOSSeen, Hardware: theirs.Meta.UID, Machine: "theirs", Detail: "hidden"}))
	g.must(g.db.AppendEvent(ctx, workflow.Event{Reason: hardware.ReasonOSSeen, Hardware: own.Meta.UID, Machine: "mine", Detail: "last"}))
	for sc.Scan() {
		if strings.Contains(sc.Text(), "theirs") {
			t.Fatalf("stream: %s", sc.Text())
		}
		if strings.Contains(sc.Text(), "last") {
			return
		}
	}
	t.Error("the stream ended")
}
