// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority signs certificates.
type authority struct {
	folder string
	file   string // its own certificate
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

// keyPair names the files of a certificate and of its key.
type keyPair struct{ cert, key string }

// newAuthority makes a certificate authority that nobody knows yet.
func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{folder: t.TempDir(), key: newKey(t)}
	a.cert = &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.file = a.sign(t, "ca", a.cert, a.key).cert
	return a
}

// issue makes a certificate for a program on the loopback interface, which may serve and ask.
func (a *authority) issue(t *testing.T, name string) keyPair {
	t.Helper()
	return a.sign(t, name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, newKey(t))
}

// sign completes a certificate, and writes it and its key.
func (a *authority) sign(t *testing.T, name string, cert *x509.Certificate, key *ecdsa.PrivateKey) keyPair {
	t.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	require.NoError(t, err)
	cert.SerialNumber, cert.NotBefore, cert.NotAfter = serial, time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	certDER, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	write := func(suffix, kind string, der []byte) string {
		path := filepath.Join(a.folder, name+suffix)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	return keyPair{write(".crt", "CERTIFICATE", certDER), write(".key", "EC PRIVATE KEY", keyDER)}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// trusting is how a client that trusts the authority talks, with a certificate or without.
func (a *authority) trusting(t *testing.T, with *keyPair) *tls.Config {
	t.Helper()
	trusted := x509.NewCertPool()
	own, err := os.ReadFile(a.file)
	require.NoError(t, err)
	require.True(t, trusted.AppendCertsFromPEM(own))
	config := &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS13}
	if with != nil {
		cert, err := tls.LoadX509KeyPair(with.cert, with.key)
		require.NoError(t, err)
		config.Certificates = []tls.Certificate{cert}
	}
	return config
}
