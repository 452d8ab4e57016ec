// Package openapi makes an OpenAPI 3.1 document from operations whose bodies are Go
// types, and a page for people from that document. It knows no route of ours.
package openapi
