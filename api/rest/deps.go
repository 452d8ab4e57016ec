package rest

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Deps is what the handler works on.
type Deps struct {
	Records Records
	Engine  Engine
	Images  Images
	Logs    Logs
	Backups Backups
	// Strangers may be nil: there are none.
	Strangers Strangers
	// Revoke takes a DHCP lease back: its client is told no when it asks the next time.
	// False: there is none. Nil: leases cannot be taken back.
	Revoke func(ctx context.Context, subnet string, mac hardware.MAC) (hardware.Lease, bool, error)
	// BootFiles says why a machine of an architecture cannot be given its boot files;
	// nil does not look.
	BootFiles func(arch string) error
	// BootFileList lists the boot files that are served; nil: there are none.
	BootFileList func() ([]api.BootFile, error)
	// Tokens may be nil: then there are none, and Remote lets nobody in.
	Tokens Tokens
	// Audit keeps the event that somebody asked for a change; nil keeps none.
	Audit func(ctx context.Context, ev workflow.Event) error
	// Note counts the events of refused requests; nil counts none. It must not block.
	Note func(ev workflow.Event)
	// Count counts a request that came to a route of ours; nil counts none.
	Count func(Route)
	// Guide is the troubleshooting guide in Markdown, with a heading for every Reason;
	// empty: Reasons have their sentence only.
	Guide string
	// BuiltIn says of a template whether the appliance ships it, and whether it was edited
	// since; nil: none is shipped.
	BuiltIn func(t *workflow.Template) (shipped, edited bool)
	// Metrics is served at /metrics, to viewers; nil serves none.
	Metrics http.Handler
	// Fingerprint is the SHA-256 of the certificate of the HTTPS listener, in hex;
	// empty, or nil, where there is none.
	Fingerprint func() string
	// Dry makes records and an engine like those above whose writes are thrown away,
	// for one dry run; nil: there are none.
	Dry func(context.Context) (Records, Engine, error)
	// Network is the network configuration of a machine's system, with what an install
	// says besides the record; nil: an install may not say anything.
	Network func(h *hardware.Hardware, n *hardware.StaticNetwork) (string, error)
	// Sums reads the list of checksums at a URL and returns what it says of an image by
	// URL; nil: lists are not read.
	Sums func(ctx context.Context, list, image string) (string, error)
	// Doctor looks at all that netbooting needs; nil cannot.
	Doctor func(ctx context.Context) ([]api.DoctorCheck, error)
	// Installation is the id of this installation.
	Installation string
	// Version of the daemon.
	Version string
	Now     func() time.Time
	Log     *slog.Logger
}

// Records is the store. Its errors are *hardware.Invalid, workflow.ErrNotFound,
// ErrExists, ErrConflict, ErrInUse and ErrCompacted; anything else is internal.
type Records interface {
	HardwareRecords
	SubnetRecords
	TemplateRecords
	RuleRecords
	ImageRecords
	WorkflowRecords
	EventRecords
	ClaimRecords
	BootRecords
	IndexRecords
	InstallRecords
	// ListLeases lists what DHCP has confirmed.
	ListLeases(ctx context.Context) ([]hardware.Lease, error)
}

// HardwareRecords keeps Hardware. Update writes spec and labels only and compares
// Meta.Revision.
type HardwareRecords interface {
	CreateHardware(ctx context.Context, h *hardware.Hardware) error
	UpdateHardware(ctx context.Context, h *hardware.Hardware) error
	DeleteHardware(ctx context.Context, name string, rev uint64) error
	HardwareByName(ctx context.Context, name string) (*hardware.Hardware, error)
	// HardwareIndex lists all, by name. They are shared and must not be changed; a
	// secret may read hardware.Redacted.
	HardwareIndex() []*hardware.Hardware
}

// SubnetRecords keeps Subnets.
type SubnetRecords interface {
	CreateSubnet(ctx context.Context, s *hardware.Subnet) error
	UpdateSubnet(ctx context.Context, s *hardware.Subnet) error
	DeleteSubnet(ctx context.Context, name string, rev uint64) error
	SubnetByName(ctx context.Context, name string) (*hardware.Subnet, error)
	ListSubnets(ctx context.Context) ([]*hardware.Subnet, error)
}

// TemplateRecords keeps Templates.
type TemplateRecords interface {
	CreateTemplate(ctx context.Context, t *workflow.Template) error
	UpdateTemplate(ctx context.Context, t *workflow.Template) error
	DeleteTemplate(ctx context.Context, name string, rev uint64) error
	TemplateByName(ctx context.Context, name string) (*workflow.Template, error)
	ListTemplates(ctx context.Context) ([]*workflow.Template, error)
}

// RuleRecords keeps Rules.
type RuleRecords interface {
	CreateRule(ctx context.Context, r *hardware.Rule) error
	UpdateRule(ctx context.Context, r *hardware.Rule) error
	DeleteRule(ctx context.Context, name string, rev uint64) error
	RuleByName(ctx context.Context, name string) (*hardware.Rule, error)
	ListRules(ctx context.Context) ([]*hardware.Rule, error)
}

// ImageRecords keeps the catalogue of images.
type ImageRecords interface {
	CreateImage(ctx context.Context, i *workflow.Image) error
	UpdateImage(ctx context.Context, i *workflow.Image) error
	DeleteImage(ctx context.Context, name string, rev uint64) error
	ImageByName(ctx context.Context, name string) (*workflow.Image, error)
	ListImages(ctx context.Context) ([]*workflow.Image, error)
}

// WorkflowRecords reads workflows; the engine writes them. Only ended ones can be
// deleted.
type WorkflowRecords interface {
	Workflow(ctx context.Context, name string) (*workflow.Workflow, error)
	ListWorkflows(ctx context.Context) ([]*workflow.Workflow, error)
	ActiveWorkflows(ctx context.Context) ([]*workflow.Workflow, error)
	DeleteWorkflow(ctx context.Context, name string, rev uint64) error
}

// EventRecords is the event log.
type EventRecords interface {
	// Events are the newest q.Limit that match, the oldest first.
	Events(ctx context.Context, q workflow.EventQuery) ([]workflow.Event, error)
	// WatchEventBatches yields what is written after a cursor, what was written at once
	// together, and blocks in between; it ends with ErrCompacted or when ctx does. The
	// last event of a batch has its revision as Cursor.
	WatchEventBatches(ctx context.Context, after uint64) iter.Seq2[[]workflow.Event, error]
	// Cursor is the newest.
	Cursor(ctx context.Context) (uint64, error)
}

// Engine runs workflows.
type Engine interface {
	CreateWorkflow(ctx context.Context, name string, spec workflow.WorkflowSpec) (*workflow.Workflow, error)
	CancelWorkflow(ctx context.Context, name, why string) (*workflow.Workflow, error)
	Progress(workflow string) (workflow.Progress, bool)
	AllProgress() []workflow.Progress
	SetHold(ctx context.Context, hardwareUID string, hold bool) error
	Lifecycle
	Workers
}
