package rest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

const cookieName = "__Host-rackstrap"

// browse makes a request as a page of ours does, with a cookie; header overrides, and an
// empty value takes away.
func (g *rig) browse(method, path, cookie, body string, header ...string) (*http.Response, string) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	g.must(err)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if cookie != "" {
		r.Header.Set("Cookie", cookieName+"="+cookie)
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Del(header[i]); header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(r)
	g.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	g.must(err)
	return resp, string(text)
}

// signIn returns the secret of a new session.
func (g *rig) signIn(token string) string {
	g.t.Helper()
	resp, text := g.browse("POST", api.Base+"/session", "", `{"token":"`+token+`"}`)
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 {
		g.t.Fatalf("sign-in: %d %s", resp.StatusCode, text)
	}
	return resp.Cookies()[0].Value
}

// signedIn says who the caller with a cookie is; empty where it is nobody.
func (g *rig) signedIn(cookie string) string {
	g.t.Helper()
	resp, text := g.browse("GET", api.Base+"/whoami", cookie, "")
	if resp.StatusCode != http.StatusOK {
		return ""
	}
	var who api.WhoAmI
	g.must(json.Unmarshal([]byte(text), &who))
	if !who.Session {
		g.t.Errorf("no session: %s", text)
	}
	return who.Name
}

// streams opens an event stream with a cookie; the channel is closed when it ends.
func (g *rig) streams(cookie string) <-chan struct{} {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), "GET", g.url+api.Base+"/events", nil)
	g.must(err)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Cookie", cookieName+"="+cookie)
	resp, err := http.DefaultClient.Do(r)
	g.must(err)
	if resp.StatusCode != http.StatusOK {
		g.t.Fatalf("stream: %d", resp.StatusCode)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
	}()
	return ended
}

func ends(t *testing.T, what string, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Errorf("%s: the stream goes on", what)
	}
}

func TestSession(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	ci := g.token("ci", hardware.TokenSpec{Role: hardware.RoleOperator})
	root := g.token("root", hardware.TokenSpec{Role: hardware.RoleAdmin})
	resp, text := g.browse("POST", api.Base+"/session", "", `{"token":"`+ci+`"}`)
	set := resp.Header.Get("Set-Cookie")
	secret, rest, _ := strings.Cut(strings.TrimPrefix(set, cookieName+"="), ";")
	if resp.StatusCode != http.StatusOK || rest != " Path=/; HttpOnly; Secure; SameSite=Strict" || secret == ci || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s, cookie %q", resp.StatusCode, text, rest)
	}
	var who api.WhoAmI
	g.must(json.Unmarshal([]byte(text), &who))
	if life := who.Expires.Sub(g.now()); !who.Session || who.Name != "ci" || who.Role != hardware.RoleOperator || life < 11*time.Hour || life > 12*time.Hour {
		t.Errorf("%+v", who)
	}
	if got := g.signedIn(secret); got != "ci" {
		t.Errorf("whoami: %q", got)
	}
	// it acts as its token, and the events say so
	if resp, text := g.browse("POST", api.Base+"/hardware", secret, `{"metadata":{"name":"m1"},"spec":{"interfaces":[{"mac":"52:54:00:00:00:01"}]}}`); resp.StatusCode != http.StatusCreated {
		t.Errorf("create: %d %s", resp.StatusCode, text)
	}
	if list, err := g.db.Events(t.Context(), workflow.EventQuery{By: "ci", Reason: hardware.ReasonAPIChange}); err != nil || len(list) != 1 {
		t.Errorf("events by ci: %+v, %v", list, err)
	}
	if resp, _ := g.browse("GET", api.Base+"/tokens", secret, ""); resp.StatusCode != http.StatusForbidden {
		t.Errorf("tokens: %d", resp.StatusCode)
	}
	// an Authorization header goes before the cookie
	if _, text := g.browse("GET", api.Base+"/whoami", secret, "", "Authorization", "Bearer "+root); !strings.Contains(text, `"name":"root"`) || strings.Contains(text, "session") {
		t.Errorf("both: %s", text)
	}
	// tokens are listed, and sessions where that is asked; no secret is
	_, text = g.ask(g.url, "GET", api.Base+"/tokens", root, "")
	if strings.Contains(text, "session-") {
		t.Errorf("tokens: %s", text)
	}
	_, text = g.ask(g.url, "GET", api.Base+"/tokens?sessions=true", root, "")
	if !strings.Contains(text, `"sessionOf":"ci"`) || strings.Contains(text, secret) || strings.Contains(text, "hash") {
		t.Errorf("sessions: %s", text)
	}
	// a session is no token, and a token no session
	if status, text := g.ask(g.url, "GET", api.Base+"/whoami", secret, ""); status != http.StatusUnauthorized || !strings.Contains(text, string(api.CodeTokenUnknown)) {
		t.Errorf("a session in the header: %d %s", status, text)
	}
	if resp, _ := g.browse("POST", api.Base+"/session", secret, `{"token":"`+secret+`"}`); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a session of a session: %d", resp.StatusCode)
	}
	if got := g.signedIn(root); got != "" {
		t.Errorf("a token in the cookie is %q", got)
	}
	// the end is at once
	stream, other := g.streams(secret), g.signIn(ci)
	resp, _ = g.browse("DELETE", api.Base+"/session", secret, "")
	if resp.StatusCode != http.StatusNoContent || !strings.HasPrefix(resp.Header.Get("Set-Cookie"), cookieName+"=; Path=/; Max-Age=0; ") {
		t.Errorf("sign-out: %d %v", resp.StatusCode, resp.Header)
	}
	ends(t, "sign-out", stream)
	if got := g.signedIn(secret); got != "" {
		t.Errorf("after sign-out: %q", got)
	}
	if resp, _ = g.browse("DELETE", api.Base+"/session", secret, ""); resp.StatusCode != http.StatusUnauthorized || !strings.Contains(resp.Header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("again: %d %v", resp.StatusCode, resp.Header)
	}
	if status, text := g.ask(g.url, "DELETE", api.Base+"/session", ci, ""); status != http.StatusBadRequest || !strings.Contains(text, "no cookie") {
		t.Errorf("sign-out with a token: %d %s", status, text)
	}
	if got := g.signedIn(other); got != "ci" {
		t.Errorf("the other session: %q", got)
	}
}

