package ipxe_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pin "github.com/pin/tftp/v3"

	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
	"github.com/rackstrap/rackstrap/tftp"
)

// oneMachine is a backend that knows one machine and nothing else.
type oneMachine struct{ mac hardware.MAC }

func (b oneMachine) Script(_ context.Context, m hardware.MAC, _ netip.Addr) (ipxe.ScriptInput, hardware.Reason) {
	return ipxe.ScriptInput{
		MAC: m, Machine: "m1", Next: hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonProvisioned},
		HTTP: netip.MustParseAddrPort("10.0.0.1:7080"), Arch: "amd64",
	}, hardware.ReasonSentToDisk
}

func (b oneMachine) Asks(context.Context, netip.Addr) (hardware.MAC, bool) {
	return b.mac, true
}
func (oneMachine) Observe(context.Context, ipxe.Observation)       {}
func (oneMachine) Image(context.Context, string) (*os.File, error) { return nil, fs.ErrNotExist }

// tftpHandler is how cmd/rackstrap joins the two packages.
type tftpHandler struct{ *ipxe.TFTPFiles }

func (h tftpHandler) Open(ctx context.Context, c netip.AddrPort, name string) (tftp.File, error) {
	return h.TFTPFiles.Open(ctx, c, name)
}

// TestWhatDHCPNamesIsServed: each name that DHCP, a script or a boot program of
// ours asks for is there, by the real HTTP and TFTP servers, with the same bytes.
func TestWhatDHCPNamesIsServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "boot"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range ipxe.AssetNames() {
		// The drop-in folder stands in for a build without assets.
		if err := os.WriteFile(filepath.Join(dir, "boot", name), bytes.Repeat([]byte(name), 1000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	backend := oneMachine{hardware.MAC{0x52, 0x54, 0, 0, 0, 1}}
	assets := ipxe.NewAssets(dir)
	web := httptest.NewServer(ipxe.NewHandler(assets, backend, ipxe.Pacing{}, log))
	t.Cleanup(web.Close)
	addr := startTFTP(t, tftpHandler{ipxe.NewTFTPFiles(assets, backend, 7080, log)})

	programs := []string{dhcp.ProgramBIOS, dhcp.ProgramUEFI, "ipxe.efi", "shimx64.efi", "grubx64.efi", dhcp.ProgramShimARM, "grubaa64.efi"}
	for _, p := range programs {
		want := strings.Repeat(p, 1000)
		if got := httpGet(t, web.URL+"/ipxe/"+p); got != want {
			t.Errorf("HTTP %s: %d bytes", p, len(got))
		}
		if got := tftpGet(t, addr, p); got != want {
			t.Errorf("TFTP %s: %d bytes", p, len(got))
		}
	}
	for _, f := range []string{"vmlinuz-amd64", "initramfs-amd64", "vmlinuz-arm64", "initramfs-arm64"} {
		want := strings.Repeat(f, 1000)
		if got := httpGet(t, web.URL+"/boot/"+f); got != want {
			t.Errorf("HTTP %s: %d bytes", f, len(got))
		}
		if got := tftpGet(t, addr, "/boot/"+f); got != want {
			t.Errorf("TFTP %s: %d bytes", f, len(got))
		}
	}
	disk := httpGet(t, web.URL+"/ipxe/"+dhcp.ProgramDisk)
	for _, on := range []string{strings.Repeat("shimx64.efi", 1000), strings.Repeat("grubx64.efi", 1000), "/grub/machine/auto"} {
		if !strings.Contains(disk, on) {
			t.Errorf("HTTP %s: %d bytes without %.40s", dhcp.ProgramDisk, len(disk), on)
		}
	}
	if got := httpGet(t, web.URL+ipxe.ScriptPath(backend.mac)); !strings.HasPrefix(got, "#!ipxe\n") {
		t.Errorf("script: %q", got)
	}
	if got := tftpGet(t, addr, "grub/grub.cfg"); got != string(ipxe.GrubConfig()) {
		t.Errorf("grub.cfg: %q", got)
	}
	if got := tftpGet(t, addr, "/grub/machine/"+backend.mac.String()); !strings.Contains(got, "m1 (52:54:00:00:00:01) boots its own disk") {
		t.Errorf("machine: %q", got)
	}
}

func startTFTP(t *testing.T, h tftp.Handler) string {
	t.Helper()
	s, err := tftp.New(tftp.Config{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Handler: h})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-s.Ready()
	return s.Addr().String()
}

func httpGet(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%s: %s, %v", url, res.Status, err)
	}
	return string(body)
}

func tftpGet(t *testing.T, addr, name string) string {
	t.Helper()
	c, err := pin.NewClient(addr)
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Receive(name, "octet")
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return ""
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return b.String()
}
