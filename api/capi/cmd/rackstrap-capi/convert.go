package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api/capi/internal/convert"
)

func convertCommand() *cobra.Command {
	var files []string
	var out, secret string
	var strict bool
	c := &cobra.Command{
		Use:   "convert -f FILE... [-o FILE]",
		Short: "Turn manifests of Tinkerbell's or Metal3's provider into ours",
		Long: "convert reads Cluster API manifests of the Tinkerbell provider (CAPT) and the Metal3 provider (CAPM3), with core kinds of v1alpha3 to v1beta2,\n" +
			"and writes the same clusters for Rackstrap and v1beta2. Everything that is not said any more is named on the standard error, with what to write\n" +
			"instead; other kinds pass through. It talks to no cluster and adopts no running machine: deploy/docs/capi-migrate.md.",
		Example: "  rackstrap-capi convert -f old.yaml -o new.yaml\n  kubectl get cluster,kcp,md,tinkerbellmachinetemplates -A -o yaml | rackstrap-capi convert -f - --strict",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in, err := readAll(c.InOrStdin(), files)
			if err != nil {
				return err
			}
			text, notes, err := convert.Convert(in, convert.Options{Secret: secret})
			if err != nil {
				return err
			}
			for _, n := range notes {
				fmt.Fprintln(c.ErrOrStderr(), n)
			}
			if n := len(convert.Lost(notes)); strict && n > 0 {
				return fmt.Errorf("%d parts of the manifests would be lost, and --strict was asked for: nothing is written (change them as the notes say, or leave --strict out)", n)
			}
			if out == "" || out == "-" {
				_, err = c.OutOrStdout().Write(text)
				return err
			}
			// a kubeadm configuration may have passwords and tokens
			return os.WriteFile(out, text, 0o600)
		},
	}
	f := c.Flags()
	f.StringArrayVarP(&files, "file", "f", nil, "manifests; - is the standard input; may be given several times")
	f.StringVarP(&out, "output", "o", "", "where to write; the standard output where empty")
	f.StringVar(&secret, "secret", "rackstrap", "name of the Secret with the appliance's url and token that clusters are given")
	f.BoolVar(&strict, "strict", false, "fail, and write nothing, where a part of the manifests would be lost")
	return c
}

func readAll(stdin io.Reader, files []string) ([]convert.File, error) {
	if len(files) == 0 {
		return nil, fmt.Errorf("no manifests (name them with -f FILE, or -f - for the standard input)")
	}
	var out []convert.File
	for _, name := range files {
		read, shown := func() ([]byte, error) { return os.ReadFile(name) }, name
		if name == "-" {
			read, shown = func() ([]byte, error) { return io.ReadAll(stdin) }, "standard input"
		}
		data, err := read()
		if err != nil {
			return nil, err
		}
		out = append(out, convert.File{Name: shown, Data: data})
	}
	return out, nil
}
