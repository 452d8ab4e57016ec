package openapi

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Media types of bodies.
const (
	JSON    = "application/json"
	YAML    = "application/yaml"
	Problem = "application/problem+json"
)

// Call is one operation to be described.
type Call struct {
	Method, Path string
	// Does is the operation in a sentence; More says what else there is to know.
	Does, More string
	Tag        string
	// Role and Claimer are who may; an empty Role is everybody.
	Role    string
	Claimer bool
	// Parameters are those of query and header; those in the path are found there.
	Parameters []Parameter
	// In and Out are the bodies' types by media type; none where empty.
	In, Out map[string]reflect.Type
	// InRequired: there must be a body.
	InRequired bool
	// Status are those of a success.
	Status []int
	// Headers of a success.
	Headers map[string]Header
}

// Bytes stands for a body that is a file or text of any form.
type Bytes struct{}

// API is everything that the document is made from.
type API struct {
	Info    Info
	Servers []Server
	Tags    []Tag
	// Bearer describes the token, and Cookie the session of a browser, which has the name
	// CookieName; Failure is the type of problems.
	Bearer             string
	Cookie, CookieName string
	Failure            reflect.Type
	Types              Types
	Calls              []Call
}

// Build makes the document. The same API gives the same document.
func Build(a API) *Document {
	s := newSchemas(a.Types)
	all := []reflect.Type{a.Failure}
	for _, c := range a.Calls {
		for _, body := range []map[string]reflect.Type{c.In, c.Out} {
			for _, media := range sortedKeys(body) {
				if body[media] != reflect.TypeFor[Bytes]() {
					all = append(all, body[media])
				}
			}
		}
	}
	s.collect(all)
	d := &Document{
		OpenAPI: "3.1.0", Info: a.Info, Servers: a.Servers, Tags: a.Tags,
		Security: []map[string][]string{{"token": {}}, {"session": {}}},
		Paths:    map[string]map[string]*Operation{},
		Components: Components{
			Schemas: s.made,
			SecuritySchemes: map[string]SecurityScheme{
				"token":   {Type: "http", Scheme: "bearer", BearerFormat: "rst_<id>_<secret>", Description: a.Bearer},
				"session": {Type: "apiKey", In: "cookie", Name: a.CookieName, Description: a.Cookie},
			},
		},
	}
	failure := map[string]Media{Problem: {Schema: s.of(a.Failure)}}
	d.Components.Responses = map[string]Response{}
	for _, f := range failures() {
		d.Components.Responses[f.name] = Response{Description: f.means, Content: failure}
	}
	for _, c := range a.Calls {
		if d.Paths[c.Path] == nil {
			d.Paths[c.Path] = map[string]*Operation{}
		}
		d.Paths[c.Path][strings.ToLower(c.Method)] = s.operation(c)
	}
	return d
}

// failure is a class of answers that many operations have.
type failure struct {
	status int
	name   string
	means  string
	when   func(Call) bool
}

func failures() []failure {
	guarded := func(c Call) bool { return c.Role != "" }
	named := func(c Call) bool { return strings.Contains(c.Path, "{") }
	body := func(c Call) bool { return len(c.In) > 0 }
	changes := func(c Call) bool { return c.Method != "GET" }
	always := func(Call) bool { return true }
	return []failure{
		{400, "BadRequest", "The request cannot be read: a parameter, a header or a body is wrong.", always},
		{401, "Unauthorized", "There is no token, or it is not known or has expired.", guarded},
		{403, "Forbidden", "The token's role does not reach, or the machine or claim is another's.", guarded},
		{404, "NotFound", "There is no such record, or the caller does not see it.", named},
		{409, "Conflict", "The record is not in a state that allows it, or was changed meanwhile.", changes},
		{412, "PreconditionFailed", "The record is not at the revision of If-Match.", func(c Call) bool {
			return slices.ContainsFunc(c.Parameters, func(p Parameter) bool { return p.Name == "If-Match" })
		}},
		{413, "TooLarge", "The body is larger than is taken here.", body},
		{415, "MediaType", "The body is of a type that is not read here.", body},
		{422, "Invalid", "The body can be read and is wrong; errors says what, field by field.", body},
		{429, "TooManyRequests", "Too many wrong tokens came from this address.", guarded},
	}
}

func (s *schemas) operation(c Call) *Operation {
	op := &Operation{
		OperationID: operationID(c), Summary: c.Does, Description: c.More, Tags: []string{c.Tag},
		Responses: map[string]Response{},
		Role:      c.Role, Claimer: c.Claimer,
	}
	for _, part := range strings.Split(c.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			op.Parameters = append(op.Parameters, Parameter{Name: strings.TrimSuffix(name, "}"), In: "path", Required: true, Schema: &Schema{Type: "string"}})
		}
	}
	op.Parameters = append(op.Parameters, c.Parameters...)
	if len(c.In) > 0 {
		op.RequestBody = &Body{Required: c.InRequired, Content: s.content(c.In)}
	}
	for i, status := range c.Status {
		r := Response{Description: means(status), Headers: c.Headers}
		if status != 204 {
			r.Content = s.content(c.Out)
		}
		if i > 0 {
			r.Headers = nil
		}
		op.Responses[strconv.Itoa(status)] = r
	}
	for _, f := range failures() {
		if f.when(c) {
			op.Responses[strconv.Itoa(f.status)] = Response{Ref: "#/components/responses/" + f.name}
		}
	}
	if c.Role == "" {
		op.Security = &[]map[string][]string{}
	}
	return op
}

func means(status int) string {
	switch status {
	case 201:
		return "It was made."
	case 202:
		return "It was begun."
	case 204:
		return "It was done; there is nothing to tell."
	}
	return "It was done."
}

func (s *schemas) content(bodies map[string]reflect.Type) map[string]Media {
	if len(bodies) == 0 {
		return nil
	}
	out := map[string]Media{}
	for media, t := range bodies {
		switch {
		case t != reflect.TypeFor[Bytes]():
			out[media] = Media{Schema: s.of(t)}
		case strings.HasPrefix(media, "text/"), media == YAML:
			out[media] = Media{Schema: &Schema{Type: "string"}}
		default:
			out[media] = Media{Schema: &Schema{}}
		}
	}
	return out
}

// operationID is the method and the words of the path below the version:
// postHardwareByNameHold.
func operationID(c Call) string {
	out := strings.ToLower(c.Method)
	for _, part := range strings.FieldsFunc(c.Path, func(r rune) bool { return r == '/' || r == '.' || r == '-' }) {
		switch name, param := strings.CutPrefix(part, "{"); {
		case param:
			out += "By" + title(strings.TrimSuffix(name, "}"))
		case part == "api" || part == "v1":
		default:
			out += title(part)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
