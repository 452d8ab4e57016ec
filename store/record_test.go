package store_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

func subnet(name, prefix string) *hardware.Subnet {
	return &hardware.Subnet{Meta: hardware.Meta{Name: name}, Spec: hardware.SubnetSpec{Prefix: netip.MustParsePrefix(prefix)}}
}

// crud is what the records under a name have in common.
type crud struct {
	create, change, again func() error
	update                func(rev uint64) error
	get                   func() (hardware.Meta, error)
	list                  func() (int, error)
	delete                func(rev uint64) error
}

func TestNamedRecords(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db, _ := openDB(t, store.Options{})
	s := subnet("x", "10.0.0.0/24")
	tpl := &workflow.Template{Meta: hardware.Meta{Name: "x"}, Spec: workflow.TemplateSpec{Actions: []workflow.ActionSpec{{Name: "r", Kind: workflow.KindReboot}}}}
	img := &workflow.Image{Meta: hardware.Meta{Name: "x"}, Spec: workflow.ImageSpec{URL: "http://example.net/x.img"}}
	rl := &hardware.Rule{Meta: hardware.Meta{Name: "x"}, Spec: hardware.RuleSpec{Match: hardware.RuleMatch{All: true}, Accept: true}}
	for kind, c := range map[string]crud{
		"subnet": {
			create: func() error { return db.CreateSubnet(ctx, s) },
			change: func() error { s.Spec.Domain += "c"; return db.UpdateSubnet(ctx, s) },
			again:  func() error { return db.UpdateSubnet(ctx, s) },
			update: func(rev uint64) error {
				o := *s
				o.Meta.Revision, o.Spec.MTU = rev, 9000
				return db.UpdateSubnet(ctx, &o)
			},
			get:    func() (hardware.Meta, error) { r, err := db.SubnetByName(ctx, "x"); return meta(r, err) },
			list:   func() (int, error) { r, err := db.ListSubnets(ctx); return len(r), err },
			delete: func(rev uint64) error { return db.DeleteSubnet(ctx, "x", rev) },
		},
		"template": {
			create: func() error { return db.CreateTemplate(ctx, tpl) },
			change: func() error { tpl.Spec.Description += "c"; return db.UpdateTemplate(ctx, tpl) },
			again:  func() error { return db.UpdateTemplate(ctx, tpl) },
			update: func(rev uint64) error {
				o := *tpl
				o.Meta.Revision, o.Spec.Description = rev, "late"
				return db.UpdateTemplate(ctx, &o)
			},
			get:    func() (hardware.Meta, error) { r, err := db.TemplateByName(ctx, "x"); return meta(r, err) },
			list:   func() (int, error) { r, err := db.ListTemplates(ctx); return len(r), err },
			delete: func(rev uint64) error { return db.DeleteTemplate(ctx, "x", rev) },
		},
		"rule": {
			create: func() error { return db.CreateRule(ctx, rl) },
			change: func() error { rl.Spec.Priority++; return db.UpdateRule(ctx, rl) },
			again:  func() error { return db.UpdateRule(ctx, rl) },
			update: func(rev uint64) error {
				o := *rl
				o.Meta.Revision, o.Spec.Priority = rev, -1
				return db.UpdateRule(ctx, &o)
			},
			get:    func() (hardware.Meta, error) { r, err := db.RuleByName(ctx, "x"); return meta(r, err) },
			list:   func() (int, error) { r, err := db.ListRules(ctx); return len(r), err },
			delete: func(rev uint64) error { return db.DeleteRule(ctx, "x", rev) },
		},
		"image": {
			create: func() error { return db.CreateImage(ctx, img) },
			change: func() error { img.Spec.Description += "c"; return db.UpdateImage(ctx, img) },
			again:  func() error { return db.UpdateImage(ctx, img) },
			update: func(rev uint64) error {
				o := *img
				o.Meta.Revision, o.Spec.Description = rev, "late"
				return db.UpdateImage(ctx, &o)
			},
			get:    func() (hardware.Meta, error) { r, err := db.ImageByName(ctx, "x"); return meta(r, err) },
			list:   func() (int, error) { r, err := db.ListImages(ctx); return len(r), err },
			delete: func(rev uint64) error { return db.DeleteImage(ctx, "x", rev) },
		},
	} {
		t.Run(kind, func(t *testing.T) { c.run(t) })
	}
}

func meta[T any](r *T, err error) (hardware.Meta, error) {
	if err != nil {
		return hardware.Meta{}, err
	}
	switch r := any(r).(type) {
	case *hardware.Subnet:
		return r.Meta, nil
	case *workflow.Template:
		return r.Meta, nil
	case *hardware.Rule:
		return r.Meta, nil
	case *workflow.Image:
		return r.Meta, nil
	}
	panic("another kind")
}

func (c *crud) run(t *testing.T) {
	is := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) || (want == nil && err != nil) {
			t.Errorf("%s: %v, wanted %v", what, err, want)
		}
		if want != nil && (err == nil || !strings.Contains(err.Error(), `"x"`)) {
			t.Errorf("%s: %v does not name the record", what, err)
		}
	}
	is("update before create", c.change(), workflow.ErrNotFound)
	is("delete before create", c.delete(0), workflow.ErrNotFound)
	is("create", c.create(), nil)
	first, err := c.get()
	if err != nil || first.UID == "" || first.Revision == 0 || first.Created.IsZero() {
		t.Fatalf("after create: %+v, %v", first, err)
	}
	is("create again", c.create(), workflow.ErrExists)
	is("change", c.change(), nil)
	second, _ := c.get()
	if second.UID != first.UID || !second.Created.Equal(first.Created) || second.Revision <= first.Revision {
		t.Errorf("after change: %+v, before %+v", second, first)
	}
	is("the same again", c.again(), nil)
	if m, _ := c.get(); m.Revision != second.Revision {
		t.Error("the same again was written")
	}
	is("late update", c.update(first.Revision), workflow.ErrConflict)
	is("update of any revision", c.update(0), nil)
	if n, err := c.list(); n != 1 || err != nil {
		t.Errorf("list: %d, %v", n, err)
	}
	is("late delete", c.delete(first.Revision), workflow.ErrConflict)
	is("delete", c.delete(0), nil)
	_, err = c.get()
	is("get after delete", err, workflow.ErrNotFound)
}

