package cli

import (
	"math/rand/v2"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

// shellWords splits a line as a shell does, for the quoting that we write.
func shellWords(line string) []string {
	var out []string
	word, open, quoted := "", false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			quoted, open = !quoted, true
		case c == '\\' && !quoted:
			i++
			word, open = word+string(line[i]), true
		case c == ' ' && !quoted:
			if open {
				out = append(out, word)
			}
			word, open = "", false
		default:
			word, open = word+string(c), true
		}
	}
	if open {
		out = append(out, word)
	}
	return out
}

// TestClaimFlags: what a hint prints, typed in, is the same claim.
func TestClaimFlags(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	for range 500 {
		yes := r.IntN(2) == 0
		spec := hardware.ClaimSpec{
			Owner: pick("o", "team/web@x+y"), Hardware: pick("", "m1"), Selector: pick("", "a=b", "rack in (a1,b2),!gpu,tier!=prod", "a"),
			FailureDomain: pick("", "b1"),
			Requirements:  hardware.Requirements{Arch: pick("", "arm64"), CPUs: r.IntN(3), Memory: hardware.Quantity(pick("", "64Gi", "1.5T"))},
		}
		if spec.FailureDomain != "" {
			spec.FailureDomainLabel = pick("", "row")
		}
		for range r.IntN(3) {
			d := hardware.DiskRequirement{Count: r.IntN(4), Size: hardware.Quantity(pick("", "500Gi", "1.5T")), Transport: pick("", "nvme")}
			if r.IntN(2) == 0 {
				d.Rotational = &yes
			}
			spec.Requirements.Disks = append(spec.Requirements.Disks, d)
			spec.Requirements.NICs = append(spec.Requirements.NICs, hardware.NICRequirement{Count: r.IntN(3), Mbps: r.IntN(2) * 1000})
			spec.Prefer = append(spec.Prefer, hardware.Preference{Selector: pick("a=b", "c in (d,e)"), Weight: -100 + r.IntN(100)})
		}
		if err := spec.Validate(); err != nil {
			t.Fatal(err)
		}
		line := api.ClaimFlags(&spec)
		f := claimFlags{}
		var got hardware.ClaimSpec
		cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, _ []string) (err error) {
			got, err = f.read(cmd)
			return err
		}}
		f.add(cmd)
		cmd.SetArgs(shellWords(line))
		if err := cmd.Execute(); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if field := spec.Difference(&got); field != "" {
			t.Fatalf("%s: %s is another\n%+v\n%+v", line, field, spec, got)
		}
	}
}

func TestDiskFlag(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", ",nvme", "500Gi,nvme,sata", "1T,flash,spinning", "1T,,nvme"} {
		if d, ok := diskFlag(bad); ok {
			t.Errorf("%q is %+v", bad, d)
		}
	}
	for text, want := range map[string]string{"nvme": "1x,nvme", "2x500Gi": "2x500Gi", "500Gi,flash": "1x500Gi,flash", "3x,spinning": "3x,spinning"} {
		if d, ok := diskFlag(text); !ok || api.DiskFlag(d) != want {
			t.Errorf("%q is %s, wanted %s", text, api.DiskFlag(d), want)
		}
	}
}
