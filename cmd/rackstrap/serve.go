package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func newServeCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the appliance: DHCP, TFTP, HTTP, workers, REST",
		Long: `Run the appliance until it is told to stop (SIGINT or SIGTERM).

It answers DHCP on the interfaces of the configuration, for machines that have a
Hardware record, in networks that have a Subnet record; everybody else gets
silence. It needs root, or CAP_NET_BIND_SERVICE, CAP_NET_RAW and CAP_NET_ADMIN.

Without a configuration file the defaults are used (see: rackstrap init --config -).`,
		Example: "  rackstrap serve\n  rackstrap serve --config ./rackstrap.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadConfig(path)
			if err != nil {
				return err
			}
			log, err := newLogger(c.Log, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return serve(ctx, c, log)
		},
	}
	cmd.Flags().StringVar(&path, "config", defaultConfigPath, "configuration file")
	return cmd
}

// serve runs the appliance until ctx ends.
func serve(ctx context.Context, c config, log *slog.Logger) error {
	start := time.Now()
	if len(c.Interfaces) == 0 && c.DHCP.Enabled {
		name, err := onlyInterface()
		if err != nil {
			return err
		}
		c.Interfaces = []string{name}
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return err
	}
	a, err := newAppliance(ctx, c, log)
	if err != nil {
		return err
	}
	defer a.close()
	log.Info("starting", "version", version, "data", c.Data, "interfaces", c.Interfaces)
	err = a.run(ctx, func() {
		log.Info("ready", "took", time.Since(start).Round(time.Millisecond), "socket", c.Socket)
		notifySystemd("READY=1")
	})
	notifySystemd("STOPPING=1")
	log.Info("stopped", "after", time.Since(start).Round(time.Second))
	return err
}

// runAll runs the parts until ctx ends or one of them stops; then all stop. It
// returns the first part's error, named.
func runAll(ctx context.Context, parts []part, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type end struct {
		name string
		err  error
	}
	ends := make(chan end)
	for _, p := range parts {
		go func() { ends <- end{p.name, p.run(ctx)} }()
	}
	allReady := make(chan struct{})
	go func() {
		defer close(allReady)
		for _, p := range parts {
			if p.ready == nil {
				continue
			}
			select {
			case <-p.ready:
			case <-ctx.Done():
				return
			}
		}
	}()
	var first error
	for left := len(parts); left > 0; {
		select {
		case <-allReady:
			allReady = nil
			if ctx.Err() == nil {
				ready()
			}
		case e := <-ends:
			left--
			if ctx.Err() == nil {
				first = fmt.Errorf("%s: %w", e.name, e.err)
				if e.err == nil {
					first = fmt.Errorf("%s stopped by itself", e.name)
				}
			}
			cancel()
		}
	}
	return first
}

// part is one thing that runs for the life of the daemon.
type part struct {
	name  string
	run   func(ctx context.Context) error
	ready <-chan struct{} // nil: at once
}
