package appliance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/rackstrap/rackstrap/api"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/api/client"
)

// Trouble is an error of For, or of a call to an appliance, as the reason and the
// message of a condition. reason is empty for what is no trouble with the appliance:
// an error of the management cluster, or the end of ctx. The message is the same as
// long as the trouble is.
func Trouble(err error) (reason, message string) {
	var secret *SecretError
	var down *client.Unreachable
	var problem *api.Problem
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return "", ""
	case errors.As(err, &secret) && secret.Missing:
		return infrav1.ApplianceSecretMissingReason, secret.Error()
	case errors.As(err, &secret):
		return infrav1.ApplianceSecretInvalidReason, secret.Error()
	case errors.As(err, &down):
		return infrav1.ApplianceUnreachableReason, fmt.Sprintf("the appliance does not answer: %s (%s)", steady(down), down.Hint())
	case errors.Is(err, context.DeadlineExceeded):
		return infrav1.ApplianceUnreachableReason, "the appliance takes too long to answer (on the appliance: rackstrap doctor)"
	case errors.As(err, &problem):
		if problem.Status >= http.StatusInternalServerError || problem.Code == api.CodeRateLimited {
			return infrav1.ApplianceUnreachableReason, "the appliance cannot answer now: " + withHint(problem)
		}
		return infrav1.ApplianceRefusedReason, "the appliance refuses: " + withHint(problem)
	}
	return "", ""
}

func withHint(p *api.Problem) string {
	if p.Hint == "" {
		return p.Error()
	}
	return fmt.Sprintf("%s (%s)", p.Error(), p.Hint)
}

// steady is what Unreachable says without the port that this connection had here.
func steady(u *client.Unreachable) string {
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(u.Err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("%s: there is no name %s", u.Where, dns.Name)
	case errors.As(u.Err, &dns):
		return fmt.Sprintf("%s: the name %s cannot be looked up", u.Where, dns.Name)
	case errors.As(u.Err, &op) && op.Timeout():
		return fmt.Sprintf("%s: no answer in time", u.Where)
	case errors.As(u.Err, &op):
		return (&client.Unreachable{Where: u.Where, Err: op.Err}).Error()
	}
	return u.Error()
}
