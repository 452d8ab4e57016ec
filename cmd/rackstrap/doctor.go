package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/ipxe"
)

// grade says how bad a finding is.
type grade = api.CheckResult

const (
	gradeOK   = api.CheckOK
	gradeWarn = api.CheckWarn
	gradeFail = api.CheckFail
)

// diagnosis is one line of the doctor.
type diagnosis struct {
	// About is what was looked at, in a word or two.
	About  string `json:"about"`
	Result grade  `json:"result"`
	// Says is the finding in a sentence; Do is what to type next.
	Says string `json:"says"`
	Do   string `json:"do,omitempty"`
}

func fine(about, format string, args ...any) diagnosis {
	return diagnosis{About: about, Result: gradeOK, Says: fmt.Sprintf(format, args...)}
}

func warn(about, do, format string, args ...any) diagnosis {
	return diagnosis{About: about, Result: gradeWarn, Says: fmt.Sprintf(format, args...), Do: do}
}

func fail(about, do, format string, args ...any) diagnosis {
	return diagnosis{About: about, Result: gradeFail, Says: fmt.Sprintf(format, args...), Do: do}
}

// errUnwell is the doctor's last word where something fails.
var errUnwell = errors.New("something has to be put right first: see the lines that begin with fail")

func newDoctorCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at everything that netbooting needs, and say what to type",
		Long: `Look at the configuration, the data directory, the daemon, its ports and interfaces, the
networks, other DHCP servers on the wire, the boot files and whether they can be fetched,
the clock, the pools and what waits. It works with the daemon stopped, changes nothing
and takes about six seconds. Run it as root on the appliance: what needs root is said.

Exit code 1 where something fails; warnings are 0.`,
		Example: "  sudo rackstrap doctor\n  rackstrap doctor -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			output, _ := cmd.Flags().GetString("output")
			d := &doctor{config: path, in: func(f func() error) error { return f() }, progress: func(text string) {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s\n", text)
			}}
			all := d.examine(cmd.Context())
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			if err := printDiagnoses(cmd.OutOrStdout(), output, all); err != nil {
				return err
			}
			for _, x := range all {
				if x.Result == gradeFail {
					return errUnwell
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "config", defaultConfigPath, "configuration file")
	return cmd
}

func printDiagnoses(w io.Writer, output string, all []diagnosis) error {
	if output == "json" || output == "yaml" { // JSON is YAML
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"checks": all})
	}
	width := 0
	for _, x := range all {
		width = max(width, len(x.About))
	}
	var b strings.Builder
	for _, x := range all {
		fmt.Fprintf(&b, "%-4s  %-*s  %s\n", x.Result, width, x.About, strings.Join(strings.Fields(x.Says), " "))
		if x.Do != "" && x.Result != gradeOK {
			fmt.Fprintf(&b, "      %-*s  → %s\n", width, "", x.Do)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// doctor looks around.
type doctor struct {
	config string
	// in runs what looks at the network, as in dhcp.Config.
	in       func(func() error) error
	progress func(text string)
}

// examine looks at everything, in the order in which it must be put right.
func (d *doctor) examine(ctx context.Context) []diagnosis {
	c, err := loadConfig(d.config)
	if err != nil {
		// nothing else can be looked at where it is not known where it is
		return []diagnosis{fail("configuration", "rackstrap init --config - | less", "%v", err)}
	}
	out := []diagnosis{fine("configuration", "%s can be read", d.config)}
	if _, err := os.Stat(d.config); errors.Is(err, fs.ErrNotExist) {
		out[0] = fine("configuration", "there is no %s, so the defaults hold", d.config)
	}
	return append(out, d.examineWith(ctx, &c)...)
}

// examineWith looks at all that the configuration names.
func (d *doctor) examineWith(ctx context.Context, c *config) []diagnosis {
	var out []diagnosis
	running, barred := &running{}, false
	var links []nic
	var says []diagnosis
	out = append(out, looked("daemon", func() []diagnosis { running = d.daemon(ctx, c); return nil })...)
	out = append(out, looked("data", func() (says []diagnosis) { says, barred = d.data(c, running); return says })...)
	out = append(out, running.says...)
	out = append(out, looked("interfaces", func() []diagnosis { links, says = d.interfaces(c); return nil })...)
	out = append(out, looked("ports", func() []diagnosis { return d.ports(ctx, c, links, running) })...)
	out = append(out, says...)
	out = append(out, looked("subnets", func() []diagnosis { return checkSubnets(running, links) })...)
	out = append(out, looked("DHCP", func() []diagnosis { return d.others(ctx, c, links, running) })...)
	out = append(out, looked("boot files", func() []diagnosis { return checkBootFiles(ipxe.NewAssets(c.Data).Missing, barred) })...)
	out = append(out, looked("fetching", func() []diagnosis { return d.fetches(ctx, c, links, running) })...)
	out = append(out, looked("clock", func() []diagnosis { return []diagnosis{d.clock()} })...)
	return append(out, looked("records", func() []diagnosis { return checkRecords(running) })...)
}

// looked is what one look found. One that panics is a finding too: the daemon looks at
// itself, and has machines to serve.
func looked(about string, look func() []diagnosis) (out []diagnosis) {
	defer func() {
		if p := recover(); p != nil {
			out = append(out, fail(about, "report it: it is a mistake in this program", "looking at it failed: %v", p))
		}
	}()
	return look()
}
