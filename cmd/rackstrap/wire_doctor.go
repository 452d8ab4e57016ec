package main

import (
	"context"

	"github.com/rackstrap/rackstrap/api"
)

// examine is `rackstrap doctor` from inside: the configuration is the one that the daemon
// runs with, and its records come over its own socket, as everybody's do.
func (a *appliance) examine(ctx context.Context) ([]api.DoctorCheck, error) {
	d := &doctor{in: func(f func() error) error { return f() }, progress: func(string) {}}
	found := d.examineWith(ctx, &a.c)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([]api.DoctorCheck, len(found))
	for i, x := range found {
		out[i] = api.DoctorCheck{Name: x.About, Result: x.Result, Detail: x.Says}
		if x.Result != gradeOK {
			out[i].Fix = x.Do
		}
	}
	return out, nil
}
