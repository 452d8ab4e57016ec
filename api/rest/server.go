package rest

import (
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

type server struct {
	Deps
	hardware  *resource[hardware.Hardware]
	subnets   *resource[hardware.Subnet]
	templates *resource[workflow.Template]
	rules     *resource[hardware.Rule]
	images    *resource[workflow.Image]
	workflows *resource[workflow.Workflow]
	claims    *resource[hardware.Claim]
	rows      summaryRows
	packers   packers
	trend     trend
	rounds    rounds
	feed      *feed
	wrong     *wrongTokens
	signIns   *pace[string] // by the token's uid
	large     gate
	reading   atomic.Int64 // bytes of bodies under way
	// dry: what is written is thrown away; see asDry.
	dry bool
}

// API answers all Routes. It is itself the handler for a unix socket that only root
// may open: whoever asks there is an admin.
type API struct {
	server *server
	router http.Handler
}

// ServeHTTP answers a request of the unix socket.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.serveAs(socketCaller(), w, r)
}

func (a *API) serveAs(c Caller, w http.ResponseWriter, r *http.Request) {
	a.router.ServeHTTP(w, r.WithContext(workflow.WithBy(withCaller(r.Context(), c), c.Name)))
}

// New makes the API. Streams end when the request's context does, so let
// http.Server.BaseContext end when the daemon stops.
func New(d Deps) *API {
	s := newServer(d)
	r := chi.NewRouter()
	r.Use(middleware.GetHead) // what can be read can be asked for without its body
	for _, route := range Routes() {
		r.Method(route.Method, api.Base+route.Path, s.serve(route))
	}
	s.serveBeside(r)
	r.NotFound(s.noRoute)
	r.MethodNotAllowed(s.noMethod)
	return &API{server: s, router: r}
}

func newServer(d Deps) *server {
	s := &server{Deps: d, wrong: newWrongTokens(d.Now), large: make(gate, largeAtOnce), packers: newPackers()}
	s.signIns = newPace[string](d.Now, signInBurst, signInEvery)
	s.hardware = hardwareResource(d)
	s.subnets = subnetResource(d)
	s.templates = templateResource(d)
	s.rules = ruleResource(d)
	s.images = imageResource(d)
	s.workflows = workflowResource(d)
	s.claims = claimResource(d)
	s.feed = &feed{deps: d}
	return s
}

// serve runs a route for a caller who may use it, and turns its error into a problem.
func (s *server) serve(route Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.Count != nil {
			s.Count(route)
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		r = r.WithContext(withTold(withTicket(r.Context(), &ticket{gate: s.large, reading: &s.reading})))
		defer through(r.Context())
		w, end := s.compressed(w, r, route)
		defer end(false)
		caller := CallerFrom(r.Context())
		err := caller.mayUse(route)
		if err == nil {
			err = queryKnown(r.URL.Query(), route.Query...)
		}
		if err == nil {
			err = route.handle(s, w, r)
		}
		if err != nil {
			if problem(err).Code == api.CodeForbidden {
				s.refused(r, caller.Name, problem(err))
			}
			if part := toldOf(r.Context()).part; part != "" {
				s.changed(r, "done in part: "+part)
			}
			if errors.As(err, new(bodyLeft)) {
				defer linger(w, r)()
			}
			s.fail(w, r, err)
			end(true)
			return
		}
		if !route.Reads {
			s.changed(r, "done")
		}
		end(true)
	}
}
