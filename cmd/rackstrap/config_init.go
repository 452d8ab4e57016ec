package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func newInitCommand() *cobra.Command {
	var path string
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a commented configuration file",
		Long: `Write a configuration file in which every key is shown with its default.

The daemon runs without one; write it to change something.`,
		Example: "  rackstrap init\n  rackstrap init --config ./rackstrap.yaml\n  rackstrap init --config - | less",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if path == "-" {
				_, err := fmt.Fprint(cmd.OutOrStdout(), sampleConfig)
				return err
			}
			return writeSample(cmd, path, force)
		},
	}
	cmd.Flags().StringVar(&path, "config", defaultConfigPath, "where to write it; - is standard output")
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that is there")
	return cmd
}

func writeSample(cmd *cobra.Command, path string, force bool) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already (look at it, or replace it with --force)", path)
	}
	if err != nil {
		return err
	}
	if _, err := f.WriteString(sampleConfig); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\nnext: set `interfaces` in it, then: rackstrap serve --config %s\n", path, path)
	return err
}
