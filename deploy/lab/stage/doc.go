// Package stage has an appliance to look at: the real binary in a lab, with simulated
// machines in every state there is, reached as people reach it, by HTTPS, on a port of
// the host's loopback. The web UI is developed on it (deploy/lab/cmd/ui) and tested
// (deploy/lab/e2e/web).
package stage
