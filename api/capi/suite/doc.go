// Package suite puts together what tests of the provider run against, all of it real
// but the machines: an appliance, a rack of simulated machines, a management cluster
// with the Cluster API's own providers, and our provider as a process under the rights
// that it is installed with. Everything is in network namespaces of the test's own.
//
//	s := suite.New(t, suite.Options{Machines: 5, CAPI: true})
//	s.Apply(yaml)
//	s.Eventually("the machine has a claim", func() error { … })
package suite
