// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Program licenses writes docs/licenses.csv, which names the license of every module in the collector, and
// docs/licenses.txt, the texts that whoever passes the binary on has to pass on with it. It refuses a module whose
// license is not known or asks for more than that. It runs in the folder of the test module.
package main

import (
	"bytes"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	if err := write(".."); err != nil {
		log.Fatal("licenses: ", err)
	}
}

// write writes both files of a repository.
func write(repository string) error {
	modules, err := linked(repository)
	if err != nil {
		return err
	}
	if err := check(modules); err != nil {
		return err
	}
	for name, render := range map[string]func(*bytes.Buffer, []module) error{"csv": table, "txt": texts} {
		var content bytes.Buffer
		if err := render(&content, modules); err != nil {
			return err
		}
		if err := os.WriteFile(repository+"/docs/licenses."+name, content.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
