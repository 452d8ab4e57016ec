package metadata

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// rack is a few machines at their addresses, with one install that has a token.
type rack struct {
	machines map[string]*hardware.Hardware
	files    Files
	broken   error

	mu    sync.Mutex
	calls []string
	seen  []Observation
}

var (
	_ Machines = (*rack)(nil)
	_ Installs = (*rack)(nil)
)

func (k *rack) Machine(a netip.Addr) (*hardware.Hardware, bool) {
	m, ok := k.machines[a.String()]
	return m, ok
}
func (k *rack) Subnets() []*hardware.Subnet { return subnets() }

func (k *rack) UserData(_ context.Context, uid string) ([]byte, error) {
	return []byte("#cloud-config\n# of " + uid + "\n\x00"), k.broken
}

func (k *rack) Seed(_ context.Context, token, file string) ([]byte, error) {
	b, ok := k.files[file]
	if token != "T-1" || !ok {
		return nil, fs.ErrNotExist
	}
	return b, k.broken
}

func (k *rack) PhoneHome(_ context.Context, token string, from netip.Addr) error {
	if token != "T-1" {
		return fs.ErrNotExist
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls = append(k.calls, from.String())
	return k.broken
}

func (k *rack) observe(ctx context.Context, o Observation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ctx.Err() != nil {
		o.Detail = "observed with an ended context"
	}
	k.seen = append(k.seen, o)
}

// newRack has m1 at 10.0.0.5 (installed), m2 at .6 (opted in), m3 at .7 (wants
// tokens), and machines at .8 to .10 whose system is not there or not ours to tell.
func newRack(t testing.TB) *rack {
	k := &rack{machines: map[string]*hardware.Hardware{}, files: Files{
		FileMetaData: []byte("instance-id: i\n"), FileUserData: []byte("#cloud-config\r\n\x00"), FileVendorData: nil,
		FileNetworkConfig: []byte("version: 2\n"), FileIgnition: []byte(`{"ignition":{"version":"3.4.0"}}`), FileTalos: []byte("version: v1alpha1\n"),
	}}
	add := func(addr string, s hardware.Status, m hardware.Metadata) {
		s.Install = &hardware.InstallRef{Workflow: "w", UID: "i-" + addr}
		k.machines[addr] = &hardware.Hardware{
			Meta: hardware.Meta{Name: "m" + addr[len("10.0.0."):], UID: "u-" + addr},
			Spec: hardware.Spec{
				SSHKeys: []string{key}, UserData: hardware.Redacted, Metadata: m,
				Interfaces: []hardware.NIC{{MAC: mac(t, "52:54:00:00:00:01"), Addresses: prefixes(addr + "/24")}},
			},
			Status: s,
		}
	}
	up := hardware.Status{State: hardware.StateProvisioned}
	add("10.0.0.5", up, hardware.Metadata{})
	add("10.0.0.6", up, hardware.Metadata{EC2UserData: true})
	add("10.0.0.7", up, hardware.Metadata{EC2RequireToken: true, EC2UserData: true})
	add("10.0.0.8", hardware.Status{State: hardware.StateProvisioning, AwaitOS: true}, hardware.Metadata{})
	add("10.0.0.9", hardware.Status{State: hardware.StateProvisioning}, hardware.Metadata{EC2UserData: true})
	add("10.0.0.10", hardware.Status{State: hardware.StateReleasing}, hardware.Metadata{EC2UserData: true})
	return k
}

func (k *rack) handler(now func() time.Time) http.Handler {
	return NewHandler(Config{
		Machines: k, Installs: k, Observe: k.observe, Keys: []string{"ssh-ed25519 AAAAinstallation ops"},
		SessionKey: []byte("0123456789abcdef0123456789abcdef"), Now: now, Log: slog.New(slog.DiscardHandler),
	}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
}

type exchange struct {
	method, from, path string // GET, 10.0.0.5
	header             map[string]string
	body               string
	status             int
	want               string // of the answer, whole; "*" is anything
	kind               string
}

func (x exchange) do(t *testing.T, h http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(orText(x.method, http.MethodGet), x.path, strings.NewReader(x.body))
	r.RemoteAddr = orText(x.from, "10.0.0.5") + ":40000"
	for k, v := range x.header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func exchanges() map[string]exchange {
	const none = "no such metadata, or none for the machine with this address\n"
	const gone = "no such seed, or its token has expired\n"
	ttl := func(s string) map[string]string { return map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": s} }
	return map[string]exchange{
		"instance id":        {path: "/latest/meta-data/instance-id", status: 200, want: "i-10.0.0.5", kind: contentText},
		"old version":        {path: "/2009-04-04/meta-data/instance-id", status: 200, want: "i-10.0.0.5"},
		"slashes":            {path: "//latest//meta-data/instance-id/", status: 200, want: "i-10.0.0.5"},
		"HEAD":               {method: "HEAD", path: "/latest/meta-data/instance-id", status: 200},
		"versioned list":     {path: "/latest/", status: 200, want: "meta-data"},
		"list with slash":    {path: "/latest/meta-data/public-keys/", status: 200, want: "0=key-0\n1=key-1"},
		"installation's key": {path: "/latest/meta-data/public-keys/1/openssh-key", status: 200, want: "ssh-ed25519 AAAAinstallation ops"},
		"waits for the OS":   {from: "10.0.0.8", path: "/latest/meta-data/instance-id", status: 200, want: "i-10.0.0.8"},
		"IPv6-mapped":        {from: "[::ffff:10.0.0.5]", path: "/latest/meta-data/instance-id", status: 200, want: "i-10.0.0.5"},

		"stranger":         {from: "10.0.0.99", path: "/latest/meta-data/instance-id", status: 404, want: none},
		"in the worker":    {from: "10.0.0.9", path: "/latest/meta-data/instance-id", status: 404, want: none},
		"released":         {from: "10.0.0.10", path: "/latest/user-data", status: 404, want: none},
		"new version":      {path: "/2021-03-23/meta-data/instance-id", status: 404, want: none},
		"dynamic":          {path: "/latest/dynamic/instance-identity/document", status: 404, want: none},
		"credentials":      {path: "/latest/meta-data/iam/security-credentials/", status: 404, want: none},
		"up and away":      {path: "/latest/meta-data/../../etc/passwd", status: 418},
		"up, escaped":      {path: "/latest/meta-data/%2e%2e/%2e%2e/%2e%2e/etc/passwd", status: 418},
		"POST":             {method: "POST", path: "/latest/meta-data/", body: "x", status: 405, want: "method not allowed\n"},
		"somebody's proxy": {path: "/latest/meta-data/instance-id", header: map[string]string{"X-Forwarded-For": "10.0.0.6"}, status: 200, want: "i-10.0.0.5"},

		"user-data, not opted in":    {path: "/latest/user-data", status: 404, want: none},
		"user-data, opted in":        {from: "10.0.0.6", path: "/latest/user-data", status: 200, want: "#cloud-config\n# of u-10.0.0.6\n\x00", kind: "application/octet-stream"},
		"user-data, old version":     {from: "10.0.0.6", path: "/2009-04-04/user-data", status: 200, want: "*"},
		"user-data, below":           {from: "10.0.0.6", path: "/latest/user-data/x", status: 404, want: none},
		"list, opted in":             {from: "10.0.0.6", path: "/latest", status: 200, want: "meta-data\nuser-data"},
		"wants a token":              {from: "10.0.0.7", path: "/latest/meta-data/instance-id", status: 401, want: "*"},
		"wants a token, user-data":   {from: "10.0.0.7", path: "/latest/user-data", status: 401, want: "*"},
		"a token that is none":       {path: "/latest/meta-data/instance-id", header: map[string]string{headerToken: "AQAAA"}, status: 401, want: "*"},
		"token":                      {method: "PUT", path: "/latest/api/token", header: ttl("21600"), status: 200, want: "*", kind: contentText},
		"token, no time":             {method: "PUT", path: "/latest/api/token", status: 400, want: "*"},
		"token, no number":           {method: "PUT", path: "/latest/api/token", header: ttl("1e3"), status: 400, want: "*"},
		"token, zero":                {method: "PUT", path: "/latest/api/token", header: ttl("0"), status: 400, want: "*"},
		"token, negative":            {method: "PUT", path: "/latest/api/token", header: ttl("-1"), status: 400, want: "*"},
		"token, too long":            {method: "PUT", path: "/latest/api/token", header: ttl("21601"), status: 400, want: "*"},
		"token, overflow":            {method: "PUT", path: "/latest/api/token", header: ttl("99999999999999999999"), status: 400, want: "*"},
		"token, through a proxy":     {method: "PUT", path: "/latest/api/token", header: map[string]string{headerTTL: "60", "X-Forwarded-For": ""}, status: 403, want: "*"},
		"token, GET":                 {path: "/latest/api/token", header: ttl("60"), status: 405, want: "method not allowed\n"},
		"token, stranger":            {method: "PUT", from: "10.0.0.99", path: "/latest/api/token", header: ttl("60"), status: 404, want: none},
		"token, in the worker":       {method: "PUT", from: "10.0.0.9", path: "/latest/api/token", header: ttl("60"), status: 404, want: none},
		"token, version without one": {method: "PUT", path: "/2009-04-04/api/token", header: ttl("60"), status: 405, want: "method not allowed\n"},

		"seed":                  {path: "/seed/T-1/user-data", status: 200, want: "#cloud-config\r\n\x00", kind: "application/octet-stream"},
		"seed, HEAD":            {method: "HEAD", path: "/seed/T-1/user-data", status: 200},
		"seed, from anywhere":   {from: "203.0.113.9", path: "/seed/T-1/meta-data", status: 200, want: "instance-id: i\n", kind: contentYAML},
		"seed, network":         {path: "/seed/T-1/network-config", status: 200, want: "version: 2\n", kind: contentYAML},
		"seed, empty":           {path: "/seed/T-1/vendor-data", status: 200},
		"ignition":              {path: "/seed/T-1/ignition", status: 200, want: `{"ignition":{"version":"3.4.0"}}`, kind: "application/vnd.coreos.ignition+json"},
		"talos":                 {path: "/seed/T-1/talos", status: 200, want: "version: v1alpha1\n", kind: contentYAML},
		"seed, bad token":       {path: "/seed/T-2/user-data", status: 404, want: gone},
		"seed, unknown file":    {path: "/seed/T-1/passwd", status: 404, want: gone},
		"seed, deeper":          {path: "/seed/T-1/user-data/x", status: 404, want: gone},
		"seed, list":            {path: "/seed/T-1/", status: 404, want: gone},
		"seed, POST":            {method: "POST", path: "/seed/T-1/user-data", body: "x", status: 405, want: "method not allowed\n"},
		"phone, cloud-init":     {method: "POST", path: "/seed/T-1/phone-home", body: "instance_id=i&hostname=m1&pub_key_rsa=ssh-rsa+AAAA", status: 200, want: "ok\n"},
		"phone, curl":           {method: "POST", path: "/seed/T-1/phone-home", status: 200, want: "ok\n"},
		"phone, GET":            {path: "/seed/T-1/phone-home", status: 200, want: "ok\n"},
		"phone, HEAD":           {method: "HEAD", path: "/seed/T-1/phone-home", status: 405, want: "method not allowed\n"},
		"phone, PUT":            {method: "PUT", path: "/seed/T-1/phone-home", status: 405, want: "method not allowed\n"},
		"phone, bad token":      {method: "POST", path: "/seed/T-2/phone-home", status: 404, want: gone},
		"phone, large":          {method: "POST", path: "/seed/T-1/phone-home", body: strings.Repeat("x", maxPhone+1), status: 413, want: "*"},
		"phone, as it may be":   {method: "POST", path: "/seed/T-1/phone-home", body: strings.Repeat("x", maxPhone), status: 200, want: "ok\n"},
		"something else":        {path: "/ipxe/snponly.efi", status: 418},
		"root":                  {path: "/", status: 418},
		"nearly a version":      {path: "/2009-04-04x/meta-data", status: 418},
		"a token in a detour":   {path: "/ipxe/../seed/T-1/talos", status: 200, want: "version: v1alpha1\n"},
		"seed of another's web": {path: "/seeds/T-1/talos", status: 418},
	}
}

func TestHandler(t *testing.T) {
	t.Parallel()
	for name, x := range exchanges() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newRack(t)
			w := x.do(t, k.handler(time.Now))
			if w.Code != x.status || (x.want != "*" && w.Body.String() != x.want) {
				t.Errorf("%d %q, want %d %q", w.Code, w.Body, x.status, x.want)
			}
			if got := w.Header().Get("Content-Type"); x.kind != "" && got != x.kind {
				t.Errorf("Content-Type %q, want %q", got, x.kind)
			}
			if w.Code == 418 {
				return
			}
			if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", w.Header())
			}
			if called := len(k.calls) > 0; called != (x.status == 200 && strings.HasSuffix(x.path, FilePhoneHome)) {
				t.Errorf("phone calls: %v", k.calls)
			}
			for _, o := range k.seen {
				if strings.Contains(o.Detail, "T-") || !o.Reason.Known() {
					t.Errorf("observed %+v", o)
				}
			}
		})
	}
}

