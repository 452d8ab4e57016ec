package dhcp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

var update = flag.Bool("update", false, "rewrite the golden files (the test still fails)")

var goldenTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// story is a golden file: what is known, a packet, and what comes of it.
type story struct {
	comment  string
	sections map[string]string
}

var storyOrder = []string{"hardware", "subnets", "link", "boot", "packet", "want", "reply"}

// readStory parses the txtar format: a comment, then files between `-- name --` lines.
func readStory(t testing.TB, path string) *story {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &story{sections: map[string]string{}}
	name, text := "", &strings.Builder{}
	flush := func() {
		if name == "" {
			s.comment = text.String()
		} else {
			s.sections[name] = text.String()
		}
		text.Reset()
	}
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "-- "); ok && strings.HasSuffix(n, " --") {
			flush()
			if name = strings.TrimSuffix(n, " --"); !slices.Contains(storyOrder, name) {
				t.Fatalf("%s: section %q is not known", path, name)
			}
			continue
		}
		text.WriteString(line)
	}
	flush()
	return s
}

func (s *story) write(t *testing.T, path string) {
	t.Helper()
	b := bytes.NewBufferString(s.comment)
	for _, name := range storyOrder {
		if text, ok := s.sections[name]; ok {
			fmt.Fprintf(b, "-- %s --\n%s", name, text)
		}
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s *story) decode(t testing.TB, section string, v any) {
	t.Helper()
	text, ok := s.sections[section]
	if !ok {
		return
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("section %s: %v", section, err)
	}
}

func (s *story) packet(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s.sections["packet"]), ""))
	if err != nil {
		t.Fatalf("section packet: %v", err)
	}
	return b
}

// world is everything a decision depends on but the packet.
type world struct {
	view *Records
	link Link
	boot *hardware.Boot
}

func (s *story) world(t testing.TB) world {
	t.Helper()
	w := world{view: &Records{Nets: []*hardware.Subnet{SampleSubnet()}}}
	link := struct {
		Networks     []netip.Prefix
		Source, Dest netip.Addr
		SourcePort   uint16
		ProxyPort    bool
		RouteSource  netip.Addr
	}{
		Networks: []netip.Prefix{netip.MustParsePrefix("10.77.0.1/24")},
		Source:   netip.IPv4Unspecified(), Dest: limitedBroadcast,
	}
	s.decode(t, "hardware", &w.view.Hardware)
	if _, ok := s.sections["subnets"]; ok {
		w.view.Nets = nil
		s.decode(t, "subnets", &w.view.Nets)
	}
	s.decode(t, "link", &link)
	w.link = Link{Networks: link.Networks, Source: link.Source, Dest: link.Dest, SourcePort: link.SourcePort, ProxyPort: link.ProxyPort, RouteSource: func(netip.Addr) netip.Addr { return link.RouteSource }}
	if _, ok := s.sections["boot"]; ok {
		w.boot = &hardware.Boot{ID: "01BOOT"}
		s.decode(t, "boot", w.boot)
	}
	return w
}

// outcome is what the pure functions make of one packet.
type outcome struct {
	class    Class
	place    Place
	decision Decision
	located  bool
	link     Link
}

func (w world) decide(packet []byte) (o outcome) {
	o.link = w.link
	if o.class, o.decision.Reason = Classify(packet); o.decision.Reason != "" {
		return o
	}
	o.place, o.decision.Reason, o.decision.Detail = Locate(&o.class, w.link, w.view, nil)
	if o.decision.Reason != "" {
		return o
	}
	o.located = true
	var boot *hardware.Boot
	if needsBoot(&o.class, w.link) {
		if boot = w.boot; boot == nil {
			boot = &hardware.Boot{ID: "01BOOT", Next: hardware.Next{Target: hardware.TargetWorker, Reason: hardware.ReasonWorkflowActive}}
		}
	}
	o.decision = Decide(&o.class, w.link, &o.place, boot, Files{HTTPPort: 7080}, goldenTime)
	return o
}

