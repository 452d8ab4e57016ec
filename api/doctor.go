package api

// CheckResult says how bad a finding of the doctor is.
type CheckResult string

// The results.
const (
	CheckOK   CheckResult = "ok"
	CheckWarn CheckResult = "warn"
	CheckFail CheckResult = "fail"
)

// DoctorCheck is one thing that the doctor looked at.
type DoctorCheck struct {
	// Name is what was looked at, in a word or two.
	Name   string      `json:"name"`
	Result CheckResult `json:"result"`
	// Detail is the finding in a sentence; Fix is what to type on the appliance.
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}
