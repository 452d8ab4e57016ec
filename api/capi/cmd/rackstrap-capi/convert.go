package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api/capi/internal/convert"
)

func convertCommand() *cobra.Command {
	var files []string
	var out, secret string
	var strict bool
	c := &cobra.Command{
		Use:   "convert -f FILE|FOLDER... [-o FILE]",
		Short: "Turn manifests of Tinkerbell's or Metal3's provider into ours",
		Long: "convert reads Cluster API manifests of the Tinkerbell provider (CAPT) and the Metal3 provider (CAPM3), with core kinds of v1alpha3 to v1beta2,\n" +
			"and writes the same clusters for Rackstrap and v1beta2. Everything that is not said any more is named on the standard error, with what to write\n" +
			"instead; other kinds pass through. It talks to no cluster and adopts no running machine: deploy/docs/capi-migrate.md.",
		Example: "  rackstrap-capi convert -f old.yaml -o new.yaml\n  kubectl get cluster,kcp,md,tinkerbellmachinetemplates -A -o yaml | rackstrap-capi convert -f - --strict",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q is no flag (name manifests with -f: rackstrap-capi convert -f %s)", args[0], args[0])
			}
			return nil
		},
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
	f.StringArrayVarP(&files, "file", "f", nil, "manifests, or a folder of them; - is the standard input; may be given several times")
	f.StringVarP(&out, "output", "o", "", "where to write; the standard output where empty")
	f.StringVar(&secret, "secret", "rackstrap", "name of the Secret with the appliance's url and token that clusters are given")
	f.BoolVar(&strict, "strict", false, "fail, and write nothing, where a part of the manifests would be lost")
	return c
}

func readAll(stdin io.Reader, names []string) ([]convert.File, error) {
	if len(names) == 0 {
		return nil, errors.New("no manifests (name them with -f FILE, -f FOLDER, or -f - for the standard input)")
	}
	var out []convert.File
	for _, name := range names {
		if name == "-" {
			data, err := io.ReadAll(stdin)
			if err != nil {
				return nil, err
			}
			out = append(out, convert.File{Name: "standard input", Data: data})
			continue
		}
		files, err := manifests(name)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				return nil, err
			}
			out = append(out, convert.File{Name: f, Data: data})
		}
	}
	return out, nil
}

// manifests are the files that a name stands for: a folder has those that kubectl would
// read of it, in their names' order.
func manifests(name string) ([]string, error) {
	if i, err := os.Stat(name); err != nil || !i.IsDir() {
		return []string{name}, nil // what is wrong with it is said when it is read
	}
	list, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range list {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, ext) {
			out = append(out, filepath.Join(name, e.Name()))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: has no .yaml, .yml or .json file (folders in it are not read: name each with -f)", name)
	}
	return out, nil
}
