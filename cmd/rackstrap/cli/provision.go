package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

func (a *app) provisionCommand() *cobra.Command {
	var in api.Provision
	var userData, network, metaData string
	var params []string
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "provision HARDWARE --image IMAGE", Short: "Install an operating system on a machine", Args: takes("HARDWARE"),
		Long: `Install an operating system on a machine: its disk is wiped, the image is written,
network and user-data are put in place, and the machine restarts into it. Where the
record has a power driver the machine is switched on by it.

It runs a built-in template, which anybody can read (rackstrap template get install)
and copy: install, install-ignition or install-talos, as --format says.

--user-data takes a file of UTF-8 text, byte by byte; - is standard input. --network
takes a cloud-init network-config version 2; without it, it is made from the record.

--phone-home is for images with cloud-init: an Ignition config and Talos call nobody.
Where user-data and vendor-data are both yours, call it yourself, or leave it out.`,
		Example: `  rackstrap provision m1 --image debian-12 --wait
  rackstrap provision m1 --os debian --os-version 12 --wait
  rackstrap provision m1 --image debian-12 --user-data cloud.yaml --dry-run
  rackstrap provision m1 --image flatcar --format ignition --user-data node.ign --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if in.Image == "" && in.OS == "" && in.OSVersion == "" && in.KubernetesVersion == "" {
				return usageHint("rackstrap image list", "--image is missing")
			}
			var err error
			for _, f := range []struct {
				path string
				into *string
			}{{userData, &in.UserData}, {network, &in.Network}, {metaData, &in.MetaData}} {
				if f.path == "" {
					continue
				}
				if *f.into, err = a.readFile(f.path); err != nil {
					return err
				}
			}
			if in.Params, err = a.params(cmd, params); err != nil {
				return err
			}
			c := a.client()
			defer c.Close()
			out, err := c.Provision(cmd.Context(), args[0], in)
			if err != nil {
				return err
			}
			if in.DryRun {
				return a.printDryRun(out)
			}
			if done, err := a.printValue(out); done && err != nil {
				return err
			} else if !done {
				if _, err := fmt.Fprintf(a.Out, "workflow/%s created\n", out.Workflow.Meta.Name); err != nil {
					return err
				}
			}
			if !wait {
				return nil
			}
			if err := a.wait(cmd.Context(), c, out.Workflow.Meta.Name, timeout); err != nil || !in.WaitForPhoneHome {
				return err
			}
			return a.waitState(cmd.Context(), c, args[0], timeout, hardware.StateProvisioned)
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.Image, "image", "", "the name of an image (rackstrap image list), or an http(s) URL")
	f.StringVar(&in.OS, "os", "", "instead of --image: the one image of that operating system that fits the machine")
	f.StringVar(&in.OSVersion, "os-version", "", "the same, of that version")
	f.StringVar(&in.KubernetesVersion, "kubernetes-version", "", "the same, with that version of Kubernetes")
	f.StringVar(&in.Checksum, "checksum", "", "of an image by URL: sha256:HEX, sha512:HEX, md5:HEX (weak), or the URL of a list of checksums")
	f.StringVar(&in.Format, "format", "", "what the user-data is: cloud-config (default), ignition or talos")
	f.StringVar(&userData, "user-data", "", "file with the user-data; - is standard input")
	f.StringVar(&network, "network", "", "file with a cloud-init network-config version 2")
	f.StringVar(&metaData, "meta-data", "", "file with more meta-data, as KEY: VALUE lines")
	f.StringVar(&in.Disk, "disk", "", "smallest, largest, /dev/… or serial=…; the only one where it is not given")
	f.StringVar(&in.Template, "template", "", "a template of your own instead of the built-in one")
	f.StringArrayVarP(&params, "param", "p", nil, "NAME=VALUE or NAME=@FILE for the template; may be given several times")
	f.BoolVar(&in.Reinstall, "reinstall", false, "allow to destroy the disk of a machine that is provisioned")
	f.BoolVar(&in.WaitForPhoneHome, "phone-home", false, "the machine is provisioned when its system phones home, and failed if it does not within 30 minutes; needs cloud-init")
	f.StringVar(&in.Claim, "claim", "", "the claim that holds the machine")
	f.StringVar(&in.Name, "name", "", "name of the workflow; the same name and values again are no second install")
	f.BoolVar(&in.DryRun, "dry-run", false, "print the rendered actions, without secrets, and the disks that would be erased; start nothing")
	f.BoolVar(&wait, "wait", false, "wait for its end and show its progress")
	f.DurationVar(&timeout, "timeout", 0, "with --wait: give up waiting after that long")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"cloud-config", "ignition", "talos"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("user-data")
	return cmd
}

// printDryRun prints what would be done, action by action, and what of it cannot be
// undone.
func (a *app) printDryRun(p *api.Provisioned) error {
	if done, err := a.printValue(p); done {
		return err
	}
	if _, err := fmt.Fprintf(a.Out, "%s: template %s, nothing is started\n", p.Hardware, p.Workflow.Spec.Template); err != nil {
		return err
	}
	var lines [][]string
	for i, x := range p.Workflow.Status.Actions {
		lines = append(lines, []string{fmt.Sprint(i+1) + ".", x.Name, string(x.Kind), string(x.With)})
	}
	if err := aligned(a.Out, "  ", lines); err != nil || len(p.Erases) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(a.Out, "what is erased:"); err != nil {
		return err
	}
	lines = nil
	for _, e := range p.Erases {
		disk, about, what := string(e.Wanted), e.Why, string(e.Holds)+": "+e.Detail
		if e.Disk != nil {
			d := e.Disk
			disk = d.Path
			about = strings.Join(slices.DeleteFunc([]string{size(int64(d.Bytes)), oneLine(d.Model), oneLine(d.Serial)}, func(s string) bool { return s == "" }), ", ")
			if on := d.Holds(); on != "" {
				what += "; on it at " + e.Seen.Local().Format(time.DateTime) + ": " + oneLine(on)
			}
		}
		lines = append(lines, []string{orDash(disk), about, what})
	}
	return aligned(a.Out, "  ", lines)
}
