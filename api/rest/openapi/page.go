package openapi

import (
	"bytes"
	_ "embed"
	"html/template"
	"maps"
	"slices"
	"strings"
)

//go:embed page.html
var pageHTML string

//go:embed problems.html
var problemsHTML string

// Style is the style sheet of the pages.
//
//go:embed style.css
var Style []byte

// Policy is the Content-Security-Policy of the pages: they have no program, and
// fetch their style sheet and nothing else.
const Policy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Page is the document as a page for people.
func Page(d *Document) ([]byte, error) {
	t, err := template.New("page").Funcs(template.FuncMap{"typeOf": typeOf}).Parse(pageHTML)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, pageOf(d))
	return b.Bytes(), err
}

// Failure is one code of problems and what it means.
type Failure struct{ Code, Means string }

// Problems is the page that Problem.Type refers to.
func Problems(all []Failure) ([]byte, error) {
	t, err := template.New("problems").Parse(problemsHTML)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, all)
	return b.Bytes(), err
}

type page struct {
	Title   string
	Doc     *Document
	Intro   []string
	Groups  []group
	Schemas []shownSchema
}

type group struct {
	Tag   Tag
	Calls []shownCall
}

type shownCall struct {
	Method, Path string
	Op           *Operation
	In           []shownBody
	Out          []shownAnswer
}

type shownBody struct {
	Media string
	Type  shownType
}

type shownAnswer struct {
	Status, Means string
	Bodies        []shownBody
}

type shownSchema struct {
	Name   string
	Schema *Schema
	Fields []shownField
}

type shownField struct {
	Name, Text string
	Type       shownType
}

// shownType is a type in words, with the schema that explains it.
type shownType struct{ Text, Link string }

func pageOf(d *Document) page {
	p := page{Title: d.Info.Title + " API", Doc: d, Intro: strings.Split(strings.ReplaceAll(d.Info.Description, "`", ""), "\n\n")}
	for _, tag := range d.Tags {
		g := group{Tag: tag}
		for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
			for _, method := range []string{"get", "post", "put", "patch", "delete"} {
				if op := d.Paths[path][method]; op != nil && op.Tags[0] == tag.Name {
					g.Calls = append(g.Calls, d.shown(strings.ToUpper(method), path, op))
				}
			}
		}
		if len(g.Calls) > 0 {
			p.Groups = append(p.Groups, g)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := shownSchema{Name: name, Schema: d.Components.Schemas[name]}
		for _, key := range slices.Sorted(maps.Keys(s.Schema.Properties)) {
			f := s.Schema.Properties[key]
			s.Fields = append(s.Fields, shownField{key, f.Description, typeOf(f)})
		}
		p.Schemas = append(p.Schemas, s)
	}
	return p
}

func (d *Document) shown(method, path string, op *Operation) shownCall {
	out := shownCall{Method: method, Path: path, Op: op}
	if op.RequestBody != nil {
		out.In = shownBodies(op.RequestBody.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		if name, ok := strings.CutPrefix(r.Ref, "#/components/responses/"); ok {
			r = d.Components.Responses[name]
		}
		out.Out = append(out.Out, shownAnswer{status, r.Description, shownBodies(r.Content)})
	}
	return out
}

func shownBodies(content map[string]Media) []shownBody {
	var out []shownBody
	for _, media := range slices.Sorted(maps.Keys(content)) {
		out = append(out, shownBody{media, typeOf(content[media].Schema)})
	}
	return out
}

func typeOf(s *Schema) shownType {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return shownType{name, "schema-" + name}
	}
	switch {
	case s.Items != nil:
		t := typeOf(s.Items)
		return shownType{"list of " + t.Text, t.Link}
	case s.Values != nil:
		t := typeOf(s.Values)
		return shownType{"map of " + t.Text, t.Link}
	case s.Const != "":
		return shownType{Text: "\"" + s.Const + "\""}
	case s.Format != "" && s.Type == "string":
		return shownType{Text: s.Format}
	case s.Type == "":
		return shownType{Text: "anything"}
	}
	return shownType{Text: s.Type}
}
