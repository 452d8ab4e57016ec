package workflow

import "context"

type byKey struct{}

// WithBy puts into ctx who asked for what is done with it. It ends up in Event.By
// and decides nothing; see deploy/docs/adr/0008-who-asked-travels-in-the-context.md.
func WithBy(ctx context.Context, by string) context.Context {
	return context.WithValue(ctx, byKey{}, by)
}

// By is who asked, empty where nobody is known: the appliance itself did it.
func By(ctx context.Context) string {
	by, _ := ctx.Value(byKey{}).(string)
	return by
}
