// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// PodTimes is when a pod's start came how far: the times at which the API server received the first request that said so
// and that it granted, in microseconds. Zero: not yet. A cause's time is always before its effect's, which is not true of
// the times at which the requests were answered: the effect may begin while the answer is on its way.
type PodTimes struct {
	Namespace, Name string

	Created time.Time
	Bound   time.Time // to a node, by the scheduler
	Pulling time.Time // the event of that name was written
	Pulled  time.Time // the event of that name was written
	Running time.Time // every container runs
	Ready   time.Time
}

// AuditEvents reads what the API server's audit log says so far: every request with user, verb, object, times and response
// code; of pods, bindings, events and claims also the objects.
func (cp *ControlPlane) AuditEvents(t *testing.T) []auditv1.Event {
	t.Helper()
	file, err := os.Open(cp.auditLog())
	require.NoError(t, err)
	defer file.Close()
	var events []auditv1.Event
	for decoder := json.NewDecoder(file); ; {
		var event auditv1.Event
		err := decoder.Decode(&event)
		// The server may be in the middle of the last line.
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return events
		}
		require.NoError(t, err)
		events = append(events, event)
	}
}

// AnswerKey tells from the audit log how far the start of each pod came, by pod uid.
func (cp *ControlPlane) AnswerKey(t *testing.T) map[types.UID]*PodTimes {
	t.Helper()
	key := answerKey{}
	for _, event := range cp.AuditEvents(t) {
		if event.Stage != auditv1.StageResponseComplete || event.ObjectRef == nil ||
			event.ResponseStatus == nil || event.ResponseStatus.Code >= 300 {
			continue
		}
		switch ref := event.ObjectRef; {
		case ref.Resource == "pods" && ref.Subresource == "binding":
			var binding corev1.Binding
			decode(t, event.RequestObject.Raw, &binding)
			first(&key.of(binding.UID).Bound, event)
		case ref.Resource == "pods" && event.ResponseObject != nil:
			var pod corev1.Pod
			decode(t, event.ResponseObject.Raw, &pod)
			key.readPod(&pod, event)
		case ref.Resource == "events" && event.ResponseObject != nil:
			var said corev1.Event
			decode(t, event.ResponseObject.Raw, &said)
			key.readEvent(&said, event)
		}
	}
	return key
}

// auditLog is the path of the audit log.
func (cp *ControlPlane) auditLog() string { return filepath.Join(cp.dir, "audit.log") }

type answerKey map[types.UID]*PodTimes

// of returns the entry of a pod, new at its first mention.
func (k answerKey) of(uid types.UID) *PodTimes {
	times, known := k[uid]
	if !known {
		times = &PodTimes{}
		k[uid] = times
	}
	return times
}

// readPod takes in a pod as the API server returned it.
func (k answerKey) readPod(pod *corev1.Pod, event auditv1.Event) {
	if pod.UID == "" { // a Status answers some deletions
		return
	}
	times := k.of(pod.UID)
	times.Namespace, times.Name = pod.Namespace, pod.Name
	if event.Verb == "create" {
		first(&times.Created, event)
	}
	running := len(pod.Status.ContainerStatuses) > 0
	for _, container := range pod.Status.ContainerStatuses {
		running = running && container.State.Running != nil
	}
	if running {
		first(&times.Running, event)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			first(&times.Ready, event)
		}
	}
}

// readEvent takes in a core event as the API server returned it.
func (k answerKey) readEvent(said *corev1.Event, event auditv1.Event) {
	if said.InvolvedObject.Kind != "Pod" {
		return
	}
	switch said.Reason {
	case "Pulling":
		first(&k.of(said.InvolvedObject.UID).Pulling, event)
	case "Pulled":
		first(&k.of(said.InvolvedObject.UID).Pulled, event)
	}
}

// first sets a time that no earlier request has set.
func first(at *time.Time, event auditv1.Event) {
	if received := event.RequestReceivedTimestamp.Time; at.IsZero() || received.Before(*at) {
		*at = received
	}
}

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(raw, into))
}
