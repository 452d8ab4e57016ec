package remediation

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// progress is what has to be known of the steps that were begun, in an annotation: a
// status is lost when the object is moved to another management cluster.
type progress struct {
	// ID was the start of the object's UID: that is another one after a move.
	ID          string                   `json:"id"`
	Phase       infrav1.RemediationPhase `json:"phase"`
	Tries       int32                    `json:"tries,omitempty"`
	StepStarted *metav1.Time             `json:"stepStarted,omitempty"`
	PowerBefore string                   `json:"powerBefore,omitempty"`
}

// saved reads the annotation; what is no progress is none.
func saved(o *infrav1.RackstrapRemediation) (p progress) {
	if json.Unmarshal([]byte(o.Annotations[infrav1.ProgressAnnotation]), &p) != nil || p.ID == "" {
		return progress{}
	}
	return p
}

// id is a part of the name of what we ask the appliance for.
func id(o *infrav1.RackstrapRemediation) string {
	if p := saved(o); p.ID != "" {
		return p.ID
	}
	return fmt.Sprintf("%.8s", o.UID)
}

// save writes the progress of the status into the annotation.
func save(o *infrav1.RackstrapRemediation) error {
	s := o.Status
	text, err := json.Marshal(progress{ID: id(o), Phase: s.Phase, Tries: ptr.Deref(s.Tries, 0), StepStarted: s.StepStarted, PowerBefore: s.PowerBefore})
	if err != nil {
		return err
	}
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	o.Annotations[infrav1.ProgressAnnotation] = string(text)
	return nil
}

// restore fills in the status of an object that was moved, or whose status was not
// written any more when its step began.
func restore(o *infrav1.RackstrapRemediation) {
	p, s := saved(o), &o.Status
	if p.Phase == "" || s.Phase != "" {
		return
	}
	s.Phase, s.StepStarted, s.PowerBefore = p.Phase, p.StepStarted, p.PowerBefore
	if p.Tries > 0 {
		s.Tries = ptr.To(p.Tries)
	}
}