// Signing in and out are sentences of their own, with who, from where and as what.
func TestSignInsAreTold(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	alice, root := g.token("alice", hardware.TokenSpec{Role: hardware.RoleOperator}), g.token("root", hardware.TokenSpec{Role: hardware.RoleAdmin})
	told := func() (out []string) {
		events, err := g.db.Events(t.Context(), workflow.EventQuery{})
		g.must(err)
		for _, e := range events {
			if e.Reason == hardware.ReasonAPIChange {
				continue // the path of what was asked
			}
			if strings.Contains(string(e.Reason), "sign") || e.Reason == hardware.ReasonSessionEnded || strings.Contains(e.Detail, "session-") {
				out = append(out, e.Text())
			}
		}
		slices.Sort(out)
		return out
	}
	g.browse("DELETE", api.Base+"/session", g.signIn(alice), "")
	g.signIn(alice)
	_, list := g.ask(g.url, "GET", api.Base+"/tokens?sessions=true", root, "")
	name := regexp.MustCompile(`session-[0-9a-z]+`).FindString(list)
	if status, text := g.ask(g.url, "DELETE", api.Base+"/tokens/"+name, root, ""); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, text)
	}
	g.signIn(alice)
	g.pass(13 * time.Hour)
	over := g.now().Add(-time.Hour).UTC().Format("2006-01-02 15:04 UTC")
	g.signIn(alice)
	want := []string{
		"a session in a browser ended: of alice at 127.0.0.1: its time was over at " + over,
		"a session in a browser ended: of alice at 127.0.0.1: somebody ended it",
		"alice signed in from 127.0.0.1 in a browser, as operator",
		"alice signed in from 127.0.0.1 in a browser, as operator",
		"alice signed in from 127.0.0.1 in a browser, as operator",
		"alice signed in from 127.0.0.1 in a browser, as operator",
		"alice signed out of the browser at 127.0.0.1",
	}
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A session lives as long as its token, and twelve hours at most.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		life time.Duration
		end  func(g *rig)
		code api.Code
	}{
		{"the token is revoked", 0, func(g *rig) { g.must(g.db.DeleteToken(g.t.Context(), "ci", 0)) }, api.CodeTokenUnknown},
		{"the token is another one of that name", 0, func(g *rig) {
			g.must(g.db.DeleteToken(g.t.Context(), "ci", 0))
			g.token("ci", hardware.TokenSpec{Role: hardware.RoleAdmin})
		}, api.CodeTokenUnknown},
		{"an administrator ends it", 0, func(g *rig) {
			all, err := g.db.ListTokens(g.t.Context())
			g.must(err)
			for _, s := range all {
				if s.Spec.SessionOf != "" {
					g.must(g.db.DeleteToken(g.t.Context(), s.Meta.Name, 0))
				}
			}
		}, api.CodeTokenUnknown},
		{"the token expires", 2 * time.Second, func(g *rig) { g.pass(2 * time.Second) }, api.CodeTokenExpired},
		{"twelve hours", 0, func(g *rig) { g.pass(12 * time.Hour) }, api.CodeTokenExpired},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			spec := hardware.TokenSpec{Role: hardware.RoleViewer}
			if tc.life > 0 {
				spec.Expires = g.now().Add(tc.life)
			}
			secret := g.signIn(g.token("ci", spec))
			stream := g.streams(secret)
			tc.end(g)
			if tc.name != "twelve hours" { // the stream's own end is by the real clock
				ends(t, tc.name, stream)
			}
			if resp, text := g.browse("GET", api.Base+"/whoami", secret, ""); resp.StatusCode != http.StatusUnauthorized || !strings.Contains(text, string(tc.code)) {
				t.Errorf("%d %s", resp.StatusCode, text)
			}
		})
	}
}

