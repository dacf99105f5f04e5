{{/*
Rules of the API groups that a role may list and watch: (dict "groups" {group: [resources]} "ignored" [resources]).
*/}}
{{- define "llmfleet.rules" -}}
{{- $ignored := .ignored -}}
{{- range $group, $resources := .groups }}
{{- $watched := list -}}
{{- range $resources }}{{ if not (has . $ignored) }}{{ $watched = append $watched . }}{{ end }}{{ end -}}
{{- with $watched }}
- apiGroups: [{{ $group | quote }}]
  resources: [{{ join ", " . }}]
  verbs: [list, watch]
{{- end }}
{{- end }}
{{- end -}}

{{- define "llmfleet.ignoredResources" -}}
{{- if include "llmfleet.watches" . -}}
{{- dig "ignore_resources" list (fromYaml (include "llmfleet.k8sFleet" .)) | toJson -}}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{/* What is read in the namespaces of engines. */}}
{{- define "llmfleet.namespacedRules" -}}
{{- $groups := dict -}}
{{- if include "llmfleet.asksKubernetes" . -}}{{- $_ := set $groups "" (list "pods") -}}{{- end -}}
{{- if include "llmfleet.watches" . -}}
{{- $groups = dict
  "" (list "pods" "events")
  "apps" (list "deployments" "replicasets" "statefulsets")
  "autoscaling" (list "horizontalpodautoscalers")
  "resource.k8s.io" (list "resourceclaims")
  "leaderworkerset.x-k8s.io" (list "leaderworkersets")
  "inference.networking.k8s.io" (list "inferencepools")
  "inference.networking.x-k8s.io" (list "inferencepools")
-}}
{{- end -}}
{{- include "llmfleet.rules" (dict "groups" $groups "ignored" (include "llmfleet.ignoredResources" . | fromJsonArray)) -}}
{{- end -}}

{{/* What is in no namespace. */}}
{{- define "llmfleet.clusterRules" -}}
{{- $groups := dict -}}
{{- if and (include "llmfleet.scrapes" .) .Values.presets.engines.enabled .Values.presets.engines.nodeLabels -}}
{{- $_ := set $groups "" (list "nodes") -}}
{{- end -}}
{{- if include "llmfleet.watches" . -}}
{{- $groups = dict
  "" (list "nodes")
  "resource.k8s.io" (list "resourceslices" "deviceclasses" "devicetaintrules")
  "karpenter.sh" (list "nodeclaims")
-}}
{{- end -}}
{{- include "llmfleet.rules" (dict "groups" $groups "ignored" (include "llmfleet.ignoredResources" . | fromJsonArray)) -}}
{{- end -}}

{{/* A role and who has it: (dict "root" . "kind" "Role" "name" … "namespace" … "rules" …). */}}
{{- define "llmfleet.role" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ quote .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "llmfleet.labels" (list .root "gateway") | nindent 4 }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ quote .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "llmfleet.labels" (list .root "gateway") | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ .kind }}, name: {{ quote .name }}}
subjects:
  - {kind: ServiceAccount, name: {{ include "llmfleet.serviceAccountName" .root }}, namespace: {{ .root.Release.Namespace }}}
{{ end -}}
