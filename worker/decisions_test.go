package worker

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/action"
)

const goodLine = "BOOT_IMAGE=vmlinuz console=tty0 rackstrap.server=10.0.0.1:42113 rackstrap.http=http://10.0.0.1:7080/ rackstrap.token=T0K " +
	"rackstrap.ca=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff rackstrap.mac=52:54:00:12:34:56\n"

func TestParseCommandLine(t *testing.T) {
	t.Parallel()
	p, err := ParseCommandLine(goodLine)
	if err != nil {
		t.Fatal(err)
	}
	if p.Server.String() != "10.0.0.1:42113" || p.HTTP != "http://10.0.0.1:7080" || p.Token != "T0K" || p.CA[1] != 0x11 || p.MAC.String() != "52:54:00:12:34:56" {
		t.Errorf("parameters are %+v", p)
	}
	if strings.Contains(p.String(), "T0K") {
		t.Errorf("the token is in %q", p)
	}
	if p, err := ParseCommandLine(goodLine + " rackstrap.server=[fd00::1]:1 rackstrap.mac="); err != nil || p.Server.Port() != 1 || !p.MAC.IsZero() {
		t.Errorf("later words do not win: %v, %v", p, err)
	}
}

func TestParseCommandLineNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := ParseCommandLine("quiet rackstrap.server=there rackstrap.ca=12 rackstrap.mac=zz rackstrap.http=ftp://x")
	for _, want := range []string{
		`rackstrap.server "there" is not an address`, "rackstrap.token is missing", "rackstrap.ca has 2 characters",
		`rackstrap.mac "zz" is not a MAC`, `rackstrap.http "ftp://x" is not an http URL`, "boot over the network",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// FuzzParseCommandLine: a line is taken only with everything in it, and the token is
// never in what is printed.
func FuzzParseCommandLine(f *testing.F) {
	f.Add(goodLine)
	f.Add("rackstrap.server=x rackstrap.token=")
	f.Fuzz(func(t *testing.T, line string) {
		p, err := ParseCommandLine(line)
		if err == nil && (!p.Server.IsValid() || p.Token == "" || p.CA == [32]byte{} && !strings.Contains(line, "00000000")) {
			t.Errorf("%q gave %+v", line, p)
		}
		const secret = "s3cr3t-of-this-boot"
		p, err = ParseCommandLine(line + " rackstrap.token=" + secret)
		if strings.Contains(p.String(), secret) || (err != nil && strings.Contains(err.Error(), secret)) {
			t.Errorf("the token is in %q or %v", p, err)
		}
	})
}

func TestVerifyChain(t *testing.T) {
	t.Parallel()
	ca, other, noCA := newAuthority(t, true), newAuthority(t, true), newAuthority(t, false)
	leaf := ca.leaf(t)
	client := ca.issue(t, &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "x"}, NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	at := func(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }
	tests := []struct {
		name  string
		chain []*x509.Certificate
		pin   [32]byte
		now   func() time.Time
		want  string // "" is success
	}{
		{"leaf and CA", []*x509.Certificate{leaf.cert, ca.cert}, ca.pin(), nil, ""},
		{"with others between", []*x509.Certificate{leaf.cert, other.cert, ca.cert}, ca.pin(), at(0), ""},
		{"years off, clock not set", []*x509.Certificate{leaf.cert, ca.cert}, ca.pin(), nil, ""},
		{"expired", []*x509.Certificate{leaf.cert, ca.cert}, ca.pin(), at(3 * time.Hour), "is valid from"},
		{"not yet valid", []*x509.Certificate{leaf.cert, ca.cert}, ca.pin(), at(-3 * time.Hour), "is valid from"},
		{"a little off", []*x509.Certificate{leaf.cert, ca.cert}, ca.pin(), at(90 * time.Minute), ""},
		{"nothing", nil, ca.pin(), nil, "no certificate"},
		{"leaf alone", []*x509.Certificate{leaf.cert}, ca.pin(), nil, "does not belong"},
		{"CA alone", []*x509.Certificate{ca.cert}, ca.pin(), nil, "as its own certificate"},
		{"another CA", []*x509.Certificate{other.leaf(t).cert, other.cert}, ca.pin(), nil, "does not belong"},
		{"leaf of another CA", []*x509.Certificate{other.leaf(t).cert, ca.cert}, ca.pin(), nil, "is not signed"},
		{"pinned certificate is no CA", []*x509.Certificate{noCA.leaf(t).cert, noCA.cert}, noCA.pin(), nil, "is no CA"},
		{"a client's certificate", []*x509.Certificate{client.cert, ca.cert}, ca.pin(), nil, "not made for servers"},
	}
	for _, tt := range tests {
		err := verifyChain(tt.chain, tt.pin, tt.now)
		if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestPatience(t *testing.T) {
	t.Parallel()
	start := time.Now()
	away := status.Error(codes.Unavailable, "connection refused")
	bad := errors.New("tls: wrong CA")
	tests := []struct {
		name     string
		welcomed bool
		refused  error
		err      error
		after    time.Duration
		running  bool
		over     bool
	}{
		{"away for a while", false, nil, away, 29 * time.Minute, false, false},
		{"away until the token has ended", false, nil, away, hardware.BootDeadline, false, true},
		{"away for a week, once let in", true, nil, away, 7 * 24 * time.Hour, false, false},
		{"token refused", true, nil, status.Error(codes.Unauthenticated, "no"), 0, true, true},
		{"too old", true, nil, status.Error(codes.FailedPrecondition, "no"), 0, true, true},
		{"superseded stream", true, nil, status.Error(codes.Aborted, "no"), time.Hour, false, false},
		{"another installation, just now", true, bad, away, time.Minute, false, false},
		{"another installation, long", true, bad, away, distrustLimit, false, true},
		{"another installation, in the middle of an action", true, bad, away, time.Hour, true, false},
	}
	for _, tt := range tests {
		p := patience{started: start}
		p.note(start, tt.welcomed, tt.refused)
		e, over := p.judge(start.Add(tt.after), tt.err, tt.running)
		if over != tt.over || (over && (!e.Fault || e.Reason == "" || e.What == "")) {
			t.Errorf("%s: %+v, %v", tt.name, e, over)
		}
	}
	p := patience{started: start, welcomed: true}
	p.note(start, false, bad)
	p.note(start.Add(time.Minute), false, nil)
	p.note(start.Add(2*time.Minute), false, bad)
	if _, over := p.judge(start.Add(6*time.Minute), away, false); over {
		t.Error("the time of distrust goes on although the server was believed meanwhile")
	}
}

func TestPauseAfter(t *testing.T) {
	t.Parallel()
	for n := range 100 {
		lo, hi := pauseAfter(n, 0), pauseAfter(n, 1)
		if lo < 250*time.Millisecond || hi > 15*time.Second || lo >= hi {
			t.Errorf("after %d failures: %v to %v", n, lo, hi)
		}
	}
}

func TestOutbox(t *testing.T) {
	t.Parallel()
	o := newOutbox()
	a := &workerpb.Assignment{Workflow: "W"}
	o.Log(a, []byte(strings.Repeat("x", maxLogWaiting+3*maxLogPiece)))
	one := o.Add(&workerpb.Up{Body: &workerpb.Up_Report{Report: &workerpb.Report{}}})
	two := o.Add(&workerpb.Up{Body: &workerpb.Up_Report{Report: &workerpb.Report{}}})
	o.Progress(&workerpb.Progress{Done: 1})
	o.Progress(&workerpb.Progress{Done: 2})
	msgs, more := o.Take(0, false)
	if !more || msgs[len(msgs)-2].GetSeq() != one || msgs[len(msgs)-1].GetSeq() != two {
		t.Errorf("%d messages, more %v", len(msgs), more)
	}
	size := 0
	for _, m := range msgs {
		size += len(m.GetLog().GetText())
	}
	if size > maxLogWaiting+100 || !strings.HasPrefix(string(msgs[0].GetLog().GetText()), "[log lost") {
		t.Errorf("%d bytes of log", size)
	}
	if msgs, more = o.Take(two, true); more || len(msgs) != 1 || msgs[0].GetProgress().GetDone() != 2 {
		t.Errorf("then %v, more %v", msgs, more)
	}
	o.Ack(99)
	o.Ack(one)
	if msgs, _ = o.Take(0, true); len(msgs) != 1 || msgs[0].GetSeq() != two {
		t.Errorf("after the ack: %v", msgs)
	}
	if waiting, _ := o.Waiting(one); waiting {
		t.Error("what is acknowledged waits")
	}
}

func TestProgressText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		p, prev action.Progress
		took    time.Duration
		first   bool
		want    string
	}{
		{action.Progress{Done: 50e6, Total: 200e6, Written: 300e6}, action.Progress{Done: 10e6, Written: 100e6}, 2 * time.Second, false, "25 % of 200 MB, 100 MB/s"},
		{action.Progress{Done: 50e6}, action.Progress{}, time.Second, true, "50 MB"},
		{action.Progress{Done: 30e9, Total: 20e9, Note: "reading\nback"}, action.Progress{}, 0, false, "100 % of 20.0 GB, reading back"},
	} {
		if got := progressText(tt.p, tt.prev, tt.took, tt.first); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	d := newDisplay(&workerpb.Assign{Assignment: &workerpb.Assignment{Action: 1, Attempt: 2}, Name: "write", Kind: "image.write", Actions: 5})
	if d.Title() != "2/5 write (image.write), attempt 3" {
		t.Errorf("title is %q", d.Title())
	}
	if _, ok := d.Line(); ok {
		t.Error("a line without progress")
	}
	d.Set(action.Progress{Done: 1e6})
	if line, ok := d.Line(); !ok || !strings.HasSuffix(line, ": 1 MB") {
		t.Errorf("line is %q", line)
	}
	if _, ok := d.Line(); ok {
		t.Error("the same line twice")
	}
}

// The proof of a wipe goes along with a success only.
func TestReportOfWipe(t *testing.T) {
	t.Parallel()
	a := &workerpb.Assign{Assignment: &workerpb.Assignment{Workflow: "W"}}
	res := action.Result{Disk: "/dev/sda", Wiped: []hardware.WipedDisk{{Path: "/dev/sda", Serial: "S\x1b1", Bytes: 10, Method: "discard", Verified: 8}}}
	r := report(a, res, nil, nil)
	if w := r.GetWiped(); len(w) != 1 || w[0].GetPath() != "/dev/sda" || w[0].GetSerial() != "S 1" || w[0].GetBytes() != 10 || w[0].GetMethod() != "discard" || w[0].GetVerified() != 8 {
		t.Errorf("%v", r)
	}
	if r := report(a, res, errors.New("broken"), nil); len(r.GetWiped()) != 0 {
		t.Errorf("a failure says %v", r)
	}
}
