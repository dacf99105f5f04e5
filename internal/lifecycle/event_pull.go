// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"time"
)

// pulled reads what the kubelet says when an image is there: that it was, or how
// long the pull took. The event's time is the end of it.
//
//	Container image "X" already present on machine
//	Container image "X" already present on machine and can be accessed by the pod
//	Successfully pulled image "X"
//	Successfully pulled image "X" in 26.345675198s
//	Successfully pulled image "X" in 796ms (1m21.28s including waiting)
//	Successfully pulled image "X" in 796ms (796ms including waiting). Image size: 129338587 bytes.
func pulled(e *Event, f *Fact) bool {
	f.Name = PullFinished
	if strings.Contains(e.Message, "already present on machine") {
		f.Cached = true
		return true
	}
	rest, ok := strings.CutPrefix(e.Message, "Successfully pulled image ")
	if !ok {
		return false
	}
	_, rest, ok = strings.Cut(rest, `" in `)
	if !ok {
		return true // versions before 1.20 do not say how long
	}
	took, rest, _ := strings.Cut(rest, " ")
	f.Took = pullTime(took)
	if all, _, ok := strings.Cut(strings.TrimPrefix(rest, "("), " including waiting)"); ok {
		f.Waited = max(0, pullTime(all)-f.Took)
	}
	return true
}

// longestPull is longer than any pull takes: a longer one is misread.
const longestPull = 7 * 24 * time.Hour

func pullTime(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longestPull {
		return 0
	}
	return d
}
