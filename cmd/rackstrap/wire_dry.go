package main

import (
	"context"

	"github.com/rackstrap/rackstrap/api/rest"
)

// dry makes the store and the engine of one dry run: all is decided as it would be,
// and what is written goes nowhere.
func (a *appliance) dry(ctx context.Context) (rest.Records, rest.Engine, error) {
	db := a.db.Dry()
	r := a.resolver
	r.image = db.ImageByName // one that the same dry run adds
	e, err := a.engine.Dry(ctx, db, r.resolve)
	return db, e, err
}