// What a page elsewhere can make a browser send does nothing.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.machine(1, "m1", "team=a")
	ci := g.token("ci", hardware.TokenSpec{Role: hardware.RoleOperator})
	secret := g.signIn(ci)
	host := strings.TrimPrefix(g.url, "http://")
	const hold, who, session, blob = api.Base + "/hardware/m1/hold", api.Base + "/whoami", api.Base + "/session", api.Base + "/images/debian/blob"
	in := `{"token":"` + ci + `"}`
	for _, tc := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
	}{
		{"our page", "POST", hold, "{}", nil, 200},
		{"our page, no body", "POST", hold, "", nil, 200},
		{"our page, YAML", "POST", hold, "hold: false", []string{"Content-Type", "application/yaml"}, 200},
		{"our page, with a charset", "POST", hold, "{}", []string{"Content-Type", "application/json; charset=utf-8"}, 200},
		{"typed by a person", "GET", who, "", []string{"Sec-Fetch-Site", "none"}, 200},
		{"no browser", "POST", hold, "{}", []string{"Sec-Fetch-Site", ""}, 200},
		{"our origin, an old browser", "POST", hold, "{}", []string{"Sec-Fetch-Site", "", "Origin", "https://" + host}, 200},
		{"another origin, an old browser", "POST", hold, "{}", []string{"Sec-Fetch-Site", "", "Origin", "https://evil.example"}, 403},
		{"null origin", "POST", hold, "{}", []string{"Sec-Fetch-Site", "", "Origin", "null"}, 403},
		{"another site", "POST", hold, "{}", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 403},
		{"another site that says it is us", "POST", hold, "{}", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://" + host}, 403},
		{"a neighbour's page", "POST", hold, "{}", []string{"Sec-Fetch-Site", "same-site", "Origin", "https://x.example"}, 403},
		{"another site deletes", "DELETE", api.Base + "/hardware/m1", "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another site signs out", "DELETE", session, "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another site reads", "GET", who, "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a neighbour's page reads", "GET", who, "", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"another site looks", "HEAD", who, "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a form", "POST", hold, "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"a form of text", "POST", hold, "{}", []string{"Content-Type", "text/plain"}, 415},
		{"a form with files", "POST", hold, "{}", []string{"Content-Type", "multipart/form-data; boundary=x"}, 415},
		{"no type", "POST", hold, "{}", []string{"Content-Type", ""}, 415},
		{"no such type", "POST", hold, "{}", []string{"Content-Type", "json"}, 415},
		{"a file of any type", "PUT", blob, "x", []string{"Content-Type", "image/png"}, 415},
		{"another site signs somebody in", "POST", session, in, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a form signs somebody in", "POST", session, in, []string{"Content-Type", "text/plain"}, 415},
	} {
		resp, text := g.browse(tc.method, tc.path, secret, tc.body, tc.header...)
		if resp.StatusCode != tc.status || tc.status != 200 && len(resp.Cookies()) > 0 {
			t.Errorf("%s: %d %s, want %d", tc.name, resp.StatusCode, text, tc.status)
		}
		if tc.status == http.StatusForbidden && tc.method != "HEAD" && !strings.Contains(text, "another site") {
			t.Errorf("%s: %s", tc.name, text)
		}
	}
	// a token is not a browser's: it is not asked where it comes from
	r, err := http.NewRequestWithContext(t.Context(), "POST", g.url+hold, strings.NewReader("{}"))
	g.must(err)
	r.Header.Set("Authorization", "Bearer "+ci)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	resp, err := http.DefaultClient.Do(r)
	g.must(err)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("with a token: %d", resp.StatusCode)
	}
	if got := g.signedIn(secret); got != "ci" {
		t.Errorf("the session is gone: %q", got)
	}
}

func TestHostileCookies(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	good := g.signIn(g.token("ci", hardware.TokenSpec{Role: hardware.RoleViewer}))
	other, _ := hardware.NewTokenSecret()
	for _, tc := range []struct {
		name, cookie string
		code         api.Code
	}{
		{"none", "x=y", api.CodeTokenMissing},
		{"empty", cookieName + "=", api.CodeTokenMissing},
		{"another name", "rackstrap=" + good, api.CodeTokenMissing},
		{"another case", strings.ToLower(cookieName) + "=" + good, api.CodeTokenMissing},
		{"two", cookieName + "=" + other + "; " + cookieName + "=" + good, api.CodeTokenMalformed},
		{"the same twice", cookieName + "=" + good + "; " + cookieName + "=" + good, api.CodeTokenMalformed},
		{"unknown", cookieName + "=" + other, api.CodeTokenUnknown},
		{"right id, wrong secret", cookieName + "=" + good[:len(good)-4] + "aaaa", api.CodeTokenUnknown},
		{"cut short", cookieName + "=" + good[:30], api.CodeTokenMalformed},
		{"long", cookieName + "=" + strings.Repeat("a", 20_000), api.CodeTokenMalformed},
		{"bytes", cookieName + "=\x80\xff", api.CodeTokenMissing}, // no cookie at all (RFC 6265)
		{"among others", "a=b; " + cookieName + "=" + good + "; c=d", ""},
		{"quoted", cookieName + `="` + good + `"`, ""},
	} {
		resp, text := g.browse("GET", api.Base+"/whoami", "", "", "Cookie", tc.cookie)
		want := http.StatusUnauthorized
		if tc.code == "" {
			want = http.StatusOK
		}
		if resp.StatusCode != want || !strings.Contains(text, string(tc.code)) || strings.Contains(text, good) {
			t.Errorf("%s: %d %s", tc.name, resp.StatusCode, text)
		}
		g.pass(10 * time.Second) // so that the flood's limit is not met
	}
	for _, body := range []string{``, `{}`, `{"token":""}`, `{"token":1}`, `[]`, `{"token":"x","a":1}`, `{"token":"x"}{"token":"y"}`} {
		if resp, text := g.browse("POST", api.Base+"/session", "", body); resp.StatusCode < 400 || resp.StatusCode >= 500 || len(resp.Cookies()) > 0 {
			t.Errorf("%s: %d %s", body, resp.StatusCode, text)
		}
	}
	if resp, text := g.browse("POST", api.Base+"/session", "", `{"token":"`+strings.Repeat("x", 5000)+`"}`); resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d %s", resp.StatusCode, text)
	}
	// wrong ones are held up, wherever they are shown; good ones never are
	codes := map[int]int{}
	for i := range 60 {
		path, method, cookie, body := "/whoami", "GET", other, ""
		if i%2 == 0 {
			path, method, cookie, body = "/session", "POST", "", `{"token":"`+other+`"}`
		}
		resp, _ := g.browse(method, api.Base+path, cookie, body)
		codes[resp.StatusCode]++
		if got := g.signedIn(good); got != "ci" {
			t.Fatalf("the good one: %q", got)
		}
	}
	if codes[401] < 10 || codes[429] < 10 || codes[401]+codes[429] != 60 {
		t.Errorf("answers: %v", codes)
	}
}