// TestSessionOverHTTP gets a token and uses it, also where another machine does.
func TestSessionOverHTTP(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	h := newRack(t).handler(func() time.Time { return now })
	put := exchange{method: "PUT", from: "10.0.0.7", path: "/latest/api/token", header: map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": "60"}}.do(t, h)
	if put.Header().Get(headerTTL) != "60" {
		t.Errorf("headers %v", put.Header())
	}
	with := map[string]string{"X-aws-ec2-metadata-token": put.Body.String()}
	for _, x := range []exchange{
		{from: "10.0.0.7", path: "/latest/meta-data/instance-id", status: 200},
		{from: "10.0.0.7", path: "/2009-04-04/user-data", status: 200},
		{from: "10.0.0.6", path: "/latest/meta-data/instance-id", status: 401},
		{from: "10.0.0.99", path: "/latest/meta-data/instance-id", status: 404},
	} {
		x.header = with
		if w := x.do(t, h); w.Code != x.status {
			t.Errorf("%s from %s: %d, want %d", x.path, x.from, w.Code, x.status)
		}
	}
	now = now.Add(time.Minute)
	if w := (exchange{from: "10.0.0.7", path: "/latest/user-data", header: with}).do(t, h); w.Code != 401 {
		t.Errorf("after its end: %d", w.Code)
	}
}

func TestBrokenStore(t *testing.T) {
	t.Parallel()
	k := newRack(t)
	k.broken = errors.New("disk on fire")
	h := k.handler(time.Now)
	for _, x := range []exchange{
		{from: "10.0.0.6", path: "/latest/user-data"},
		{path: "/seed/T-1/user-data"},
		{method: "POST", path: "/seed/T-1/phone-home"},
	} {
		if w := x.do(t, h); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "fire") {
			t.Errorf("%s: %d %s", x.path, w.Code, w.Body)
		}
	}
}

