// Package workflow says what is to be done to a machine and how far it is:
// Template (a parameterised list of actions), Workflow (one run of it on one
// Hardware), Action (one step), Attempt (one try of a step), Event (what the
// timeline shows). Decisions (rendering, the state machine, NextBoot) are pure
// functions; Engine is the one writer of the state they decide on.
package workflow
