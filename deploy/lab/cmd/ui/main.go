// Command ui starts a real appliance with a rack of simulated machines in every state,
// in a lab, prints where its web UI is and the tokens to sign in with, and runs until it
// is interrupted. Nothing of the host's networks is touched, and nothing is left. With
// arguments it runs them as a command that is told where all that is (stage.Env), and ends
// when the command does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab/stage"
	"github.com/rackstrap/rackstrap/hardware"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ui:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("ui", flag.ContinueOnError)
	bin := fs.String("rackstrap", "bin/rackstrap", "the binary")
	empty := fs.Bool("empty", false, "no record at all, as on the first day")
	machines := fs.Int("machines", 0, "so many records besides, which no machine stands behind")
	slow := fs.Duration("action", 2*time.Second, "how long each action of a machine takes")
	busy := fs.Duration("busy", 5*time.Minute, "how long the slow machines write")
	dist := fs.String("dist", "", "serve the files of the UI from this folder (web/dist) instead of those in the binary, also when they change")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if _, err := os.Stat(*bin); err != nil {
		return fmt.Errorf("%w (build it: go build -trimpath -o %s ./cmd/rackstrap)", err, *bin)
	}
	s, err := stage.New(ctx, stage.Options{Name: "ui", Bin: *bin, ActionTime: *slow})
	if err != nil {
		return err
	}
	url := s.URL
	if err := fill(ctx, s, *empty, *machines, *busy); err != nil {
		return errors.Join(err, s.Close())
	}
	if *dist != "" {
		f, err := serveFiles(ctx, *dist, s.URL)
		if err != nil {
			return errors.Join(err, s.Close())
		}
		defer f.Close()
		url = f.url
	}
	if fs.NArg() > 0 {
		return errors.Join(command(ctx, fs.Args(), stage.Env(url, s.Tokens, s.Fingerprint)), s.Close())
	}
	tell(s, url)
	<-ctx.Done()
	return s.Close()
}

func command(ctx context.Context, args, env []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

func fill(ctx context.Context, s *stage.Stage, empty bool, machines int, busy time.Duration) error {
	if empty {
		return nil
	}
	if machines > 0 {
		fmt.Printf("adding %d records\n", machines)
		if err := s.FillCrowd(ctx, machines); err != nil {
			return err
		}
	}
	return s.FillRack(ctx, busy)
}

func tell(s *stage.Stage, url string) {
	fmt.Printf("\nURL       %s\n", url)
	for _, r := range []hardware.Role{hardware.RoleAdmin, hardware.RoleOperator, hardware.RoleViewer} {
		fmt.Printf("%-9s %s\n", r, s.Tokens[r])
	}
	fmt.Printf("socket    %s (for the command line: rackstrap --socket)\nlog       %s\n\nCtrl-C ends it\n", s.Appliance.Socket, s.Appliance.Log)
}