// Many sessions of one token push out its oldest, and nobody else's; ended ones go.
func TestManySessions(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	ci, eye := g.token("ci", hardware.TokenSpec{Role: hardware.RoleOperator}), g.token("eye", hardware.TokenSpec{Role: hardware.RoleViewer})
	other := g.signIn(eye)
	var secrets []string
	for range 34 {
		secrets = append(secrets, g.signIn(ci))
		g.pass(time.Second) // names sort by time
	}
	for i, s := range secrets {
		if got := g.signedIn(s); (got == "ci") != (i >= 2) {
			t.Errorf("session %d: %q", i, got)
		}
	}
	if got := g.signedIn(other); got != "eye" {
		t.Errorf("another's session: %q", got)
	}
	g.pass(12 * time.Hour)
	for range 2 { // 33 ended ones
		g.signIn(eye)
	}
	count := func() (n int) {
		all, err := g.db.ListTokens(t.Context())
		g.must(err)
		for _, t := range all {
			if t.Spec.SessionOf != "" {
				n++
			}
		}
		return n
	}
	if n := count(); n != 2 {
		t.Errorf("%d sessions are kept", n)
	}
	g.must(g.db.DeleteToken(t.Context(), "eye", 0))
	if n := count(); n != 0 {
		t.Errorf("%d sessions are kept without their token", n)
	}
}

