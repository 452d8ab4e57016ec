package rest

import (
	"net/http"
	"net/netip"
	"reflect"
	"strings"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest/openapi"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

const apiText = `Everything that Rackstrap does is asked for here; its command line uses nothing else.

Over HTTPS (port 7443) each request shows a token: ` + "`Authorization: Bearer rst_…`" + `, or the cookie of a session that was made with one. On the unix socket of the appliance there is none: whoever can open it is an admin. Each operation names the role that it needs; operator includes viewer, and admin includes operator. A claimer sees the machines that its selector matches and acts on those that it holds by a claim.

Bodies are JSON or YAML, as Content-Type says; keys that are not known are refused. Secrets read ` + "`(redacted)`" + `, and sent back so they stay as they are. Errors are problems as RFC 9457 has them, with a code to act on, the fields that are wrong, and a hint that says what to do.

Records carry a revision: send it as ` + "`If-Match`" + ` and a change is refused if somebody else was faster.`

// Document is the OpenAPI document of all Routes, and of what is served beside them.
func Document(version string) *openapi.Document {
	a := openapi.API{
		Info: openapi.Info{
			Title: "Rackstrap", Version: version, Summary: "Turn a rack of empty servers into running machines.", Description: apiText,
			License: openapi.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []openapi.Server{{URL: "/", Description: "the appliance that serves this document"}},
		Tags:    tags(),
		Bearer:  "Made by `rackstrap token create`, and shown once.",
		Cookie:  "Of a browser, given by `POST /api/v1/session` for a token. What changes something must come from a page of the appliance, and a body needs its Content-Type.", CookieName: sessionCookie,
		Failure: reflect.TypeFor[api.Problem](),
		Types:   types(),
		Calls:   beside(),
	}
	for _, r := range Routes() {
		a.Calls = append(a.Calls, r.call())
	}
	return openapi.Build(a)
}

// tags are the first words of the paths.
func tags() []openapi.Tag {
	return []openapi.Tag{
		{Name: "hardware", Description: "The machines: their records, and what is done with them."},
		{Name: "summaries", Description: "The machines, a row each: what lists of thousands show."},
		{Name: "overview", Description: "How all of it is, in numbers."},
		{Name: "doctor", Description: "What netbooting needs, looked at from the appliance."},
		{Name: "claims", Description: "Who has which machine."},
		{Name: "workflows", Description: "What is, or was, done on a machine, step by step."},
		{Name: "templates", Description: "What workflows are made from."},
		{Name: "template-summaries", Description: "The templates, a row each, and what was made of them."},
		{Name: "action-kinds", Description: "What templates are made of."},
		{Name: "images", Description: "Operating systems to install."},
		{Name: "subnets", Description: "The networks in which DHCP answers."},
		{Name: "rules", Description: "What becomes of discovered machines."},
		{Name: "leases", Description: "Addresses that machines have."},
		{Name: "strangers", Description: "Machines without a record."},
		{Name: "boot-files", Description: "Boot programs, kernels and initramfs files."},
		{Name: "issues", Description: "What keeps machines from getting on."},
		{Name: "events", Description: "What happened, and who asked for it."},
		{Name: "reasons", Description: "Why a packet or a machine got its answer, and what to do."},
		{Name: "bulk", Description: "One verb for many machines."},
		{Name: "apply", Description: "Many records at once."},
		{Name: "tokens", Description: "Who may use this API."},
		{Name: "session", Description: "Signing in, with a browser."},
		{Name: "appliance", Description: "The daemon itself."},
	}
}

// tagOf is the tag of a path below api.Base.
func tagOf(path string) string {
	word, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	for _, t := range tags() {
		if t.Name == word {
			return word
		}
	}
	return "appliance"
}

// beside is what is served beside Routes.
func beside() []openapi.Call {
	text := func(media string) map[string]reflect.Type {
		return map[string]reflect.Type{media: reflect.TypeFor[openapi.Bytes]()}
	}
	return []openapi.Call{
		{Method: http.MethodGet, Path: "/openapi.json", Does: "Read this document", Tag: "appliance", Out: text(openapi.JSON), Status: []int{200}},
		{Method: http.MethodGet, Path: "/docs", Does: "Read it as a page", Tag: "appliance", Out: text("text/html"), Status: []int{200}},
		{Method: http.MethodGet, Path: "/docs/problems", Does: "Read what the codes of problems mean", Tag: "appliance", Out: text("text/html"), Status: []int{200}},
		{Method: http.MethodGet, Path: "/metrics", Does: "Read the metrics, as Prometheus does", Tag: "appliance", Role: string(RoleViewer), Out: text("text/plain"), Status: []int{200}},
	}
}

// call is the route as the document has it.
func (r Route) call() openapi.Call {
	c := openapi.Call{
		Method: r.Method, Path: api.Base + r.Path, Does: r.Does, Tag: tagOf(r.Path), Role: string(r.Role), Claimer: r.Claimer,
		In: bodies(r.In, openapi.JSON, openapi.YAML), Out: bodies(r.Out, openapi.JSON), Status: r.statuses(),
	}
	switch r.In.(type) {
	case blobBody, documentsBody, mergePatch:
		c.InRequired = true
	case api.SignIn:
		c.InRequired = true
	default:
		// what a verb is told may all be left out
		c.InRequired = r.In != nil && isRecord(reflect.TypeOf(r.In))
	}
	for _, name := range r.Query {
		p, ok := parameters()[name]
		if !ok {
			p = openapi.Parameter{Schema: &openapi.Schema{Type: "string"}}
		}
		p.Name, p.In = name, "query"
		c.Parameters = append(c.Parameters, p)
	}
	one := strings.HasSuffix(r.Path, "{name}")
	if one && r.Method != http.MethodGet {
		c.Parameters = append(c.Parameters, openapi.Parameter{
			Name: "If-Match", In: "header", Description: "The ETag of a GET: the request is refused if the record was changed since.", Schema: &openapi.Schema{Type: "string"},
		})
	}
	if one && r.Out != nil {
		c.Headers = map[string]openapi.Header{"ETag": {Description: "The record's revision, for If-Match.", Schema: &openapi.Schema{Type: "string"}}}
	}
	if _, log := r.Out.(logBody); log {
		number := &openapi.Schema{Type: "integer", Format: "int64"}
		c.Headers = map[string]openapi.Header{
			api.LogOffset: {Description: "The byte of the log at which the answer begins; with the bytes of the answer it is the offset to go on from.", Schema: number},
			api.LogSize:   {Description: "How many bytes the log had when the answer began.", Schema: number},
		}
		c.More = "Actions count from 0, as in the status, attempts from 1. It is plain text: what is no UTF-8, control characters and what turns the direction of writing around read as a question mark " +
			"for each byte, so that offsets are those of the file. An answer begins and ends between characters. A log has 4 MiB at most; its last line says what is missing."
	}
	if r.Path == "/events" {
		c.Out["text/event-stream"] = reflect.TypeFor[openapi.Bytes]()
		c.More = "With `Accept: text/event-stream` it is a stream of server-sent events: `event` (an Event, with its cursor as id), `progress` " +
			"(how far a workflow is; not kept, without id) and `compacted` (the cursor is too old: list again). A stream that broke goes on with Last-Event-ID. A comment comes every 15 s."
		c.Parameters = append(c.Parameters, openapi.Parameter{Name: "Last-Event-ID", In: "header", Description: "Of a stream: go on after this event.", Schema: &openapi.Schema{Type: "string"}})
	}
	return c
}

// statuses are those of a success.
func (r Route) statuses() []int {
	_, upload := r.In.(blobBody)
	switch {
	case r.Status != 0:
		return []int{r.Status}
	case r.Out == nil:
		return []int{http.StatusNoContent}
	case upload:
		return []int{http.StatusOK, http.StatusCreated}
	}
	return []int{http.StatusOK}
}

// bodies are the media types in which a value is sent.
func bodies(v any, media ...string) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	switch v.(type) {
	case nil:
	case blobBody:
		out["application/octet-stream"] = reflect.TypeFor[openapi.Bytes]()
	case logBody:
		out["text/plain"] = reflect.TypeFor[openapi.Bytes]()
	case mergePatch:
		out["application/merge-patch+json"] = reflect.TypeOf(v)
		out[openapi.JSON] = reflect.TypeOf(v)
	case documentsBody:
		out[openapi.YAML] = reflect.TypeFor[openapi.Bytes]()
		out[openapi.JSON] = reflect.TypeFor[openapi.Bytes]()
	default:
		for _, m := range media {
			out[m] = reflect.TypeOf(v)
		}
	}
	return out
}

// isRecord: what has metadata goes with apiVersion and kind in front.
func isRecord(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	f, ok := t.FieldByName("Meta")
	return ok && f.Type == reflect.TypeFor[hardware.Meta]() && f.Tag.Get("json") == "metadata"
}

// types says what reflection does not see of ours.
func types() openapi.Types {
	return openapi.Types{
		Prefer: "hardware", IsRecord: isRecord,
		Head: map[string]*openapi.Schema{
			"apiVersion": {Type: "string", Const: api.Version},
			"kind":       {Type: "string"},
		},
		Text: map[reflect.Type]openapi.Schema{
			reflect.TypeFor[netip.Addr]():        {Type: "string", Examples: []any{"10.0.0.5"}},
			reflect.TypeFor[netip.Prefix]():      {Type: "string", Examples: []any{"10.0.0.5/24"}},
			reflect.TypeFor[hardware.MAC]():      {Type: "string", Pattern: "^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$", Examples: []any{"52:54:00:12:34:56"}},
			reflect.TypeFor[hardware.Duration](): {Type: "string", Examples: []any{"1h30m0s", "90s"}},
			reflect.TypeFor[hardware.Quantity](): {Type: "string", Examples: []any{"64Gi", "1.5T"}},
			reflect.TypeFor[workflow.Disk]():     {Type: "string", Examples: []any{"smallest", "/dev/nvme0n1", "serial=S3Z8NX0M"}},
		},
		Enums:  enums(),
		Fields: fieldAbout(),
	}
}