// TestEndlessBody: a body without an end is not read to its end.
func TestEndlessBody(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(newRack(t).handler(time.Now))
	defer srv.Close()
	for _, path := range []string{"/seed/T-1/phone-home", "/latest/meta-data/", "/seed/T-1/user-data"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, endless{})
		if err != nil {
			t.Fatal(err)
		}
		res, err := srv.Client().Do(r)
		if err != nil {
			continue // cut off while sending
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode < 400 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// FuzzPaths: whatever a path is, a machine learns nothing but its own values, one
// that is not installed nothing at all, and no token gets into what is observed.
func FuzzPaths(f *testing.F) {
	all := exchanges()
	for _, x := range all {
		f.Add(x.method, x.path, x.from)
	}
	f.Add("GET", "/seed/SECRET/../T-2/user-data", "10.0.0.5")
	f.Add("GET", "/latest/meta-data/%00", "10.0.0.7")
	if len(all) == 0 {
		f.Fatal("empty corpus")
	}
	k := newRack(f)
	k.files = nil
	now := time.Now()
	h := k.handler(func() time.Time { return now })
	f.Fuzz(func(t *testing.T, method, path, from string) {
		r, err := http.NewRequest(method, "http://a/", http.NoBody)
		if err != nil {
			return
		}
		r.URL.Path, r.RemoteAddr = path, from+":1"
		w := httptest.NewRecorder()
		k.seen = nil
		h.ServeHTTP(w, r)
		from = client(r).String()
		m, known := k.machines[from]
		ec2 := w.Code == http.StatusOK && !strings.Contains(path, "seed")
		if ec2 && (!known || (m.Status.State != hardware.StateProvisioned && !m.Status.AwaitOS)) {
			t.Fatalf("%q %q from %q: %q", method, path, from, w.Body)
		}
		if ec2 && strings.Contains(w.Body.String(), "# of u-") && !m.Spec.Metadata.EC2UserData {
			t.Fatalf("%q %q from %q: user-data", method, path, from)
		}
		for other := range k.machines {
			if ec2 && other != from && (w.Body.String() == "i-"+other || w.Body.String() == other) {
				t.Fatalf("%q %q from %q: %q", method, path, from, w.Body)
			}
		}
		for _, o := range k.seen {
			if strings.Contains(o.Detail, "SECRET") {
				t.Fatalf("observed %+v", o)
			}
		}
	})
}
