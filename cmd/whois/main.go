// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command whois tells whom the hashed names of tenants mean, to those who hold
// the key: it reads candidates from standard input, one a line, hashes them as
// the tenant_usage connector does, and prints those whose name was asked for.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/llmfleet/llmfleet/internal/tenant"
)

func main() {
	err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "whois:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("whois", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: whois -key-file FILE | -key-env NAME [ID...] < candidates")
		fmt.Fprintln(stderr, "Prints id and candidate, separated by a tab, of each ID; without IDs, of all candidates.")
		flags.PrintDefaults()
	}
	keyFile := flags.String("key-file", "", "`FILE` that holds the key of the hash")
	keyEnv := flags.String("key-env", "", "`NAME` of the environment variable that holds the key of the hash")
	if err := flags.Parse(args); err != nil {
		return err
	}
	key, err := readKey(*keyFile, *keyEnv)
	if err != nil {
		return err
	}
	namer := tenant.NewNamer(tenant.NamerOptions{Mode: tenant.Hash, Key: key})
	return lookUp(namer, flags.Args(), stdin, stdout)
}

func readKey(file, variable string) ([]byte, error) {
	var text []byte
	switch {
	case (file == "") == (variable == ""):
		return nil, errors.New("say where the key is, by either -key-file or -key-env")
	case file != "":
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	default:
		text = []byte(os.Getenv(variable))
	}
	key, err := tenant.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", file, variable, err)
	}
	return key, nil
}

// longest is how many bytes a candidate may have, and what ends its line.
const longest = 1<<20 + len("\r\n")

// lookUp prints the candidates that have one of the ids, or all if there are no
// ids. An id that none has is an error.
func lookUp(namer *tenant.Namer, ids []string, candidates io.Reader, stdout io.Writer) error {
	found := make(map[string]bool, len(ids))
	for _, id := range ids {
		found[id] = false
	}
	lines := bufio.NewScanner(candidates)
	lines.Buffer(nil, longest+1) // one byte more, as it gives up once that is full
	for lines.Scan() {
		candidate := lines.Text()
		if candidate == "" {
			continue
		}
		id := namer.Name(candidate)
		if _, asked := found[id]; !asked && len(ids) > 0 {
			continue
		}
		found[id] = true
		if _, err := fmt.Fprintf(stdout, "%s\t%s\n", id, candidate); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read candidates: %w", err)
	}
	var missing []string
	for _, id := range ids {
		if !found[id] {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return errors.New("no candidate is " + strings.Join(missing, ", "))
	}
	return nil
}
