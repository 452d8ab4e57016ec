// Package store keeps the records of the appliance.
//
// KV is the contract with the backend: small and etcd-shaped, so that the
// embedded file (store/bolt) and a cluster can both satisfy it; store/storetest
// proves it. DB is the typed store over a KV: records, unique names, events in
// the transaction that caused them, sealed values. View is the part of it that
// hot paths read, in memory. Recorder writes the notes that belong to no change
// of state.
package store
