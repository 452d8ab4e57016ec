// Package machine reconciles RackstrapMachines.
//
// What is next follows from what is there alone (decide); the rest is a loop around it.
//
// The rules of the Cluster API's contract for an infrastructure machine, and what shows
// that they hold:
//
//	providerID, provisioned, addresses      TestContractOneLife, TestProviderIDWhenTheNodeMayJoin
//	failure domain obeyed and reported      TestContractFailureDomain, TestContractOneLife
//	Ready through the whole life            TestDecide, TestContractFailuresAreConditions
//	Paused, also for a deletion             TestContractPaused, TestContractPausedAtEveryStage
//	status can be made again (a move)       TestStatusIsSeenAgain, TestMoveAtEveryStage
//	names, labels, templates of the kinds   api/capi/v1beta1
//
// Mistakes that other providers made, and what shows that they cannot be made here:
//
//	two machines take one host              store.TestClaim*, TestNoHardwareFits
//	one machine takes two hosts             TestNoSecondClaimOverKills, TestFaultsOnTheWay, TestDecide (then an id)
//	a late request leaks a host             rest.TestLateClaimTakesNothing, TestNoDeletionIsGated
//	finalizer after the outside world       TestContractOneLife (the finalizer is a write of its own)
//	deletion gated by bootstrap data, cluster or image
//	                                        TestNoDeletionIsGated, TestDecide
//	another provider's objects touched      TestWatchFilter, TestNamespaces
//	installed again after a move, or when something happens to the host
//	                                        TestNeverInstalledTwice, TestMoveAtEveryStage
//	Node deleted while the host may run     TestContractOneLife, TestDecide (deleted, may still run)
//	deletion blocked for ever by a BMC      TestDecide (deleted, deadline; skips), TestSkips
//	deletion ends in the wrong place, or unsaid after a restore
//	                                        TestSecretOfAnotherAppliance, TestDecide (deleted, restored)
//	claimed again where the Secret leads to another appliance
//	                                        TestSecretOfAnotherApplianceBeforeTheInstall
//	claimed again after a restore of an older backup
//	                                        TestOutOfABackup
//	failures that no health check sees      TestContractFailuresAreConditions, suite.TestFailedInstallIsRemediated
//	a token that changes, ends, or is another tenant's
//	                                        TestTokenOfTheSecretChanges
//	a record that is taken away, a namespace that is deleted at once
//	                                        TestHardwareIsTakenAway, TestNamespaceIsDeleted
//	a write for each step of progress       TestProgressIsNoWrite
//	bootstrap data in an object or event    TestContractOneLife
//	meta-data that says another machine     TestProvision
package machine
