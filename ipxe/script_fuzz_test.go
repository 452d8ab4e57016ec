package ipxe

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

// FuzzScript: whatever a record says, a script has the lines, the commands and
// the expansions of the same script for a harmless record, and only printable
// ASCII; the words of the kernel command line are those that were given.
func FuzzScript(f *testing.F) {
	cases := scriptCases()
	if len(cases) == 0 {
		f.Fatal("empty corpus")
	}
	for _, tc := range cases {
		own := hardware.OwnScript{}
		if tc.in.Own != nil {
			own = *tc.in.Own
		}
		f.Add(tc.in.Machine, tc.in.Why, tc.in.Token, tc.in.CA, tc.in.Arch,
			strings.Join(tc.in.Consoles, "\x00"), strings.Join(tc.in.KernelArgs, "\x00"), tc.in.HTTP.String(), string(tc.in.Next.Target), own.URL, own.Script)
	}
	f.Fuzz(func(t *testing.T, machine, why, token, ca, arch, consoles, args, http, target, url, script string) {
		in := workerInput()
		in.Machine, in.Why, in.Token, in.CA, in.Arch = machine, why, token, ca, arch
		in.Consoles, in.KernelArgs = split(consoles), split(args)
		in.HTTP, _ = netip.ParseAddrPort(http)
		in.Next.Target = hardware.Target(target)
		in.Own = &hardware.OwnScript{URL: url}
		sameShape(t, "ipxe", Script, in)
		sameShape(t, "grub", Grub, in)
		verbatim(t, in, script)
	})
}

// verbatim: an operator's own script is sent as it is, or not at all.
func verbatim(t *testing.T, in ScriptInput, script string) {
	t.Helper()
	in.Machine, in.Next.Target, in.Own = "m1", hardware.TargetCustom, &hardware.OwnScript{Script: script}
	got, err := Script(in)
	if script == "" || err != nil {
		return // sameShape looks at those
	}
	if strings.TrimRight(string(got), "\n") != strings.TrimRight(script, "\n") || !bytes.HasPrefix(got, []byte("#!ipxe")) {
		t.Fatalf("%q was sent as %q", script, got)
	}
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}

func sameShape(t *testing.T, language string, render func(ScriptInput) ([]byte, error), in ScriptInput) {
	t.Helper()
	got, err := render(in)
	harmless := workerInput()
	harmless.Next, harmless.Own = in.Next, &hardware.OwnScript{URL: "http://x/y"}
	if in.Machine == "" {
		harmless.Machine = ""
	}
	if in.Token == "" {
		harmless.Token = ""
	}
	if err != nil {
		harmless = workerInput()
		harmless.CA = ""
	}
	want, _ := render(harmless)
	for i, b := range got {
		if b != '\n' && b != '\t' && (b < ' ' || b > '~') {
			t.Fatalf("%s: byte %#x at %d in\n%s", language, b, i, got)
		}
	}
	g, w := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	if len(g) != len(w) {
		t.Fatalf("%s: %d lines, want %d, in\n%s", language, len(g), len(w), got)
	}
	for i := range g {
		for _, special := range []string{"$", "{", "}", "#", "||", "&&", "|", "\\"} {
			// An apostrophe is '\'' in GRUB.
			line := strings.ReplaceAll(string(g[i]), `'\''`, "")
			if a, b := strings.Count(line, special), strings.Count(string(w[i]), special); a != b {
				t.Fatalf("%s, line %d: %d times %q, want %d: %s", language, i+1, a, special, b, g[i])
			}
		}
		if a, b := verb(g[i]), verb(w[i]); a != b {
			t.Fatalf("%s, line %d: the command is %q, want %q", language, i+1, a, b)
		}
		if extra := words(g[i]) - words(w[i]); err == nil && verb(w[i]) == "kernel" && len(in.Consoles) > 0 &&
			extra != len(in.KernelArgs)+len(in.Consoles)-2 {
			t.Fatalf("%s: %d more words than a plain script: %s", language, extra, g[i])
		}
	}
}

func verb(line []byte) string {
	w, _, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	return w
}

func words(line []byte) int { return len(bytes.Fields(line)) }
