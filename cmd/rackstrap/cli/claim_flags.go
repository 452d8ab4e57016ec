package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/hardware"
)

// claimFlags say what a claim wants; api.ClaimFlags writes them.
type claimFlags struct {
	spec                hardware.ClaimSpec
	memory              string
	disks, nics, prefer []string
}

func (f *claimFlags) add(cmd *cobra.Command) {
	s, r, flags := &f.spec, &f.spec.Requirements, cmd.Flags()
	flags.StringVar(&s.Owner, "owner", "", "who claims, for example team/service")
	flags.StringVar(&s.Hardware, "hardware", "", "this machine and no other")
	flags.StringVarP(&s.Selector, "selector", "l", "", "labels that the machine must have: 'tier=prod,rack in (a1,a2),!gpu'")
	flags.StringVar(&r.Arch, "arch", "", "amd64 or arm64")
	flags.IntVar(&r.CPUs, "cpus", 0, "the least number of logical CPUs")
	flags.StringVar(&f.memory, "memory", "", "the least memory: 32Gi, 64G")
	flags.StringArrayVar(&f.disks, "disk", nil, "disks as [COUNTx]SIZE[,TRANSPORT][,flash|spinning], for example 2x500Gi,nvme; may be given several times")
	flags.StringArrayVar(&f.nics, "nic", nil, "NICs as [COUNTx]MBPS, for example 2x10000; may be given several times")
	flags.StringVar(&s.FailureDomain, "failure-domain", "", "where the machine must stand: the value of its label rack, else its spec.rack")
	flags.StringVar(&s.FailureDomainLabel, "failure-domain-label", "", "another label than rack")
	flags.BoolVar(&s.FailureDomainPreferred, "failure-domain-preferred", false, "a machine that stands elsewhere will do where there is none")
	flags.StringVar(&s.Reuse, "reuse", "", "the group whose machines are kept for it (claim release --reserve-for); one of them is taken before any other")
	flags.StringArrayVar(&f.prefer, "prefer", nil, "WEIGHT:SELECTOR, -100 to 100: the machine with the largest sum is taken; may be given several times")
}

func (f *claimFlags) read(cmd *cobra.Command) (hardware.ClaimSpec, error) {
	s := f.spec
	s.Requirements.Memory = hardware.Quantity(f.memory)
	for _, text := range f.disks {
		d, ok := diskFlag(text)
		if !ok {
			return s, usageHint("--disk 2x500Gi,nvme,flash", "--disk %q is not [COUNTx]SIZE[,TRANSPORT][,flash|spinning]", text)
		}
		s.Requirements.Disks = append(s.Requirements.Disks, d)
	}
	for _, text := range f.nics {
		count, rest := counted(text)
		mbps, err := strconv.Atoi(rest)
		if rest == "" && count > 0 {
			mbps, err = 0, nil
		}
		if err != nil {
			return s, usageHint("--nic 2x10000", "--nic %q is not [COUNTx]MBPS", text)
		}
		s.Requirements.NICs = append(s.Requirements.NICs, hardware.NICRequirement{Count: count, Mbps: mbps})
	}
	for _, text := range f.prefer {
		weight, selector, ok := strings.Cut(text, ":")
		n, err := strconv.Atoi(weight)
		if !ok || err != nil {
			return s, usageHint("--prefer 10:tier=prod", "--prefer %q is not WEIGHT:SELECTOR", text)
		}
		s.Prefer = append(s.Prefer, hardware.Preference{Selector: selector, Weight: n})
	}
	return s, nil
}

// diskFlag reads 2x500Gi,nvme,flash: each part may be missing, not all.
func diskFlag(text string) (hardware.DiskRequirement, bool) {
	d := hardware.DiskRequirement{}
	if text == "" {
		return d, false
	}
	for i, word := range strings.Split(text, ",") {
		spinning := word == "spinning"
		switch {
		case word == "":
			return d, false
		case spinning || word == "flash":
			if d.Rotational != nil {
				return d, false
			}
			d.Rotational = &spinning
		case i == 0 && word[0] >= '0' && word[0] <= '9':
			count, size := counted(word)
			d.Count, d.Size = count, hardware.Quantity(size)
		case d.Transport == "":
			d.Transport = word
		default:
			return d, false
		}
	}
	return d, true
}

// counted takes a leading 2x off.
func counted(text string) (int, string) {
	head, rest, ok := strings.Cut(text, "x")
	if n, err := strconv.Atoi(head); ok && err == nil {
		return n, rest
	}
	return 0, text
}
