// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command metricsdoc writes what is told of metrics in docs/: the reference
// metrics.md, and names/next.txt, their names as the next release has them. With
// -since-release it prints instead what changed since the last one, and fails
// where a name is gone that was promised to stay.
//
// It reads the table in package emit and the metadata.yaml of every component.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "folder of the repository")
	since := flag.Bool("since-release", false, "print what changed since the last release")
	flag.Parse()
	var err error
	if *since {
		err = printChanges(os.Stdout, filepath.Join(*root, names))
	} else {
		err = write(*root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "metricsdoc:", err)
		os.Exit(1)
	}
}

// names is the folder of the lists of names, and next the one of what is not
// yet released.
const (
	names = "docs/names"
	next  = "next.txt"
)

func write(root string) error {
	all, err := collect(root)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(root, "docs", "metrics.md"), []byte(page(all)), 0o644),   //nolint:gosec // documentation is for everyone to read
		os.WriteFile(filepath.Join(root, names, next), []byte(listOf(all).String()), 0o644), //nolint:gosec // likewise
	)
}

// errPromise is that a name changed that was promised to stay.
var errPromise = errors.New("a name that is beta or stable stays: bring it back with stability deprecated, beside what takes its place")

func printChanges(out io.Writer, folder string) error {
	now, err := readList(filepath.Join(folder, next))
	if err != nil {
		return err
	}
	file, err := lastRelease(folder)
	if err != nil {
		return err
	}
	if file == "" {
		_, err = fmt.Fprintf(out, "no release yet: all %d names are new\n", len(now))
		return err
	}
	before, err := readList(filepath.Join(folder, file))
	if err != nil {
		return err
	}
	changes, broken := compare(before, now)
	if _, err = fmt.Fprintf(out, "since %s: %d changes\n%s", file, len(changes), lines(changes)); err != nil {
		return err
	}
	if len(broken) > 0 {
		return fmt.Errorf("%w:\n%s", errPromise, lines(broken))
	}
	return nil
}
