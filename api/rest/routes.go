package rest

import (
	"net/http"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Route is one method of one path.
type Route struct {
	Method string
	// Path is below api.Base.
	Path string
	// Does is the route in a sentence.
	Does string
	// Role is the least that a caller must be; empty: everybody may.
	Role Role
	// Claimer: a claimer may use it too, on the machines and claims that it sees; the
	// handler asks Caller about each.
	Claimer bool
	// In and Out are zero values of the bodies' types; nil where there is none, and
	// an io.Reader's type where the body is a stream.
	In, Out any
	// Status of a success, where it is not 200, or 204 without Out.
	Status int
	// Query lists the parameters that it reads from the URL; others are refused: a
	// misspelt filter must not list everything.
	Query []string
	// Reads: it changes nothing, though its method could.
	Reads  bool
	handle func(*server, http.ResponseWriter, *http.Request) error
}

// Routes is the whole API: the router, the document and the tests of access are
// made from it.
func Routes() []Route {
	routes := []Route{
		{Method: http.MethodGet, Path: "/version", Does: "Say what the daemon is", Role: RoleViewer, Claimer: true, Out: api.VersionInfo{}, handle: (*server).version},
		{Method: http.MethodPost, Path: "/apply", Does: "Create or change every record of a multi-document body", Role: RoleOperator, In: documentsBody{}, Out: api.ApplyResult{}, Query: []string{"dryRun"}, handle: (*server).apply},
		{Method: http.MethodGet, Path: "/hardware/{name}/timeline", Does: "Tell what happened to a machine, boot by boot", Role: RoleViewer, Claimer: true, Out: api.Timeline{}, Query: []string{"boot", "limit"}, handle: (*server).timeline},
		{Method: http.MethodPost, Path: "/hardware/{name}/hold", Does: "Put a machine on hold, or take it off", Role: RoleOperator, In: api.Hold{}, Out: hardware.Hardware{}, handle: (*server).hold},
		{Method: http.MethodPost, Path: "/workflows/{name}/cancel", Does: "End a workflow", Role: RoleOperator, In: api.Cancel{}, Out: api.Workflow{}, handle: (*server).cancel},
		{Method: http.MethodGet, Path: "/events", Does: "List events, or stream them as server-sent events", Role: RoleViewer, Claimer: true, Out: api.List[api.Event]{}, Query: []string{"hardware", "workflow", "boot", "by", "reason", "after", "before", "limit", "follow"}, handle: (*server).events},
		{Method: http.MethodGet, Path: "/reasons", Does: "List what every Reason means and what to do about it", Role: RoleViewer, Claimer: true, Out: api.List[api.ReasonText]{}, handle: (*server).reasons},
		{Method: http.MethodGet, Path: "/strangers", Does: "List the machines that ask for an address and have no record", Role: RoleViewer, Out: api.List[api.Stranger]{}, handle: (*server).strangers},
		{Method: http.MethodGet, Path: "/boot-files", Does: "List the files that machines are sent on their way to the worker", Role: RoleViewer, Out: api.List[api.BootFile]{}, handle: (*server).bootFileList},
	}
	routes = append(routes, summaryRoutes()...)
	routes = append(routes, overviewRoutes()...)
	routes = append(routes, doctorRoutes()...)
	routes = append(routes, leaseRoutes()...)
	routes = append(routes, tokenRoutes()...)
	routes = append(routes, sessionRoutes()...)
	routes = append(routes, lifecycleRoutes()...)
	routes = append(routes, bulkRoute())
	routes = append(routes, claimRoutes()...)
	routes = append(routes, backupRoutes()...)
	routes = append(routes, explainRoutes()...)
	routes = append(routes, recordRoutes(api.KindHardware, true, hardwareListing(), func(s *server) *resource[hardware.Hardware] { return s.hardware })...)
	routes = append(routes, recordRoutes(api.KindSubnet, true, subnetListing(), func(s *server) *resource[hardware.Subnet] { return s.subnets })...)
	routes = append(routes, recordRoutes(api.KindTemplate, true, listing[workflow.Template]{}, func(s *server) *resource[workflow.Template] { return s.templates })...)
	routes = append(routes, templateRoutes()...)
	routes = append(routes, imageRoutes()...)
	routes = append(routes, ruleRoutes()...)
	routes = append(routes, logRoutes()...)
	return append(routes, recordRoutes(api.KindWorkflow, false, workflowListing(), func(s *server) *resource[workflow.Workflow] { return s.workflows })...)
}

// recordRoutes are the routes that all kinds share. A kind whose spec is written
// once has no PUT and no PATCH.
func recordRoutes[T any](k api.Kind, replace bool, l listing[T], of func(*server) *resource[T]) []Route {
	type handler = func(*resource[T], *server, http.ResponseWriter, *http.Request) error
	with := func(h handler) func(*server, http.ResponseWriter, *http.Request) error {
		return func(s *server, w http.ResponseWriter, r *http.Request) error { return h(of(s), s, w, r) }
	}
	// change is a route that may be asked for as a dry run
	change := func(h handler) func(*server, http.ResponseWriter, *http.Request) error {
		return func(s *server, w http.ResponseWriter, r *http.Request) error {
			on, err := s.forRequest(r)
			if err != nil {
				return err
			}
			return h(of(on), on, w, r)
		}
	}
	list := func(rs *resource[T], s *server, w http.ResponseWriter, r *http.Request) error {
		return rs.serveList(s, l, w, r)
	}
	var record T
	var shown any = record // what is read has more than what is written
	var rows any = api.List[T]{}
	switch k {
	case api.KindWorkflow:
		shown, rows = api.Workflow{}, api.List[api.Workflow]{}
	case api.KindImage:
		shown, rows = api.Image{}, api.List[api.Image]{}
	}
	// what claims and provision name; networks and rules are none of a claimer's business
	claimer := k != api.KindSubnet && k != api.KindRule
	all, one, word := "/"+k.Path(), "/"+k.Path()+"/{name}", k.Word()
	routes := []Route{
		{Method: http.MethodGet, Path: all, Does: "List every " + word + ", filtered, sorted and in pages", Role: RoleViewer, Claimer: claimer, Out: rows, Query: l.params(), handle: with(list)},
		{Method: http.MethodPost, Path: all, Does: "Create a " + word, Role: RoleOperator, In: record, Out: shown, Status: http.StatusCreated, Query: []string{"dryRun"}, handle: change((*resource[T]).serveCreate)},
		{Method: http.MethodGet, Path: one, Does: "Read a " + word, Role: RoleViewer, Claimer: claimer, Out: shown, handle: with((*resource[T]).serveGet)},
		{Method: http.MethodDelete, Path: one, Does: "Delete a " + word, Role: RoleOperator, Out: api.Deleted{}, Query: []string{"dryRun"}, handle: change((*resource[T]).serveDelete)},
	}
	if forcible := k == api.KindHardware || k == api.KindSubnet; forcible {
		del := &routes[len(routes)-1]
		del.Does, del.Query = del.Does+", with force also one that is in use", append(del.Query, "force")
	}
	if replace {
		routes = append(
			routes,
			Route{Method: http.MethodPut, Path: one, Does: "Replace a " + word + " that exists", Role: RoleOperator, In: record, Out: shown, Query: []string{"dryRun"}, handle: change((*resource[T]).serveReplace)},
			Route{Method: http.MethodPatch, Path: one, Does: "Change fields of a " + word + " (JSON merge patch, RFC 7396)", Role: RoleOperator, In: mergePatch{}, Out: shown, Query: []string{"dryRun"}, handle: change((*resource[T]).servePatch)},
		)
	}
	return routes
}

// documentsBody marks a body of several documents.
type documentsBody struct{}

// mergePatch marks a body that is a JSON merge patch.
type mergePatch map[string]any
