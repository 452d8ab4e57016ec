package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

//go:embed builtin/install.yaml
var builtinInstall []byte

// builtinTemplate reads the template that every appliance starts with.
func builtinTemplate() (*workflow.Template, error) {
	nodes, err := document.YAML(builtinInstall, document.DefaultLimits())
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
		return nil, fmt.Errorf("built-in template: %w", bad[0])
	}
	return &workflow.Template{Meta: doc.Meta, Spec: doc.Spec}, nil
}

// addBuiltin writes the built-in template unless there is one of that name.
func addBuiltin(ctx context.Context, db interface {
	CreateTemplate(ctx context.Context, t *workflow.Template) error
},
) error {
	t, err := builtinTemplate()
	if err != nil {
		return err
	}
	if err := db.CreateTemplate(ctx, t); !errors.Is(err, workflow.ErrExists) {
		return err
	}
	return nil
}
