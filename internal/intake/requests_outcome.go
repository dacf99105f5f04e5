// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"bytes"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/tenant"
)

// HTTP statuses: the first that is an error, and that of throttling.
const (
	statusBad       = 400
	statusThrottled = 429
)

// outcome is how a request ended. It failed if the span's status is an error, if
// it names an error's type, or if the HTTP status says so. It was throttled if
// any of them says that; the words of the status's message count only where
// nothing else says why, since they may quote what somebody wrote.
func (p *requestPage) outcome(span ptrace.Span) tenant.Outcome {
	status := span.Status()
	code, errorType := p.span.said[fieldStatusCode].number, p.span.said[fieldErrorType].text
	if status.Code() != ptrace.StatusCodeError && errorType == "" && code < statusBad {
		return tenant.OK
	}
	exception := exceptionType(span)
	why := status.Message()
	if code != 0 || errorType != "" || exception != "" {
		why = ""
	}
	if code == statusThrottled || throttles(errorType) || throttles(exception) || throttles(why) {
		return tenant.Throttled
	}
	return tenant.Failed
}

// exceptionType is the type of the last exception that a span tells of.
func exceptionType(span ptrace.Span) string {
	events := span.Events()
	for i := events.Len() - 1; i >= 0; i-- {
		if e := events.At(i); e.Name() == "exception" {
			if v, ok := e.Attributes().Get("exception.type"); ok {
				return textIn(v)
			}
		}
	}
	return ""
}

// throttling are words for: too much, come again later. They are written without
// what stands between words.
var throttling = [][]byte{
	[]byte("ratelimit"), []byte("throttl"), []byte("toomanyrequests"), []byte("resourceexhausted"), []byte("quota"),
	[]byte("budgetexceeded"), []byte("code429"),
}

// throttles tells whether an error is one of throttling, by what its first bytes
// say in whatever spelling.
func throttles(text string) bool {
	if text == "429" {
		return true
	}
	var letters [maxText]byte
	n := 0
	for i := range min(len(text), len(letters)) {
		switch c := text[i]; {
		case c >= 'A' && c <= 'Z':
			letters[n] = c + ('a' - 'A')
			n++
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			letters[n] = c
			n++
		}
	}
	for _, word := range throttling {
		if bytes.Contains(letters[:n], word) {
			return true
		}
	}
	return false
}
