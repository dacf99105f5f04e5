{{/* A list of names in a pipeline, on one line: (list "a" "b"). */}}
{{- define "llmfleet.names" -}}
[{{ join ", " . }}]
{{- end -}}

{{/*
A pipeline, with what extra.pipelines adds to it at the ends of its lists; nothing if it has no receiver or no exporter:
(dict "root" . "name" "metrics" "receivers" (list …) "processors" (list …) "exporters" (list …)).
*/}}
{{- define "llmfleet.pipeline" -}}
{{- $extra := default dict (get (default dict .root.Values.extra.pipelines) .name) -}}
{{- $receivers := concat .receivers (default list $extra.receivers) -}}
{{- $exporters := concat .exporters (default list $extra.exporters) -}}
{{- if and $receivers $exporters }}
{{ .name }}:
  receivers: {{ include "llmfleet.names" $receivers }}
  processors: {{ include "llmfleet.names" (concat .processors (default list $extra.processors)) }}
  exporters: {{ include "llmfleet.names" $exporters }}
{{- end -}}
{{- end -}}

{{/* Settings of a processor that judges panes: (list . {config}). What comes by way of Prometheus is that much older. */}}
{{- define "llmfleet.judge" -}}
{{- $root := index . 0 -}}
{{- $config := deepCopy (default dict (index . 1)) -}}
{{- if and $root.Values.inputs.federate.enabled (not (hasKey $config "lateness")) -}}
{{- $_ := set $config "lateness" "30s" -}}
{{- end -}}
{{ include "llmfleet.stored" (list $root $config) }}
{{- end -}}

{{/* Settings of a component of ours that keeps what it learned: (list . {config}). The user's count. */}}
{{- define "llmfleet.stored" -}}
{{- $root := index . 0 -}}
{{- $config := deepCopy (default dict (index . 1)) -}}
{{- if and $root.Values.storage.enabled (not (hasKey $config "storage")) -}}
{{- $_ := set $config "storage" "file_storage" -}}
{{- end -}}
{{ toYaml $config }}
{{- end -}}

{{/* How OTLP comes in: from everybody, as inputs.otlp says, or from routers: (list . true). */}}
{{- define "llmfleet.otlpReceiver" -}}
{{- $root := index . 0 -}}
{{- $secured := index . 1 -}}
{{- $bind := $root.Values.bindAddress -}}
protocols:
{{- range $protocol, $port := ternary (dict "grpc" 4317 "http" 4318) (dict "grpc" 4317) $secured }}
  {{ $protocol }}:
    endpoint: {{ printf "%s:%d" $bind $port | quote }}
    {{- if $secured }}
    {{- with $root.Values.inputs.otlp }}
    {{- if .tls.enabled }}
    tls:
      {{- include "llmfleet.serverTLS" .tls | nindent 6 }}
    {{- end }}
    {{- if .auth.secret }}
    auth: {authenticator: bearertokenauth/otlp_in}
    {{- end }}
    {{- end }}
    {{- end }}
{{- end }}
{{- end -}}

{{/* What both roles have in common at their ends. */}}
{{- define "llmfleet.memoryLimiter" -}}
memory_limiter: {check_interval: 1s, limit_percentage: 80, spike_limit_percentage: 20}
{{- end -}}

{{- define "llmfleet.telemetry" -}}
telemetry: # what llmfleet says of itself
  logs: {level: {{ .Values.logLevel }}, encoding: json}
  metrics:
    readers:
      - pull: {exporter: {prometheus: {host: {{ .Values.bindAddress | quote }}, port: 8888}}}
{{- end -}}

{{- define "llmfleet.tenantUsage" -}}
{{- $tenants := .Values.presets.tenants -}}
{{- $config := deepCopy (default dict $tenants.usage) -}}
{{- if $tenants.key.secret -}}
{{- $_ := set $config "tenant" (merge (default dict $config.tenant) (dict "key_env" "TENANT_KEY")) -}}
{{- end -}}
tenant_usage:
  {{- toYaml $config | nindent 2 }}
{{- end -}}

{{/* The configuration of a role: the user's whole one, or what the switches say. */}}
{{- define "llmfleet.config" -}}
{{- if .Values.configOverride -}}
{{ toYaml .Values.configOverride }}
{{- else -}}
{{ include "llmfleet.gateway" . }}
{{- end -}}
{{- end -}}
