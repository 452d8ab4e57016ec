package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// probeLimit bounds what the doctor fetches.
const probeLimit = 16 << 20

// fetchHTTP fetches a boot program and returns its sha256 in hex.
func fetchHTTP(ctx context.Context, at netip.AddrPort, name string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/ipxe/%s", at, name), nil)
	if err != nil {
		return "", err
	}
	t := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: t}).Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(resp.Status)
	}
	return sumOf(io.LimitReader(resp.Body, probeLimit))
}

func sumOf(r io.Reader) (string, error) {
	h := sha256.New()
	_, err := io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), err
}

// TFTP (RFC 1350): operations, and the block size without options.
const (
	tftpRead  = 1
	tftpData  = 3
	tftpAck   = 4
	tftpError = 5
	tftpBlock = 512
	tftpAgain = time.Second
)

// fetchTFTP fetches a file as the plainest firmware does, in blocks of 512 bytes, and
// returns its sha256 in hex. It asks from a loopback address: that one is answered whether
// or not a Subnet covers ours.
func fetchTFTP(ctx context.Context, at netip.AddrPort, name string) (string, error) {
	from := "127.0.0.1:0"
	if at.Addr().Is6() {
		from = "[::1]:0"
	}
	pc, err := new(net.ListenConfig).ListenPacket(ctx, "udp", from)
	if err != nil {
		return "", err
	}
	defer pc.Close()
	stop := context.AfterFunc(ctx, func() { _ = pc.Close() })
	defer stop()
	conn := pc.(*net.UDPConn)
	send, to := binary.BigEndian.AppendUint16(nil, tftpRead), at
	send = append(append(send, name...), "\x00octet\x00"...)
	var file bytes.Buffer
	buf := make([]byte, 2*tftpBlock)
	for want := uint16(1); file.Len() < probeLimit; {
		if _, err := conn.WriteToUDPAddrPort(send, to); err != nil {
			return "", err
		}
		_ = conn.SetReadDeadline(time.Now().Add(tftpAgain))
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		var late net.Error
		switch {
		case ctx.Err() != nil:
			return "", fmt.Errorf("no answer after %d bytes", file.Len())
		case errors.As(err, &late) && late.Timeout():
			continue // asks again
		case err != nil:
			return "", err
		case n < 4:
			continue
		}
		switch op := binary.BigEndian.Uint16(buf); {
		case op == tftpError:
			return "", fmt.Errorf("the server says: %s", hardware.PlainText(string(buf[4:n]), 80))
		case op != tftpData || binary.BigEndian.Uint16(buf[2:]) != want:
			continue
		}
		file.Write(buf[4:n])
		send, to = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, tftpAck), want), from
		want++
		if n-4 < tftpBlock {
			_, _ = conn.WriteToUDPAddrPort(send, to)
			return sumOf(&file)
		}
	}
	return "", fmt.Errorf("more than %d bytes", probeLimit)
}
