// Package cli has the verbs of the command line, all but those that run the daemon.
// They talk to the daemon through api/client only.
//
// Rules of what is printed: results go to standard output, everything else to
// standard error; errors are `rackstrap: …`, lower case, without a full stop, and
// where something can be typed next there is a line `hint: …`.
package cli
