// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With the key of RFC 4231's test case 1, its text has this name.
const (
	key  = "\v\v\v\v\v\v\v\v\v\v\v\v\v\v\v\v\v\v\v\v"
	text = "Hi There"
	id   = "b0344c61d8db3853"
)

func ask(t *testing.T, candidates string, args ...string) (stdout string, err error) {
	t.Helper()
	var out, usage strings.Builder
	err = run(args, strings.NewReader(candidates), &out, &usage)
	return out.String(), err
}

func keyFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestWhoIsAnID(t *testing.T) {
	out, err := ask(t, "acme\n"+text+"\r\nglobex\n", "-key-file", keyFile(t, key+"\n"), id)
	require.NoError(t, err)
	assert.Equal(t, id+"\t"+text+"\n", out)
}

func TestAllCandidatesWithoutIDs(t *testing.T) {
	t.Setenv("TENANT_KEY", key)
	out, err := ask(t, "acme\n\n"+text, "-key-env", "TENANT_KEY")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	require.Len(t, lines, 2)
	assert.Regexp(t, "^[0-9a-f]{16}\tacme$", lines[0])
	assert.Equal(t, id+"\t"+text, lines[1])
}

func TestAnIDThatNobodyHas(t *testing.T) {
	out, err := ask(t, text, "-key-file", keyFile(t, key), "00000000deadbeef", id)
	require.EqualError(t, err, "no candidate is 00000000deadbeef")
	assert.Equal(t, id+"\t"+text+"\n", out, "those that are found are printed all the same")
}

func TestAKeyIsNeeded(t *testing.T) {
	t.Setenv("NO_KEY", "")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "either -key-file or -key-env"},
		{[]string{"-key-file", "f", "-key-env", "E"}, "either -key-file or -key-env"},
		{[]string{"-key-env", "NO_KEY"}, "NO_KEY: the key has 0 bytes: use at least 16"},
		{[]string{"-key-file", filepath.Join(t.TempDir(), "none")}, "none"},
		{[]string{"-key-file", keyFile(t, "fifteen bytes..\n")}, "the key has 15 bytes: use at least 16"},
	} {
		_, err := ask(t, text, c.args...)
		assert.ErrorContains(t, err, c.want, "%v", c.args)
	}
}

func TestHelp(t *testing.T) {
	_, err := ask(t, "", "-help")
	assert.ErrorIs(t, err, flag.ErrHelp)
}

// TestLongCandidates: what names nobody stands in the way of nobody else.
func TestLongCandidates(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, lineBreak := range []string{"\n", "\r\n"} {
		out, err := ask(t, long+lineBreak+text+lineBreak+long, "-key-file", keyFile(t, key), id)
		require.NoError(t, err)
		assert.Equal(t, id+"\t"+text+"\n", out)
	}
	_, err := ask(t, long+"xxx\n"+text, "-key-file", keyFile(t, key))
	assert.ErrorContains(t, err, "read candidates")
}
