// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"regexp"
	"strings"
)

// escapes are the sequences with which terminals are told of colours.
var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// unwrap takes a line out of JSON, as Docker's files and structured loggers
// write it, and takes colours off. The stamp is what the JSON told.
func unwrap(line string) (text string, outer Stamp) {
	for range deepest {
		start := strings.IndexByte(line, '{')
		if start < 0 || !isHeader(line[:start]) {
			break
		}
		var fields map[string]any
		if json.Unmarshal([]byte(line[start:]), &fields) != nil {
			break
		}
		message := firstText(fields, "log", "message", "msg", "text")
		if inner, ok := fields["fields"].(map[string]any); ok && message == "" {
			message = firstText(inner, "message") // of Rust's tracing
		}
		if message == "" {
			break
		}
		outer = stampOf(firstText(fields, "timestamp", "time", "ts", "asctime")).orBetter(stampOf(line[:start])).orBetter(outer)
		line = message
	}
	if strings.IndexByte(line, '\x1b') >= 0 {
		line = escapes.ReplaceAllString(line, "")
	}
	return strings.TrimSpace(line), outer
}

// deepest is how often one line is packed into another's JSON: by the engine, the
// runtime and a log reader.
const deepest = 3

// firstText is the first of the fields that has a text.
func firstText(fields map[string]any, keys ...string) string {
	for _, key := range keys {
		if text, ok := fields[key].(string); ok && text != "" {
			return text
		}
	}
	return ""
}

// startsWord tells whether a word may begin at i.
func startsWord(text string, i int) bool {
	return i == 0 || text[i-1] == ' ' || text[i-1] == '\t'
}

// headerEnd is what stands before a message: the end of a bracket or of a name
// with its mark, a level, a runtime's stream, or a time.
var headerEnd = regexp.MustCompile(`(?:^|[\])|:›>-]|\b(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR)|\b(?:stdout|stderr) [FP]|\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s*$`)

// isHeader tells whether what stands before a message is what loggers, runtimes
// and log readers put there. Quoted words are none of these: they are someone's
// prompt or an argument.
func isHeader(text string) bool {
	return !strings.ContainsAny(text, "'\"`\n") && headerEnd.MatchString(text)
}

// copies are how processes and ranks are named: vLLM's (Worker_TP0 pid=128),
// SGLang's [2026-08-05 08:42:28 PP1 TP0] and, before v0.3, [gpu_id=0],
// TensorRT-LLM's [RANK 1].
var copies = regexp.MustCompile(`\(([^()]* pid=\d+)\)|\[[^][]*?((?:[DTPEC]P\d+)(?: [A-Z]+\d+)*)\]|\[(gpu_id=\d+|RANK \d+)\]`)

// copyOf is the innermost process or rank that a header names.
func copyOf(header string) string {
	all := copies.FindAllStringSubmatch(header, -1)
	if len(all) == 0 {
		return ""
	}
	last := all[len(all)-1]
	return strings.Clone(last[1] + last[2] + last[3])
}
