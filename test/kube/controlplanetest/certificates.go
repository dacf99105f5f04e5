// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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

// keyPair names the PEM files of a certificate and of its private key.
type keyPair struct{ cert, key string }

// authority signs the certificates of one control plane; its key signs service account tokens too.
type authority struct {
	dir  string
	file keyPair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes a certificate authority whose files lie in dir.
func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	a := &authority{dir: dir, key: newKey(t)}
	a.cert = &x509.Certificate{
		Subject:               pkix.Name{CommonName: "controlplanetest"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	a.file = a.sign(t, "ca", a.cert, a.key)
	return a
}

// issueServing makes a certificate for a server on the loopback interface.
func (a *authority) issueServing(t *testing.T, name string) keyPair {
	t.Helper()
	return a.sign(t, name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.ParseIP(loopbackHost)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, newKey(t))
}

// issueClient makes a certificate by which the API server knows a user and the user's groups.
func (a *authority) issueClient(t *testing.T, user string, groups ...string) keyPair {
	t.Helper()
	return a.sign(t, user, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, newKey(t))
}

// sign completes a certificate, signs it and writes it and its key into PEM files.
func (a *authority) sign(t *testing.T, name string, cert *x509.Certificate, key *ecdsa.PrivateKey) keyPair {
	t.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	require.NoError(t, err)
	cert.SerialNumber = serial
	cert.NotBefore = time.Now().Add(-time.Minute)
	cert.NotAfter = cert.NotBefore.Add(24 * time.Hour)

	certDER, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return keyPair{
		cert: writePEM(t, filepath.Join(a.dir, name+".crt"), "CERTIFICATE", certDER),
		key:  writePEM(t, filepath.Join(a.dir, name+".key"), "EC PRIVATE KEY", keyDER),
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func writePEM(t *testing.T, path, kind string, der []byte) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}
