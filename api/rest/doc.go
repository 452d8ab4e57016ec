// Package rest serves the public API of the daemon below /api/v1: records, apply,
// workflows, events. All routes are in one table, Routes; all errors become
// RFC 9457 problems in one function, problem. Secrets are never shown.
//
// The handler answers whoever can reach it: give it to a unix socket that only
// root (or a group of operators) may open.
package rest