// Who may only look does not fill the event log by signing in, and holds up nobody else.
func TestManySignIns(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	eye, ci := g.token("eye", hardware.TokenSpec{Role: hardware.RoleViewer}), g.token("ci", hardware.TokenSpec{Role: hardware.RoleOperator})
	status, retry := 0, ""
	for n := 0; status != http.StatusTooManyRequests; n++ {
		if n > 1000 {
			t.Fatal("it signs in for ever")
		}
		resp, text := g.browse("POST", api.Base+"/session", "", `{"token":"`+eye+`"}`)
		status, retry = resp.StatusCode, resp.Header.Get("Retry-After")
		if status != http.StatusOK && !strings.Contains(text, string(api.CodeRateLimited)) {
			t.Fatalf("%d %s", status, text)
		}
	}
	if retry != "10" {
		t.Errorf("Retry-After: %q", retry)
	}
	g.signIn(ci)
	g.pass(10 * time.Second)
	g.signIn(eye)
}

// Neither token nor session is in a log line or an event.
func TestSessionSecrets(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	var mu sync.Mutex
	var logged bytes.Buffer
	g.deps.Log = slog.New(slog.NewTextHandler(locked{&mu, &logged}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	srv := httptest.NewServer(rest.New(g.deps).Remote())
	defer srv.Close()
	g.url = srv.URL
	ci := g.token("ci", hardware.TokenSpec{Role: hardware.RoleAdmin})
	secret := g.signIn(ci)
	g.browse("GET", api.Base+"/nothing?token="+ci, secret, "")
	g.browse("POST", api.Base+"/session", secret, `{"token":"`+ci[:len(ci)-1]+`"}`)
	g.browse("POST", api.Base+"/hardware", secret, `{}`)
	g.browse("DELETE", api.Base+"/session", secret, "")
	events, err := g.db.Events(t.Context(), workflow.EventQuery{})
	g.must(err)
	mu.Lock()
	defer mu.Unlock()
	all := fmt.Sprintf("%+v %+v %s", events, g.noted, logged.String())
	for _, s := range []string{ci, secret} {
		if id := s[:30]; strings.Contains(all, id) {
			t.Errorf("a secret: %s", all)
		}
	}
	if strings.Contains(all, "session-0") {
		t.Errorf("a session's record is told of: %s", all)
	}
}

// locked is a writer for several goroutines.
type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
