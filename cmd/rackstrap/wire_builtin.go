package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"

	"github.com/goccy/go-yaml"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

//go:embed builtin/install.yaml
var builtinInstall []byte

// builtinTemplate reads the template that every appliance starts with.
func builtinTemplate() (*workflow.Template, error) {
	var doc struct {
		APIVersion string                `json:"apiVersion"`
		Kind       string                `json:"kind"`
		Meta       hardware.Meta         `json:"metadata"`
		Spec       workflow.TemplateSpec `json:"spec"`
	}
	raw, err := yaml.YAMLToJSON(builtinInstall)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	return &workflow.Template{Meta: doc.Meta, Spec: doc.Spec}, nil
}

// addBuiltin writes the built-in template unless there is one of that name.
func addBuiltin(ctx context.Context, db interface {
	CreateTemplate(ctx context.Context, t *workflow.Template) error
}) error {
	t, err := builtinTemplate()
	if err != nil {
		return err
	}
	if err := db.CreateTemplate(ctx, t); !errors.Is(err, workflow.ErrExists) {
		return err
	}
	return nil
}
