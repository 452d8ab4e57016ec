package lab

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

//go:embed packages.txt
var packageList string

// Packages are the Debian packages that the lab needs.
func Packages() []string { return parsePackages(packageList) }

// Install installs those of the packages that are missing, with apt, and writes
// what it does to out in one line, apt's own words only if it fails. It needs
// root when something is missing.
func Install(ctx context.Context, out io.Writer, packages []string) error {
	need, err := notInstalled(ctx, packages)
	if err != nil {
		return err
	}
	if len(need) == 0 {
		fmt.Fprintf(out, "lab: all %d packages are installed\n", len(packages))
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("packages are missing (run as root: apt-get install --no-install-recommends %s)", strings.Join(need, " "))
	}
	fmt.Fprintf(out, "lab: installing %d packages: %s\n", len(need), strings.Join(need, " "))
	install := append([]string{"install", "-y", "--no-install-recommends"}, need...)
	if err = apt(ctx, install...); err == nil {
		return nil
	}
	// Package lists that are missing or old are the usual reason.
	if uerr := apt(ctx, "update"); uerr != nil {
		return fmt.Errorf("%w\n%w", err, uerr)
	}
	return apt(ctx, install...)
}

// notInstalled asks dpkg which of the packages are not there.
func notInstalled(ctx context.Context, packages []string) ([]string, error) {
	query := append([]string{"-W", "-f", "${Package} ${db:Status-Status}\n"}, packages...)
	// dpkg-query fails when it does not know one of the names; its list is right all the same.
	list, err := exec.CommandContext(ctx, "dpkg-query", query...).Output()
	if err != nil && len(list) == 0 && exec.CommandContext(ctx, "dpkg-query", "--version").Run() != nil {
		return nil, fmt.Errorf("this is no Debian system, dpkg-query is missing (install what provides the same: %s)", strings.Join(packages, " "))
	}
	have := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		if name, status, _ := strings.Cut(strings.TrimSpace(line), " "); status == "installed" {
			have[name] = true
		}
	}
	var need []string
	for _, name := range packages {
		if !have[name] {
			need = append(need, name)
		}
	}
	return need, nil
}

func apt(ctx context.Context, args ...string) error {
	// Another apt may be at work on the machine: wait for its lock.
	args = append([]string{"-o", "DPkg::Lock::Timeout=300"}, args...)
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", strings.Join(args[2:], " "), err, tail(string(said), 15))
	}
	return nil
}
