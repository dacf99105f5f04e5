// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"strings"
)

// Fact is what the event tells of its pod's start; false if it tells nothing of
// it. The reasons and messages are those of Kubernetes 1.20 to 1.37, its cluster
// autoscaler and Karpenter. How often the pod was restarted no event says.
func (e *Event) Fact() (Fact, bool) {
	read := reasons[e.Reason]
	if read == nil {
		read = e.rejected()
	}
	container, ofStart := e.container()
	if read == nil || !ofStart {
		return Fact{}, false
	}
	at, grain := e.Began()
	f := Fact{
		Pod: e.Pod, At: at, Grain: grain, Learned: e.Learned, Attempt: -1,
		Container: container, Reason: e.Reason, Message: e.Message,
	}
	if f.Count = max(e.Count, e.SeriesCount); f.Count > 1 {
		f.Until = max(e.Last, e.SeriesLast, at)
	} else {
		f.Count = 0
	}
	f.Clock = e.kubelet()
	if !read(e, &f) {
		return Fact{}, false
	}
	return f, true
}

// reasons are those that tell of a start. What reads one fills in the fact, and
// says false if the message is not one that it knows.
var reasons = map[string]func(*Event, *Fact) bool{
	"Scheduled":                     scheduled,
	"FailedScheduling":              byControlPlane(Unschedulable),
	"NotTriggerScaleUp":             byControlPlane(Unschedulable),
	"TriggeredScaleUp":              requestedBy("cluster-autoscaler", "triggered scale-up"),
	"Nominated":                     requestedBy("karpenter", "nodeclaim/"),
	"SuccessfulAttachVolume":        byControlPlane(VolumeAttached),
	"FailedAttachVolume":            byControlPlane(VolumeFailed),
	"FailedMount":                   byKubelet(VolumeFailed),
	"FailedPrepareDynamicResources": byKubelet(ClaimFailed),
	"Pulling":                       byKubelet(PullStarted),
	"Pulled":                        pulled,
	"Created":                       ofContainer(ContainerCreated, "Created container"),
	"Started":                       ofContainer(ContainerStarted, "Started container"),
	"Failed":                        failed,
	"ErrImageNeverPull":             byKubelet(PullFailed),
	"InspectFailed":                 byKubelet(PullFailed),
	"BackOff":                       backOff,
	"Unhealthy":                     unhealthy,
	"Evicted":                       byKubelet(Failed),
	"UnexpectedAdmissionError":      byKubelet(Failed),
	"NodeAffinity":                  byKubelet(Failed),
}

// rejected reads reasons that name what the node ran out of: OutOfcpu,
// OutOfnvidia.com/gpu.
func (e *Event) rejected() func(*Event, *Fact) bool {
	if what, ok := strings.CutPrefix(e.Reason, "OutOf"); ok && what != "" && e.Component != "cluster-autoscaler" {
		return byKubelet(Failed)
	}
	return nil
}

func byKubelet(name Name) func(*Event, *Fact) bool {
	return func(_ *Event, f *Fact) bool {
		f.Name = name
		return true
	}
}

func byControlPlane(name Name) func(*Event, *Fact) bool {
	return func(_ *Event, f *Fact) bool {
		f.Name, f.Clock = name, Clock{}
		return true
	}
}

// kubelet is the clock of the kubelet that reports the event. Others that report
// in a kubelet's stead name themselves, not the node.
func (e *Event) kubelet() Clock {
	node := cmp.Or(e.Host, e.Node)
	if e.Component != "" && e.Component != "kubelet" {
		node = cmp.Or(e.Node, e.Host)
	}
	return Clock{Kind: Node, Of: node}
}

// container is the container that the event is about, "" if it is about the
// whole pod; false for one that is added for debugging and never waited for.
func (e *Event) container() (name string, ofStart bool) {
	kind, rest, ok := strings.Cut(e.FieldPath, "{")
	if !ok {
		return "", true
	}
	return strings.TrimSuffix(rest, "}"), kind != "spec.ephemeralContainers"
}

// scheduled reads "Successfully assigned <namespace>/<pod> to <node>".
func scheduled(e *Event, f *Fact) bool {
	rest, ok := strings.CutPrefix(e.Message, "Successfully assigned ")
	pod, node, placed := strings.Cut(rest, " to ")
	if !ok || !placed || node == "" || strings.ContainsAny(node, " \t\n") {
		return false
	}
	f.Name, f.Clock, f.About = Scheduled, Clock{}, &Pod{Node: node}
	if namespace, name, ok := strings.Cut(pod, "/"); ok {
		f.About.Namespace, f.About.Name = namespace, name
	}
	return true
}

// requestedBy reads that an autoscaler announces a node; without the words, it
// speaks of one that exists.
func requestedBy(autoscaler, words string) func(*Event, *Fact) bool {
	return func(e *Event, f *Fact) bool {
		f.Name, f.Clock, f.Reason = NodeRequested, Clock{}, autoscaler
		return strings.Contains(e.Message, words)
	}
}

// ofContainer reads the forms of "Created container": with the container's name,
// with a colon before it since 1.31, and without it since 1.35.
func ofContainer(name Name, words string) func(*Event, *Fact) bool {
	return func(e *Event, f *Fact) bool {
		if rest, ok := strings.CutPrefix(e.Message, words); ok && f.Container == "" {
			f.Container = oneWord(strings.TrimPrefix(rest, ":"))
		}
		f.Name = name
		return f.Container != ""
	}
}

// oneWord is the text if it is one word, else "".
func oneWord(text string) string {
	if words := strings.Fields(text); len(words) == 1 {
		return words[0]
	}
	return ""
}

// failed reads what the kubelet reports of pulls under the reason Failed; other
// errors of containers show in the pod's status.
func failed(e *Event, f *Fact) bool {
	why, isError := strings.CutPrefix(e.Message, "Error: ")
	switch {
	case strings.HasPrefix(e.Message, "Failed to pull image"), strings.HasPrefix(e.Message, "Failed to inspect image"):
		f.Name = PullFailed
	case isError && strings.HasPrefix(why, "ImagePullBackOff"):
		f.Name, f.Reason = PullBackOff, "ImagePullBackOff"
	case isError && (strings.HasPrefix(why, "ErrImage") || strings.HasPrefix(why, "RegistryUnavailable") ||
		strings.HasPrefix(why, "ImageInspectError") || strings.HasPrefix(why, "InvalidImageName")):
		f.Name = PullFailed
		f.Reason, _, _ = strings.Cut(why, ":")
	default:
		return false
	}
	if strings.Contains(e.Message, "pull QPS exceeded") {
		f.Reason = "QPSExceeded"
	}
	return true
}

// backOff reads "Back-off pulling image" and "Back-off restarting failed
// container", with the container's name behind it since 1.26.
func backOff(e *Event, f *Fact) bool {
	if strings.HasPrefix(e.Message, "Back-off pulling image") {
		f.Name = PullBackOff
		return true
	}
	rest, ok := strings.CutPrefix(e.Message, "Back-off restarting failed container")
	if name, _, named := strings.Cut(strings.TrimSpace(rest), " in pod "); named && f.Container == "" {
		f.Container = oneWord(name)
	}
	f.Name = RestartBackOff
	return ok
}

// unhealthy reads "Startup probe failed: …", "Readiness probe errored: …".
func unhealthy(e *Event, f *Fact) bool {
	kind, _, ok := strings.Cut(e.Message, " probe ")
	f.Name, f.Reason = ProbeFailed, strings.ToLower(kind)
	switch f.Reason {
	case "startup", "readiness", "liveness":
		return ok
	}
	return false
}
