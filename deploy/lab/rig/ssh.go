package rig

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rackstrap/rackstrap/deploy/lab"
)

// Key is an SSH key pair for one lab.
type Key struct {
	signer ssh.Signer
	// Line is the public key as authorized_keys has it.
	Line string
	// PEM is the private key for ssh(1).
	PEM []byte
}

// NewKey makes a key pair.
func NewKey(comment string) (Key, error) {
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, err
	}
	s, err := ssh.NewSignerFromKey(priv)
	if err != nil {
		return Key{}, err
	}
	block, err := ssh.MarshalPrivateKey(priv, comment)
	if err != nil {
		return Key{}, err
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey()))) + " " + comment
	return Key{signer: s, Line: line, PEM: pem.EncodeToMemory(block)}, nil
}

// SSH is a connection to an installed machine.
type SSH struct{ c *ssh.Client }

// DialSSH connects as user, trying again until ctx ends: sshd starts late in a
// boot. The host key is not known beforehand; the machine made it a moment ago.
func DialSSH(ctx context.Context, l *lab.Lab, addr netip.Addr, user string, k Key) (*SSH, error) {
	conf := &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(k.signer)},
		HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 30 * time.Second,
	}
	target := netip.AddrPortFrom(addr, 22).String()
	retry := time.NewTicker(time.Second)
	defer retry.Stop()
	for {
		c, err := dialSSH(ctx, l, target, conf)
		if err == nil {
			return &SSH{c}, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("ssh %s@%s: %w", user, addr, err)
		case <-retry.C:
		}
	}
}

func dialSSH(ctx context.Context, l *lab.Lab, target string, conf *ssh.ClientConfig) (*ssh.Client, error) {
	dial, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	nc, err := l.Dial(dial, "tcp", target)
	if err != nil {
		return nil, err
	}
	_ = nc.SetDeadline(time.Now().Add(conf.Timeout))
	c, chans, reqs, err := ssh.NewClientConn(nc, target, conf)
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	_ = nc.SetDeadline(time.Time{})
	return ssh.NewClient(c, chans, reqs), nil
}

// Run runs a command and returns its output without the last line end.
func (s *SSH) Run(command string) (string, error) {
	sess, err := s.c.NewSession()
	if err != nil {
		return "", err
	}
	defer sess.Close()
	out, err := sess.CombinedOutput(command)
	text := strings.TrimRight(string(out), "\n")
	if err != nil {
		return text, fmt.Errorf("%s: %w: %s", command, err, text)
	}
	return text, nil
}

// Close ends the connection.
func (s *SSH) Close() error { return s.c.Close() }