func TestSubnetsApart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, _ := openDB(t, store.Options{})
	if err := db.CreateSubnet(ctx, subnet("lan", "10.0.0.0/16")); err != nil {
		t.Fatal(err)
	}
	err := db.CreateSubnet(ctx, subnet("rack", "10.0.3.0/24"))
	if err == nil || !strings.Contains(err.Error(), `10.0.3.0/24 overlaps 10.0.0.0/16 of subnet "lan"`) {
		t.Errorf("overlap: %v", err)
	}
	if err := db.CreateSubnet(ctx, subnet("rack", "10.1.3.0/24")); err != nil {
		t.Fatal(err)
	}
	if err := db.UpdateSubnet(ctx, subnet("rack", "10.0.0.0/8")); err == nil {
		t.Error("an update made two overlap")
	}
	if err := db.UpdateSubnet(ctx, subnet("lan", "10.0.0.0/15")); err == nil {
		t.Error("an update made two overlap")
	}
	if err := db.UpdateSubnet(ctx, subnet("lan", "10.0.0.0/20")); err != nil {
		t.Errorf("a subnet overlaps itself: %v", err)
	}
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 { // all at once: one wins
		wg.Go(func() {
			var invalid *hardware.Invalid
			err := db.CreateSubnet(ctx, subnet(string(rune('a'+i)), "192.168.0.0/24"))
			if err == nil {
				won.Add(1)
			} else if !errors.As(err, &invalid) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || len(db.View().Subnets()) != 3 {
		t.Errorf("%d of 16 overlapping subnets were made; the view has %d", won.Load(), len(db.View().Subnets()))
	}
}

// TestSecretsAreSealed looks for them in the file itself.
func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	db, kv := openAt(t, dir, store.Options{})
	const secret = "correct horse battery staple"
	h := machine(1)
	h.Spec.UserData = secret
	tpl := &workflow.Template{Meta: hardware.Meta{Name: "t"}, Spec: workflow.TemplateSpec{
		Parameters: []workflow.Parameter{{Name: "p", Type: workflow.ParamSecret, Default: secret}},
		Actions:    []workflow.ActionSpec{{Name: "r", Kind: workflow.KindReboot}},
	}}
	r := &hardware.Rule{Meta: hardware.Meta{Name: "r"}, Spec: hardware.RuleSpec{
		Match: hardware.RuleMatch{All: true}, Provision: &hardware.RuleProvision{Template: "t", Params: map[string]any{"p": secret}},
	}}
	w := &workflow.Workflow{Meta: hardware.Meta{Name: "w"}, Spec: workflow.WorkflowSpec{Params: map[string]any{"p": secret}}, Status: workflow.Status{HardwareUID: "u"}}
	if err := errors.Join(db.CreateHardware(ctx, h), db.CreateTemplate(ctx, tpl), db.CreateRule(ctx, r), db.Commit(ctx, &workflow.Change{Workflow: w})); err != nil {
		t.Fatal(err)
	}
	made := 0
	for range 2 {
		got, err := db.Secret(ctx, "ca", func() ([]byte, error) { made++; return []byte(secret), nil })
		if err != nil || string(got) != secret {
			t.Fatalf("secret %q, %v", got, err)
		}
	}
	if made != 1 {
		t.Errorf("the secret was made %d times", made)
	}
	var backup bytes.Buffer
	if _, err := db.Backup(ctx, &backup); err != nil {
		t.Fatal(err)
	}
	if got, err := db.HardwareByName(ctx, "m1"); err != nil || got.Spec.UserData != secret {
		t.Errorf("read back: %v", err)
	}
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(kv.Path())
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"the database": file, "the backup": backup.Bytes()} {
		if bytes.Contains(b, []byte("correct horse")) {
			t.Errorf("%s holds a secret in the clear", name)
		}
	}
}

// TestWrongKey: a lost or wrong key file is an error that says so, and the store is
// left as it is.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, kv := openAt(t, dir, store.Options{})
	create(t, db, 1)
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "seal.key")
	if err := os.Rename(key, key+".kept"); err != nil {
		t.Fatal(err)
	}
	kv, err := bolt.Open(kv.Path(), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kv.Close() }()
	if _, err := store.Open(t.Context(), kv, key, store.Options{}); err == nil || !strings.Contains(err.Error(), "the key file is gone") {
		t.Errorf("lost key: %v", err)
	}
	if _, err := os.Stat(key); err == nil {
		t.Error("a new key was made for a store that has an old one")
	}
	if _, err := store.CreateSeal(key); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), kv, key, store.Options{}); !errors.Is(err, store.ErrWrongKey) || !strings.Contains(err.Error(), key) {
		t.Errorf("wrong key: %v", err)
	}
	if err := os.Rename(key+".kept", key); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), kv, key, store.Options{}); err != nil {
		t.Errorf("right key: %v", err)
	}
}
