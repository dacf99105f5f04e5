{{/* Name and number of each port that a role listens on, as a JSON map: (list . "gateway"). */}}
{{- define "llmfleet.ports" -}}
{{- $root := index . 0 -}}
{{- $gateway := eq (index . 1) "gateway" -}}
{{- $ports := dict "telemetry" 8888 "health" 13133 -}}
{{- with $root.Values -}}
{{- if and $gateway .outputs.prometheus.enabled -}}{{- $_ := set $ports "prometheus" 9464 -}}{{- end -}}
{{- if .inputs.otlp.enabled -}}{{- $_ := set $ports "otlp-grpc" 4317 -}}{{- end -}}
{{- if and .inputs.otlp.enabled (not (and $gateway .scaleOut.enabled)) -}}{{- $_ := set $ports "otlp-http" 4318 -}}{{- end -}}
{{- end -}}
{{- toJson $ports -}}
{{- end -}}

{{/* The pod of a role: (list . "gateway"). */}}
{{- define "llmfleet.pod" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- with $root.Values -}}
metadata:
  labels:
    {{- with .podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- include "llmfleet.labels" $ | nindent 4 }}
  annotations:
    checksum/config: {{ include (ternary "llmfleet.config" "llmfleet.router" (eq $role "gateway")) $root | sha256sum }}
    {{- with .podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "llmfleet.serviceAccountName" $root }}
  automountServiceAccountToken: {{ and (eq $role "gateway") (not (empty (include "llmfleet.asksKubernetes" $root))) }}
  {{- with .image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .terminationGracePeriodSeconds }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: llmfleet
      image: {{ include "llmfleet.image" $root }}
      imagePullPolicy: {{ .image.pullPolicy }}
      args: [--config=/etc/llmfleet/config.yaml]
      {{- include "llmfleet.container" $ | nindent 6 }}
  volumes:
    - name: config
      configMap:
        name: {{ include "llmfleet.fullname" $root }}{{ if eq $role "router" }}-router{{ end }}
    {{- range include "llmfleet.secretNames" $ | fromJsonArray }}
    - name: secret-{{ sha256sum . | trunc 8 }}
      secret: {secretName: {{ . }}, defaultMode: 0440}
    {{- end }}
    {{- with .extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- include "llmfleet.placement" $ | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* The environment; a variable of extraEnv takes the place of one of the chart's. */}}
{{- define "llmfleet.env" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $env := list -}}
{{- with $root.Values -}}
{{- $env = append $env (dict "name" "POD_IP" "valueFrom" (dict "fieldRef" (dict "fieldPath" "status.podIP"))) -}}
{{- $env = append $env (dict "name" "POD_NAMESPACE" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.namespace"))) -}}
{{- $resources := ternary .resources .scaleOut.resources (eq $role "gateway") -}}
{{- with include "llmfleet.gomemlimit" (dig "limits" "memory" "" (default dict $resources)) -}}
{{- $env = append $env (dict "name" "GOMEMLIMIT" "value" .) -}}
{{- end -}}
{{- if .shardScrape.enabled -}}
{{- $env = append $env (dict "name" "SHARD" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.labels['apps.kubernetes.io/pod-index']"))) -}}
{{- end -}}
{{- if and .presets.tenants.enabled .presets.tenants.key.secret (eq (eq $role "router") .scaleOut.enabled) -}}
{{- $env = append $env (dict "name" "TENANT_KEY" "valueFrom" (dict "secretKeyRef" (dict "name" .presets.tenants.key.secret "key" .presets.tenants.key.key))) -}}
{{- end -}}
{{- $mine := list -}}
{{- range .extraEnv -}}{{- $mine = append $mine .name -}}{{- end -}}
{{- $kept := list -}}
{{- range $env -}}{{- if not (has .name $mine) -}}{{- $kept = append $kept . -}}{{- end -}}{{- end -}}
{{- concat $kept (default list .extraEnv) | toYaml -}}
{{- end -}}
{{- end -}}

{{- define "llmfleet.container" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- with $root.Values -}}
{{- $resources := ternary .resources .scaleOut.resources (eq $role "gateway") -}}
env:
  {{- range include "llmfleet.env" $ | fromYamlArray }}
  - {{ toJson . }}
  {{- end }}
ports:
  {{- range $port, $number := include "llmfleet.ports" $ | fromJson }}
  - {name: {{ $port }}, containerPort: {{ $number }}}
  {{- end }}
startupProbe:
  httpGet: {path: /, port: health}
  periodSeconds: 2
  failureThreshold: 60
readinessProbe:
  httpGet: {path: /, port: health}
livenessProbe:
  httpGet: {path: /, port: health}
  periodSeconds: 20
  failureThreshold: 3
resources:
  {{- toYaml $resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: config, mountPath: /etc/llmfleet/config.yaml, subPath: config.yaml, readOnly: true}
  {{- if and .storage.enabled (eq $role "gateway") }}
  - {name: storage, mountPath: /var/lib/llmfleet}
  {{- end }}
  {{- range include "llmfleet.secretNames" $ | fromJsonArray }}
  - {name: secret-{{ sha256sum . | trunc 8 }}, mountPath: /etc/llmfleet/secrets/{{ . }}, readOnly: true}
  {{- end }}
  {{- with .extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "llmfleet.placement" -}}
{{- with (index . 0).Values -}}
{{- with .nodeSelector -}}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{ end -}}
{{- with .tolerations -}}
tolerations:
  {{- toYaml . | nindent 2 }}
{{ end -}}
{{- with .affinity -}}
affinity:
  {{- toYaml . | nindent 2 }}
{{ end -}}
topologySpreadConstraints:
  {{- $selector := dict "labelSelector" (dict "matchLabels" (include "llmfleet.selectorLabels" $ | fromYaml)) }}
  {{- $spread := dict "maxSkew" 1 "whenUnsatisfiable" "ScheduleAnyway" }}
  {{- $nodes := merge (dict "topologyKey" "kubernetes.io/hostname") $spread }}
  {{- $zones := merge (dict "topologyKey" "topology.kubernetes.io/zone") $spread }}
  {{- range default (list $nodes $zones) .topologySpreadConstraints }}
  - {{- merge (deepCopy .) $selector | toYaml | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}
