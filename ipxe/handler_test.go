package ipxe

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

type request struct {
	method, path string
	header       http.Header

	status int
	body   string // exact where no prefix
	prefix string
	seen   []Observation
}

func requests(script, unknown string) map[string]request {
	mac := hardware.MAC{0x52, 0x54, 0, 0x12, 0x34, 0x56}
	other := hardware.MAC{2, 0, 0, 0, 0, 9}
	sent := func(r hardware.Reason, detail string, n int) []Observation {
		return []Observation{{Reason: r, Detail: detail, Bytes: int64(n)}}
	}
	refused := func(r hardware.Reason, detail string) []Observation {
		return []Observation{{Reason: r, Detail: detail}}
	}
	scriptSent := []Observation{{MAC: mac, Reason: hardware.ReasonScriptSent, Bytes: int64(len(script))}}
	count := func(write func(ScriptInput) ([]byte, error)) int64 {
		body, _ := write(workerInput())
		return int64(len(body))
	}
	autoexecSize := count(Autoexec)
	const program, kernel = "embedded snponly.efi", "embedded vmlinuz-amd64"
	rng := http.Header{"Range": {"bytes=2-5"}}
	return map[string]request{
		"script":            {path: "/ipxe/script/52:54:00:12:34:56/auto.ipxe", status: 200, body: script, seen: scriptSent},
		"script, dashes":    {path: "/ipxe/script/52-54-00-12-34-56/auto.ipxe", status: 200, body: script, seen: scriptSent},
		"script, bare":      {path: "/ipxe/script/525400123456/auto.ipxe", status: 200, body: script, seen: scriptSent},
		"script, escaped":   {path: "/ipxe/script/52%3A54%3a00%3A12%3A34%3A56/auto.ipxe", status: 200, body: script, seen: scriptSent},
		"script, slashes":   {path: "//ipxe//script/52:54:00:12:34:56/./auto.ipxe", status: 200, body: script, seen: scriptSent},
		"script, HEAD":      {method: "HEAD", path: "/ipxe/script/52:54:00:12:34:56/auto.ipxe", status: 200},
		"script, stranger":  {path: "/ipxe/script/" + other.String() + "/auto.ipxe", status: 200, body: unknown, seen: []Observation{{MAC: other, Reason: hardware.ReasonUnknownMachine, Bytes: int64(len(unknown))}}},
		"script, bad MAC":   {path: "/ipxe/script/$%7Bnet0%7D/auto.ipxe", status: 400, prefix: `"${net0}" is not a MAC address (write it as`, seen: refused(hardware.ReasonBadName, `"${net0}" is not a MAC address (write it as 52:54:00:12:34:56)`)},
		"script, other":     {path: "/ipxe/script/52:54:00:12:34:56/x", status: 404, prefix: "no such file", seen: refused(hardware.ReasonFileNotFound, "script/52:54:00:12:34:56/x")},
		"program":           {path: "/ipxe/snponly.efi", status: 200, body: program, seen: sent(hardware.ReasonProgramSent, "snponly.efi", len(program))},
		"program, HEAD":     {method: "HEAD", path: "/ipxe/snponly.efi", status: 200},
		"program, range":    {path: "/ipxe/snponly.efi", header: rng, status: 206, body: program[2:6]},
		"program, missing":  {path: "/ipxe/nothing.efi", status: 404, prefix: "no such file", seen: refused(hardware.ReasonFileNotFound, "nothing.efi")},
		"program, tried":    {path: "/ipxe//revocations_sku.efi", status: 404, prefix: "no such file"},
		"autoexec":          {path: "/ipxe/autoexec.ipxe", status: 200, prefix: "#!ipxe\n# Rackstrap: an iPXE that reads autoexec.ipxe", seen: []Observation{{MAC: mac, Reason: hardware.ReasonScriptSent, Bytes: autoexecSize}}},
		"autoexec, beside":  {path: "/ipxe/vendor//autoexec.ipxe", status: 200, prefix: "#!ipxe\n# Rackstrap: an iPXE that reads autoexec.ipxe", seen: []Observation{{MAC: mac, Reason: hardware.ReasonScriptSent, Bytes: autoexecSize}}},
		"autoexec, HEAD":    {method: "HEAD", path: "/ipxe/autoexec.ipxe", status: 200},
		"GRUB":              {path: "/grub/machine/52:54:00:12:34:56", status: 404, prefix: "no such file", seen: refused(hardware.ReasonFileNotFound, "/grub/machine/52:54:00:12:34:56")},
		"GRUB, modules":     {path: "/grub/x86_64-efi/fs.lst", status: 404, prefix: "no such file"},
		"program, kernel":   {path: "/ipxe/vmlinuz-amd64", status: 404, prefix: "no such file", seen: refused(hardware.ReasonFileNotFound, "vmlinuz-amd64")},
		"program, README":   {path: "/ipxe/README.md", status: 404, prefix: "no such file", seen: refused(hardware.ReasonFileNotFound, "README.md")},
		"program, folder":   {path: "/ipxe/", status: 404, prefix: "no such file", seen: refused(hardware.ReasonFileNotFound, "/ipxe/")},
		"program, up":       {path: "/ipxe/%2e%2e%2f%2e%2e%2fetc%2fpasswd", status: 404, prefix: "no such file", seen: refused(hardware.ReasonBadName, "../../etc/passwd")},
		"program, plain up": {path: "/ipxe/../../../etc/passwd", status: 404, prefix: "no such file", seen: refused(hardware.ReasonFileNotFound, "/ipxe/../../../etc/passwd")},
		"program, NUL":      {path: "/ipxe/snponly.efi%00.txt", status: 404, prefix: "no such file", seen: refused(hardware.ReasonBadName, "snponly.efi .txt")},
		"kernel":            {path: "/boot/vmlinuz-amd64", status: 200, body: kernel, seen: sent(hardware.ReasonKernelSent, "vmlinuz-amd64", len(kernel))},
		"initramfs":         {path: "/boot/initramfs-amd64", status: 200, body: zst + "base!\x00\x00\x00070701AA", seen: sent(hardware.ReasonInitramfsSent, "initramfs-amd64", 20)},
		"initramfs, range":  {path: "/boot/initramfs-amd64", header: rng, status: 206, body: "\x2f\xfdba"},
		"boot, program":     {path: "/boot/snponly.efi", status: 404, prefix: "no such file", seen: refused(hardware.ReasonFileNotFound, "snponly.efi")},
		"image":             {path: "/images/" + imageDigest, status: 200, body: "0123456789"},
		"image, upper":      {path: "/images/" + strings.ToUpper(imageDigest), status: 200, body: "0123456789"},
		"image, HEAD":       {method: "HEAD", path: "/images/" + imageDigest, status: 200},
		"image, range":      {path: "/images/" + imageDigest, header: rng, status: 206, body: "2345"},
		"image, end":        {path: "/images/" + imageDigest, header: http.Header{"Range": {"bytes=-3"}}, status: 206, body: "789"},
		"image, beyond":     {path: "/images/" + imageDigest, header: http.Header{"Range": {"bytes=10-"}}, status: 416, prefix: "invalid range"},
		"image, if-range":   {path: "/images/" + imageDigest, header: http.Header{"Range": {"bytes=2-5"}, "If-Range": {`"other"`}}, status: 200, body: "0123456789"},
		"image, unchanged":  {path: "/images/" + imageDigest, header: http.Header{"If-None-Match": {`"` + imageDigest + `"`}}, status: 304},
		"image, unknown":    {path: "/images/" + strings.Repeat("b", 64), status: 404, prefix: "no such file", seen: refused(hardware.ReasonFileNotFound, "image "+strings.Repeat("b", 64))},
		"image, no digest":  {path: "/images/debian.raw", status: 400, prefix: "not the sha256", seen: refused(hardware.ReasonBadName, "image debian.raw")},
		"image, list":       {path: "/images/", status: 404, prefix: "no such file", seen: refused(hardware.ReasonFileNotFound, "/images/")},
		"root":              {path: "/", status: 404, prefix: "no such file", seen: refused(hardware.ReasonFileNotFound, "/")},
		"POST":              {method: "POST", path: "/ipxe/snponly.efi", status: 405},
		"PUT":               {method: "PUT", path: "/images/" + imageDigest, status: 405},
	}
}

