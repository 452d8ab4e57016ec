package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

//go:embed builtin/*.yaml
var builtinFiles embed.FS

// earlierBuiltins are the SHA-256 of specs that earlier releases had built in. A
// template that is still one of them was not edited, and is brought up to date.
func earlierBuiltins() map[string]string {
	return map[string]string{
		"74a7fde1348e4baf575102fdc7f72116188d8bf4e7fff488b37ef8f7a6235463": "install of the first release",
	}
}

// builtinTemplates reads the templates that every appliance has.
func builtinTemplates() ([]*workflow.Template, error) {
	files, err := builtinFiles.ReadDir("builtin")
	if err != nil {
		return nil, err
	}
	var out []*workflow.Template
	for _, f := range files {
		text, err := builtinFiles.ReadFile("builtin/" + f.Name())
		if err != nil {
			return nil, err
		}
		t, err := readTemplate(text)
		if err != nil {
			return nil, fmt.Errorf("built-in %s: %w", f.Name(), err)
		}
		out = append(out, t)
	}
	return out, nil
}

func readTemplate(text []byte) (*workflow.Template, error) {
	nodes, err := document.YAML(text, document.DefaultLimits())
	if err != nil {
		return nil, err
	}
	var doc struct {
		APIVersion string                `json:"apiVersion"`
		Kind       string                `json:"kind"`
		Meta       hardware.Meta         `json:"metadata"`
		Spec       workflow.TemplateSpec `json:"spec"`
	}
	if bad := document.Decode(nodes[0], &doc); len(bad) > 0 {
		return nil, bad[0]
	}
	return &workflow.Template{Meta: doc.Meta, Spec: doc.Spec}, nil
}

// templateStore is what addBuiltins needs of the store.
type templateStore interface {
	CreateTemplate(ctx context.Context, t *workflow.Template) error
	TemplateByName(ctx context.Context, name string) (*workflow.Template, error)
	UpdateTemplate(ctx context.Context, t *workflow.Template) error
}

// addBuiltins writes the built-in templates that are not there, and brings those up
// to date that nobody edited.
func addBuiltins(ctx context.Context, db templateStore) error {
	all, err := builtinTemplates()
	if err != nil {
		return err
	}
	for _, t := range all {
		err := db.CreateTemplate(ctx, t)
		if errors.Is(err, workflow.ErrExists) {
			err = refresh(ctx, db, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func refresh(ctx context.Context, db templateStore, t *workflow.Template) error {
	have, err := db.TemplateByName(ctx, t.Meta.Name)
	if err != nil {
		return err
	}
	sum, err := specSum(have)
	if _, earlier := earlierBuiltins()[sum]; err != nil || !earlier {
		return err
	}
	have.Spec = t.Spec
	return db.UpdateTemplate(ctx, have)
}

// builtIns are the sums of the specs that this release has built in, by name.
func builtIns() (map[string]string, error) {
	all, err := builtinTemplates()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, t := range all {
		if out[t.Meta.Name], err = specSum(t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// isBuiltIn says of a template whether it is one of those by its name, and whether it was
// edited since.
func isBuiltIn(sums map[string]string, t *workflow.Template) (shipped, edited bool) {
	was, shipped := sums[t.Meta.Name]
	if !shipped {
		return false, false
	}
	now, err := specSum(t)
	return true, err != nil || now != was
}

func specSum(t *workflow.Template) (string, error) {
	b, err := json.Marshal(t.Spec)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
