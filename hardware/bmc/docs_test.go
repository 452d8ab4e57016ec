package bmc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/hardware/bmc"
)

// fakeIPMI keeps the state of the one BMC m1-bmc.example.org in a file, says no where
// there is a file called broken, and notes what it was called with.
const fakeIPMI = `#!/bin/sh
cd "$(dirname "$0")"
[ ! -e broken ] || { echo "no route to host" >&2; exit 1; }
[ "$IPMI_PASSWORD" = hunter2 ] || exit 2
[ "$1 $2 $3 $4 $5 $6 $7 $8" = "-I lanplus -H m1-bmc.example.org -U admin -E chassis" ] || exit 3
shift 8
case "$*" in
"power status") echo "Chassis Power is $(cat state)"; exit ;;
"power on" | "power cycle") echo on >state ;;
"power off") echo off >state ;;
esac
echo "$*" >>log
`

// TestDocumentedReceiver runs the receiver and the command of deploy/docs/power.md as
// they stand there; only the BMC is not one.
func TestDocumentedReceiver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	addr := startDocumented(t, dir)
	h := machine("m1", "http://"+addr+"/")
	o, w := options()
	p := bmc.NewPower(o, nil)
	for _, step := range []struct {
		action, device, firmware string
		state                    hardware.PowerState
		log                      []string
	}{
		{"status", "", "", hardware.PowerOff, nil},
		{"on", "network", "uefi", hardware.PowerOn, []string{"bootdev pxe options=efiboot", "power on"}},
		{"status", "", "", hardware.PowerOn, nil},
		{"cycle", "disk", "bios", hardware.PowerOn, []string{"bootdev disk", "power cycle"}},
		{"off", "", "", hardware.PowerOff, []string{"power off"}},
		{"cycle", "", "", hardware.PowerOn, []string{"power on"}},
	} {
		_ = os.Remove(filepath.Join(dir, "log"))
		h.Facts = &hardware.Facts{Firmware: step.firmware}
		out, err := p.Do(t.Context(), h, step.action, step.device)
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil || out.State != step.state || strings.Join(step.log, "\n") != strings.TrimSpace(string(log)) {
			t.Errorf("%s %s: %+v, %v; the BMC was told %q, want %q", step.action, step.device, out, err, log, step.log)
		}
	}
	// A command that fails is asked for again, and then works.
	write(t, dir, "broken", "")
	o.Wait = w.wait
	repaired := bmc.NewPower(repairing(o, filepath.Join(dir, "broken")), nil)
	if out, err := repaired.Do(t.Context(), h, "off", ""); err != nil || out.State != hardware.PowerOff {
		t.Errorf("after a failure: %+v, %v", out, err)
	}
	refusals(t, "http://"+addr+"/", filepath.Join(dir, "log"))
}

// startDocumented writes the programs into dir, starts the receiver and returns its
// address.
func startDocumented(t *testing.T, dir string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("RACKSTRAP_TEST_NOSKIP") == "1" {
			t.Fatal(err)
		}
		t.Skip("python3 is not installed (go run ./deploy/lab/cmd/labsetup installs what the tests need)")
	}
	doc, err := os.ReadFile("../../deploy/docs/power.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, lang := range map[string]string{"receiver.py": "python", "power": "sh"} {
		block := regexp.MustCompile("(?s)\n```" + lang + "\n(.*?)\n```\n").FindSubmatch(doc)
		if block == nil {
			t.Fatalf("power.md has no block of %s", lang)
		}
		write(t, dir, name, string(block[1])+"\n")
	}
	write(t, dir, "ipmitool", fakeIPMI)
	write(t, dir, "state", "off\n")
	cmd := exec.CommandContext(t.Context(), python, filepath.Join(dir, "receiver.py"), "127.0.0.1", "0")
	cmd.Env = append(os.Environ(), "POWER_SECRET="+secret, "POWER_COMMAND="+filepath.Join(dir, "power"), "IPMI_PASSWORD=hunter2", "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("receiver: %s", said.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	return addr
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// repairing removes the file that breaks things while the second try is waited for.
func repairing(o bmc.Options, broken string) bmc.Options {
	o.NewID = func(time.Time) string { return "after-a-failure" }
	wait := o.Wait
	o.Wait = func(ctx context.Context, d time.Duration) error {
		_ = os.Remove(broken)
		return wait(ctx, d)
	}
	return o
}

// refusals are what a receiver must not obey.
func refusals(t *testing.T, url, log string) {
	t.Helper()
	body, err := json.Marshal(bmc.Call{Version: 1, ID: "replayed", Time: time.Now(), Action: bmc.ActionOff, Machine: bmc.Machine{Name: "m1"}})
	if err != nil {
		t.Fatal(err)
	}
	good := bmc.Sign(secret, time.Now(), body)
	_ = os.Remove(log)
	for _, tc := range []struct {
		name, signature string
		want            string
	}{
		{"no signature", "", "403 bad signature"},
		{"another secret", bmc.Sign("x", time.Now(), body), "403 bad signature"},
		{"not ASCII", "t=1,v1=\xe9", "403 bad signature"},
		{"an hour ago", bmc.Sign(secret, time.Now().Add(-time.Hour), body), "403 the clocks differ"},
		{"tomorrow", bmc.Sign(secret, time.Now().Add(24*time.Hour), body), "403 the clocks differ"},
		{"good", good, `200 {"power": "off"}`},
		{"recorded", good, `200 {"power": "off"}`},
		{"repeated", bmc.Sign(secret, time.Now().Add(2*time.Second), body), `200 {"power": "off"}`},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(bmc.SignatureHeader, tc.signature)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		got := strings.Replace(fmt.Sprintf("%d %s", resp.StatusCode, text), `{"message": "`, "", 1)
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	if told, _ := os.ReadFile(log); string(told) != "power off\n" {
		t.Errorf("the BMC was told %q, want it once", told)
	}
}
