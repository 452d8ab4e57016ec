// Package api has the words that the REST server and its Go client share: kinds
// of records, problems, results of apply, timelines.
package api
