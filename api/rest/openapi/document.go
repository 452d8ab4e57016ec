package openapi

// Document is an OpenAPI document, as far as we use it.
// https://spec.openapis.org/oas/v3.1.0
type Document struct {
	OpenAPI    string                           `json:"openapi"`
	Info       Info                             `json:"info"`
	Servers    []Server                         `json:"servers"`
	Security   []map[string][]string            `json:"security"`
	Tags       []Tag                            `json:"tags"`
	Paths      map[string]map[string]*Operation `json:"paths"` // by path, then method in lower case
	Components Components                       `json:"components"`
}

// Info is the head of a document.
type Info struct {
	Title       string  `json:"title"`
	Version     string  `json:"version"`
	Summary     string  `json:"summary,omitempty"`
	Description string  `json:"description,omitempty"`
	License     License `json:"license"`
}

// License is that of the API, by its SPDX identifier.
type License struct {
	Name       string `json:"name"`
	Identifier string `json:"identifier"`
}

// Server says where the paths are.
type Server struct {
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
}

// Tag groups operations.
type Tag struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Operation is one method of one path.
type Operation struct {
	OperationID string                 `json:"operationId"`
	Summary     string                 `json:"summary"`
	Description string                 `json:"description,omitempty"`
	Tags        []string               `json:"tags"`
	Parameters  []Parameter            `json:"parameters,omitempty"`
	RequestBody *Body                  `json:"requestBody,omitempty"`
	Responses   map[string]Response    `json:"responses"` // by status
	Security    *[]map[string][]string `json:"security,omitempty"`
	// Role is the least that a caller must be; empty for everybody.
	Role string `json:"x-rackstrap-role,omitempty"`
	// Claimer: a claimer may use it too, for what is its own.
	Claimer bool `json:"x-rackstrap-claimer,omitempty"`
}

// Parameter is one in a path, a query or a header.
type Parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Schema      *Schema `json:"schema"`
}

// Body is what a request carries.
type Body struct {
	Description string           `json:"description,omitempty"`
	Required    bool             `json:"required,omitempty"`
	Content     map[string]Media `json:"content"`
}

// Response is one answer.
type Response struct {
	Ref         string            `json:"$ref,omitempty"`
	Description string            `json:"description,omitempty"`
	Headers     map[string]Header `json:"headers,omitempty"`
	Content     map[string]Media  `json:"content,omitempty"`
}

// Header is one header of an answer.
type Header struct {
	Description string  `json:"description,omitempty"`
	Schema      *Schema `json:"schema"`
}

// Media is a body of one media type.
type Media struct {
	Schema *Schema `json:"schema"`
}

// Components are what others refer to.
type Components struct {
	Schemas         map[string]*Schema        `json:"schemas"`
	Responses       map[string]Response       `json:"responses"`
	SecuritySchemes map[string]SecurityScheme `json:"securitySchemes"`
}

// SecurityScheme is how a caller says who it is.
type SecurityScheme struct {
	Type         string `json:"type"`
	Scheme       string `json:"scheme,omitempty"`
	BearerFormat string `json:"bearerFormat,omitempty"`
	In           string `json:"in,omitempty"`
	Name         string `json:"name,omitempty"`
	Description  string `json:"description,omitempty"`
}

// Schema is a JSON Schema of the 2020-12 draft, as far as we use it. The empty one
// takes everything.
type Schema struct {
	Ref         string             `json:"$ref,omitempty"`
	Type        string             `json:"type,omitempty"`
	Format      string             `json:"format,omitempty"`
	Description string             `json:"description,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Const       string             `json:"const,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Examples    []any              `json:"examples,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Items       *Schema            `json:"items,omitempty"`
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	// Values is the schema of the values of a map.
	Values          *Schema `json:"additionalProperties,omitempty"`
	ContentEncoding string  `json:"contentEncoding,omitempty"`
}