func testHandler(t *testing.T) (*fakeBackend, *httptest.Server) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "initramfs/a.cpio", "070701AA")
	b := newFakeBackend(t, "0123456789")
	srv := httptest.NewServer(NewHandler(newAssets(builtin(), dir), b, Pacing{}, quiet()))
	t.Cleanup(srv.Close)
	return b, srv
}

func TestHandler(t *testing.T) {
	t.Parallel()
	script, err := Script(workerInput())
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := Script(ScriptInput{MAC: hardware.MAC{2, 0, 0, 0, 0, 9}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range requests(string(script), string(unknown)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, srv := testHandler(t)
			if tc.method == "" {
				tc.method = http.MethodGet
			}
			req, err := http.NewRequest(tc.method, srv.URL+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range tc.header {
				req.Header[k] = v
			}
			res, err := srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != tc.status {
				t.Errorf("status %d, error %v, want %d: %s", res.StatusCode, err, tc.status, body)
			}
			if tc.prefix != "" && !strings.HasPrefix(string(body), tc.prefix) || tc.prefix == "" && string(body) != tc.body {
				t.Errorf("body %q, want %q", body, tc.body+tc.prefix)
			}
			checkHeaders(t, tc, res)
			srv.Close() // waits for the handler
			if seen := b.observed(t); !slices.Equal(seen, tc.seen) {
				t.Errorf("observed %+v\nwant %+v", seen, tc.seen)
			}
		})
	}
}

func checkHeaders(t *testing.T, tc request, res *http.Response) {
	t.Helper()
	if tc.method == http.MethodHead && res.ContentLength <= 0 {
		t.Errorf("HEAD has Content-Length %d", res.ContentLength)
	}
	if allow := strings.Join(res.Header.Values("Allow"), ","); tc.status == 405 && !strings.Contains(allow, "GET") {
		t.Errorf("405 has Allow %q", allow)
	}
	cache := res.Header.Get("Cache-Control")
	switch {
	case strings.Contains(tc.path, "/script/"), strings.Contains(tc.path, "autoexec"):
		if cache != "no-store" {
			t.Errorf("Cache-Control %q", cache)
		}
	case res.StatusCode == 200 || res.StatusCode == 206:
		if etag := res.Header.Get("ETag"); len(etag) != 66 || cache == "" || cache == "no-store" {
			t.Errorf("ETag %q, Cache-Control %q", etag, cache)
		}
	}
}

// What UEFI HTTP boot is sent, it must take for what it is.
func TestMediaTypes(t *testing.T) {
	t.Parallel()
	_, srv := testHandler(t)
	for path, want := range map[string]string{
		"/ipxe/snponly.efi": "application/efi", "/ipxe/shimx64.img": "application/vnd.efi-img", "/ipxe/undionly.kpxe": "application/octet-stream",
		"/boot/vmlinuz-amd64": "application/octet-stream", "/ipxe/autoexec.ipxe": "text/plain; charset=utf-8",
	} {
		for _, method := range []string{http.MethodHead, http.MethodGet} {
			req, err := http.NewRequest(method, srv.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || res.ContentLength <= 0 || got != want {
				t.Errorf("%s %s: %s, %d bytes, type %q, want %q", method, path, res.Status, res.ContentLength, got, want)
			}
		}
	}
}

// A machine without a boot has no address of ours in its grant; it is told to ask
// where it asked.
func TestScriptWithoutServer(t *testing.T) {
	t.Parallel()
	b, srv := testHandler(t)
	b.change = func(in *ScriptInput) { in.HTTP, in.Token = netip.AddrPort{}, "" }
	res, err := srv.Client().Get(srv.URL + ScriptPath(workerInput().MAC))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if want := "chain --autofree --replace " + srv.URL + ScriptPath(workerInput().MAC) + " ||"; err != nil || !strings.Contains(string(body), want) {
		t.Errorf("no %q in %s, %v", want, body, err)
	}
}

// A script that cannot be written is an error in the log, and tells the machine.
func TestRefusedScript(t *testing.T) {
	t.Parallel()
	b := newFakeBackend(t, "")
	b.change = func(in *ScriptInput) { in.KernelArgs = []string{"a b"} }
	var log bytes.Buffer
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, ScriptPath(workerInput().MAC), nil)
	req.RemoteAddr = "127.0.0.1:9"
	NewHandler(newAssets(builtin(), t.TempDir()), b, Pacing{}, logTo(&log)).ServeHTTP(rec, req)
	if rec.Code != 200 || !strings.Contains(rec.Body.String(), "Why: spec.kernelArgs[0]") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "spec.kernelArgs[0]") || strings.Contains(log.String(), workerInput().Token) {
		t.Errorf("log: %s", log.String())
	}
}

// What the operator has to repair is a 500 and in the log, not "not found".
func TestBrokenDropIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "initramfs/fw.cpio", "not a cpio")
	var log bytes.Buffer
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/boot/initramfs-amd64", nil)
	NewHandler(newAssets(builtin(), dir), newFakeBackend(t, ""), Pacing{}, logTo(&log)).ServeHTTP(rec, req)
	if rec.Code != 500 || !strings.Contains(log.String(), "fw.cpio: starts with") {
		t.Errorf("%d %s, log %s", rec.Code, rec.Body, log.String())
	}
}
