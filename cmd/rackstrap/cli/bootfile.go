package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
)

func (a *app) bootFileCommand() *cobra.Command {
	cmd := a.group("boot-file", "The files that machines are sent on their way to the worker", "", "  rackstrap boot-file list -o wide")
	cmd.Aliases = []string{"boot-files"}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List boot programs, kernels and initramfs files, with checksums", Args: takes(),
		Long: `List what machines are sent on their way to the worker: the files that are embedded in
the daemon, with the Debian package that they come from, and those of the drop-in
folders boot and initramfs of the data directory, which come first.`,
		Example: "  rackstrap boot-file list -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := a.client()
			defer c.Close()
			rows, err := c.BootFiles(cmd.Context())
			if err != nil {
				return err
			}
			if done, err := a.printValue(api.List[api.BootFile]{APIVersion: api.Version, Kind: "BootFileList", Items: rows}); done {
				return err
			}
			return table(a.Out, bootFileColumns(time.Now()), rows, a.output == "wide")
		},
	})
	return cmd
}

func bootFileColumns(now time.Time) []column[api.BootFile] {
	return []column[api.BootFile]{
		{head: "NAME", value: func(f api.BootFile) string { return f.Name }},
		{head: "SIZE", value: func(f api.BootFile) string { return size(f.Bytes) }},
		{head: "ORIGIN", value: func(f api.BootFile) string { return f.Origin }},
		{head: "FROM", value: func(f api.BootFile) string {
			if f.Path != "" {
				return f.Path
			}
			return orDash(f.Package + " " + f.Version)
		}},
		{head: "REPLACES", value: func(f api.BootFile) string { return orDash(f.Replaces) }},
		{head: "CHANGED", wide: true, value: func(f api.BootFile) string {
			if f.Modified.IsZero() {
				return "-"
			}
			return ago(f.Modified, now)
		}},
		{head: "SHA256", wide: true, value: func(f api.BootFile) string { return f.SHA256 }},
	}
}
