package store

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	"github.com/rackstrap/rackstrap/hardware"
)

func subnets() kind[hardware.Subnet] {
	return kind[hardware.Subnet]{
		name: "subnet", prefix: prefixSubnet,
		meta:     func(s *hardware.Subnet) *hardware.Meta { return &s.Meta },
		validate: (*hardware.Subnet).Validate,
		same: func(a, b *hardware.Subnet) bool {
			return maps.Equal(a.Meta.Labels, b.Meta.Labels) && reflect.DeepEqual(a.Spec, b.Spec)
		},
	}
}

// CreateSubnet writes a new record and sets its UID, Revision and Created:
// *hardware.Invalid (also for a prefix that overlaps another record's, naming it),
// workflow.ErrExists.
func (db *DB) CreateSubnet(ctx context.Context, s *hardware.Subnet) error {
	return subnets().create(ctx, db, s, db.apart(ctx))
}

// UpdateSubnet writes spec and labels; Meta.Revision 0 is any: *hardware.Invalid,
// workflow.ErrNotFound, workflow.ErrConflict.
func (db *DB) UpdateSubnet(ctx context.Context, s *hardware.Subnet) error {
	return subnets().update(ctx, db, s, db.apart(ctx))
}

// DeleteSubnet removes a record; rev 0 is any: workflow.ErrNotFound,
// workflow.ErrConflict.
func (db *DB) DeleteSubnet(ctx context.Context, name string, rev uint64) error {
	return subnets().delete(ctx, db, name, rev, nil)
}

// SubnetByName reads a record: workflow.ErrNotFound.
func (db *DB) SubnetByName(ctx context.Context, name string) (*hardware.Subnet, error) {
	return subnets().get(ctx, db, name)
}

// ListSubnets lists all, by name.
func (db *DB) ListSubnets(ctx context.Context) ([]*hardware.Subnet, error) {
	return subnets().list(ctx, db)
}

// apart refuses a subnet that overlaps another. Two that are written at once meet
// at the guard key.
func (db *DB) apart(ctx context.Context) extra[hardware.Subnet] {
	return func(s *hardware.Subnet, t *Txn) error {
		guard, err := db.kv.Get(ctx, keySubnets)
		if err != nil {
			return err
		}
		all, err := db.ListSubnets(ctx)
		if err != nil {
			return err
		}
		for _, o := range all {
			if o.Meta.Name != s.Meta.Name && o.Spec.Prefix.Overlaps(s.Spec.Prefix) {
				return &hardware.Invalid{Kind: "subnet", Name: s.Meta.Name, Errors: []hardware.FieldError{{
					Field:  "spec.prefix",
					Detail: fmt.Sprintf("%v overlaps %v of subnet %q (a packet must belong to one subnet)", s.Spec.Prefix, o.Spec.Prefix, o.Meta.Name),
				}}}
			}
		}
		t.If = append(t.If, Compare{keySubnets, guard.Revision})
		t.Puts = append(t.Puts, Put{Key: keySubnets})
		return nil
	}
}