// words says an outcome for people.
func (o outcome) words() string {
	b := &strings.Builder{}
	line := func(key, format string, args ...any) {
		fmt.Fprintf(b, "%-9s "+format+"\n", append([]any{key}, args...)...)
	}
	if c := o.class; c.Type != 0 {
		line("packet", "%s from %s, xid %#08x", c.Type, c.MAC, c.XID)
		if c.Netboots() {
			line("firmware", "%s (%s)", c.Firmware, c.Vendor)
		}
	}
	d := o.decision
	line("reason", "%s: %s", d.Reason, d.Reason.Sentence())
	if d.Detail != "" {
		line("detail", "%s", d.Detail)
	}
	if d.Boot != "" {
		line("boot", "%s %q", d.Boot, d.File)
		if d.BootDetail != "" {
			line("which", "%s", d.BootDetail)
		}
	}
	if d.Client.IsValid() {
		line("client", "%s", d.Client)
	}
	if d.Lease != nil {
		lease, _ := json.Marshal(d.Lease)
		line("lease", "%s", lease)
	}
	if d.Reply == nil {
		line("reply", "silence")
		return b.String()
	}
	to := Route(&o.class, o.link, d.Reply)
	line("to", "%s at layer 2 %s", to.To, to.MAC)
	line("reply", "%d bytes", len(d.Reply.ToBytes()))
	b.WriteString(strings.ReplaceAll(d.Reply.Summary(), "\x00", `\0`))
	return b.String()
}

func hexLines(b []byte) string {
	out := &strings.Builder{}
	for chunk := range slices.Chunk(b, 32) {
		fmt.Fprintf(out, "%x\n", chunk)
	}
	return out.String()
}

func goldenFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d golden files in testdata, %v", len(files), err)
	}
	return files
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, path := range goldenFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			s := readStory(t, path)
			o := s.world(t).decide(s.packet(t))
			want, reply := o.words(), ""
			if o.decision.Reply != nil {
				reply = hexLines(o.decision.Reply.ToBytes())
			}
			if s.sections["want"] == want && s.sections["reply"] == reply {
				return
			}
			t.Errorf("got\n%s%s\nwant\n%s%s", want, reply, s.sections["want"], s.sections["reply"])
			if *update {
				s.sections["want"], s.sections["packet"] = want, hexLines(s.packet(t))
				if s.sections["reply"] = reply; reply == "" {
					delete(s.sections, "reply")
				}
				s.write(t, path)
			}
		})
	}
}

// Every Reason that a decision can have is told by a golden file.
func TestGoldenReasons(t *testing.T) {
	t.Parallel()
	want := map[hardware.Reason]bool{}
	for _, r := range []hardware.Reason{
		hardware.ReasonMalformed, hardware.ReasonNotForUs, hardware.ReasonNotEthernet, hardware.ReasonUnknownMachine,
		hardware.ReasonNoSubnet, hardware.ReasonSubnetOff, hardware.ReasonNICOff, hardware.ReasonNoReservation,
		hardware.ReasonOtherServer, hardware.ReasonWrongAddress, hardware.ReasonNoServerAddress, hardware.ReasonTwoAddresses,
		hardware.ReasonOffered, hardware.ReasonAcked, hardware.ReasonInformed, hardware.ReasonReleased, hardware.ReasonDeclined,
		hardware.ReasonBootProgram, hardware.ReasonBootScript, hardware.ReasonUnknownFirmware, hardware.ReasonProgramLoop,
		hardware.ReasonProvisioned, hardware.ReasonNoProgram, hardware.ReasonOwnNeedsIPXE,
		hardware.ReasonProxyOffered, hardware.ReasonProxyAnswered, hardware.ReasonProxySilent,
	} {
		want[r] = true
	}
	for _, path := range goldenFiles(t) {
		s := readStory(t, path)
		d := s.world(t).decide(s.packet(t)).decision
		delete(want, d.Reason)
		delete(want, d.Boot)
	}
	for r := range want {
		t.Errorf("no golden file ends in %s", r)
	}
}
