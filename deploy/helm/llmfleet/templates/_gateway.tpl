{{/* The configuration of a gateway, one section after the other; extra.* comes last in each. */}}
{{- define "llmfleet.gateway" -}}
extensions:
  {{- include "llmfleet.gatewayExtensions" . | nindent 2 }}
receivers:
  {{- include "llmfleet.gatewayReceivers" . | trim | nindent 2 }}
processors:
  {{- include "llmfleet.gatewayProcessors" . | trim | nindent 2 }}
{{- with include "llmfleet.gatewayConnectors" . | trim }}
connectors:
  {{- . | nindent 2 }}
{{- end }}
exporters:
  {{- include "llmfleet.gatewayExporters" . | trim | nindent 2 }}
service:
  extensions: {{ include "llmfleet.names" (keys (fromYaml (include "llmfleet.gatewayExtensions" .)) | sortAlpha) }}
  pipelines:
    {{- include "llmfleet.gatewayPipelines" . | trim | nindent 4 }}
  {{- include "llmfleet.telemetry" . | nindent 2 }}
{{- end -}}

{{- define "llmfleet.gatewayExtensions" -}}
{{- with .Values -}}
health_check: {endpoint: {{ printf "%s:13133" .bindAddress | quote }}}
{{- if .storage.enabled }}
file_storage: {directory: /var/lib/llmfleet, create_directory: true}
{{- end }}
{{- if and .inputs.otlp.enabled .inputs.otlp.auth.secret (not .scaleOut.enabled) }}
{{ include "llmfleet.authenticator" (dict "auth" .inputs.otlp.auth "name" "otlp_in") }}
{{- end }}
{{- if and .outputs.prometheus.enabled .outputs.prometheus.auth.secret }}
{{ include "llmfleet.authenticator" (dict "auth" .outputs.prometheus.auth "name" "prometheus") }}
{{- end }}
{{- if and .outputs.remoteWrite.enabled .outputs.remoteWrite.auth.secret }}
{{ include "llmfleet.authenticator" (dict "auth" .outputs.remoteWrite.auth "name" "remote_write") }}
{{- end }}
{{- if and .outputs.otlp.enabled .outputs.otlp.auth.secret }}
{{ include "llmfleet.authenticator" (dict "auth" .outputs.otlp.auth "name" "otlp_out") }}
{{- end }}
{{- with .extra.extensions }}
{{ toYaml . }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "llmfleet.gatewayReceivers" -}}
{{- if include "llmfleet.scrapes" . }}
prometheus:
  config:
    scrape_configs:
      {{- include "llmfleet.scrapeJobs" . | trim | nindent 6 }}
{{- end }}
{{- if .Values.inputs.federate.enabled }}
prometheus/federate:
  config:
    scrape_configs:
      {{- include "llmfleet.federateJob" . | nindent 6 }}
{{- end }}
{{- if include "llmfleet.pushExporters" . }}
prometheus/self: # what llmfleet says of itself, for those who scrape nothing
  config:
    scrape_configs:
      - job_name: llmfleet
        scrape_interval: 30s
        # By the pod's name, which outlives its address.
        static_configs: [{targets: [{{ printf "%s:8888" .Values.bindAddress | quote }}], labels: {instance: "${env:HOSTNAME}"}}]
{{- end }}
{{- if or .Values.inputs.otlp.enabled .Values.scaleOut.enabled }}
otlp:
  {{- include "llmfleet.otlpReceiver" (list . (not .Values.scaleOut.enabled)) | nindent 2 }}
{{- end }}
{{- if include "llmfleet.watches" . }}
k8s_fleet:
  {{- include "llmfleet.k8sFleet" . | nindent 2 }}
{{- end }}
{{- with .Values.extra.receivers }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* One of several gateways watches; of capacity alone, events say nothing. */}}
{{- define "llmfleet.k8sFleet" -}}
{{- $election := dict "enabled" false -}}
{{- if gt (int .Values.replicas) 1 }}{{ $election = dict "lease_name" (include "llmfleet.fullname" .) }}{{ end -}}
{{- $config := dict "leader_election" $election -}}
{{- with .Values.namespaces }}{{ $_ := set $config "namespaces" . }}{{ end -}}
{{- if not .Values.presets.coldstart.enabled }}{{ $_ := set $config "ignore_resources" (list "events") }}{{ end -}}
{{ include "llmfleet.stored" (list . (mergeOverwrite $config (deepCopy (default dict .Values.presets.kubernetes.config)))) }}
{{- end -}}

{{- define "llmfleet.federateJob" -}}
{{- with .Values.inputs.federate -}}
- job_name: federate
  scrape_interval: {{ .interval }}
  scrape_timeout: {{ .interval }}
  honor_labels: true # instance, namespace and pod are the engine's
  track_timestamps_staleness: true
  {{- $url := urlParse .url }}
  scheme: {{ $url.scheme }}
  metrics_path: {{ printf "%s/federate" (trimSuffix "/" $url.path) }}
  static_configs: [{targets: [{{ quote $url.host }}]}]
  params:
    match[]:
      - '{__name__=~"(ray_|kserve_)?(vllm|sglang|trtllm|dynamo|nv_trt_llm|lmdeploy|tgi|llamacpp)[:_].+",__name__!~".+_created"}'
      - '{__name__=~"up|process_start_time_seconds"}'
      {{- if $.Values.presets.gpu.enabled }}
      - '{__name__=~"DCGM_FI_.+"}'
      {{- end }}
      {{- if $.Values.presets.epp.enabled }}
      - '{__name__=~"(inference_(extension|pool|objective|model)|llm_d)_.+"}'
      {{- end }}
      {{- range .match }}
      - {{ toJson . }}
      {{- end }}
  {{- if .auth.secret }}
  {{- if eq .auth.scheme "Basic" }}
  basic_auth: {username: {{ quote .auth.username }}, password_file: {{ include "llmfleet.secretPath" (list .auth.secret .auth.key) }}}
  {{- else }}
  authorization: {type: {{ .auth.scheme }}, credentials_file: {{ include "llmfleet.secretPath" (list .auth.secret .auth.key) }}}
  {{- end }}
  {{- end }}
  {{- if .tls.enabled }}
  tls_config:
    {{- include "llmfleet.clientTLS" (dict "tls" .tls "serverName" "server_name") | trim | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "llmfleet.gatewayProcessors" -}}
{{- with .Values.presets -}}
{{ include "llmfleet.memoryLimiter" $ }}
fleet_identity:
  {{- include "llmfleet.identity" $ | nindent 2 }}
{{- if .outlier.enabled }}
fleet_outlier:
  {{- include "llmfleet.judge" (list $ .outlier.config) | nindent 2 }}
{{- end }}
{{- if .canary.enabled }}
canary_delta:
  {{- include "llmfleet.judge" (list $ .canary.config) | nindent 2 }}
{{- end }}
{{- if .tenants.enabled }}
tenant_share:
  {{- include "llmfleet.judge" (list $ .tenants.share) | nindent 2 }}
{{- end }}
{{- if .reduce.enabled }}
filter/derived: # the engines' own metrics end here
  metrics:
    metric: ['not IsMatch(name, "^llmfleet[.]")']
{{- end }}
{{- end }}
{{- with .Values.extra.processors }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Behind routers, a replica that moved to another gateway is soon forgotten. */}}
{{- define "llmfleet.identity" -}}
{{- $config := ternary (dict "forget_after" "10m") dict .Values.scaleOut.enabled -}}
{{ toYaml (merge (deepCopy (default dict .Values.presets.identity.config)) $config) }}
{{- end -}}

{{- define "llmfleet.gatewayConnectors" -}}
{{- if and .Values.presets.tenants.enabled (not .Values.scaleOut.enabled) }}
{{ include "llmfleet.tenantUsage" . }}
{{- end }}
{{- if .Values.presets.coldstart.enabled }}
cold_start:
  {{- include "llmfleet.stored" (list . .Values.presets.coldstart.config) | nindent 2 }}
{{- end }}
{{- if and (include "llmfleet.judges" .) (include "llmfleet.eventExporters" .) }}
fleet_events:
  {{- include "llmfleet.stored" (list . dict) | nindent 2 }}
{{- end }}
{{- with .Values.extra.connectors }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "llmfleet.gatewayExporters" -}}
{{- $bind := .Values.bindAddress -}}
{{- with .Values.outputs -}}
{{- if .prometheus.enabled }}
prometheus:
  endpoint: {{ printf "%s:9464" $bind | quote }}
  without_scope_info: true
  send_timestamps: false
  enable_open_metrics: true # exemplars
  {{- if .prometheus.tls.enabled }}
  tls:
    {{- include "llmfleet.serverTLS" .prometheus.tls | nindent 4 }}
  {{- end }}
  {{- if .prometheus.auth.secret }}
  auth: {authenticator: bearertokenauth/prometheus}
  {{- end }}
{{- end }}
{{- if .remoteWrite.enabled }}
{{- range $name, $suffixes := dict "prometheus_remote_write" true "prometheus_remote_write/self" false }}
{{ $name }}:
  {{- include "llmfleet.remoteWrite" $ | trim | nindent 2 }}
  {{- if not $suffixes }}
  add_metric_suffixes: false # what llmfleet says of itself has the names of its page
  {{- end }}
{{- end }}
{{- end }}
{{- if .otlp.enabled }}
{{ include "llmfleet.otlpExporter" $ }}:
  endpoint: {{ quote .otlp.endpoint }}
  {{- with .otlp.headers }}
  headers: {{ toJson . }}
  {{- end }}
  {{- with include "llmfleet.clientTLS" (dict "tls" .otlp.tls "serverName" "server_name_override") | trim }}
  tls:
    {{- . | nindent 4 }}
  {{- end }}
  {{- if .otlp.auth.secret }}
  auth: {authenticator: bearertokenauth/otlp_out}
  {{- end }}
  sending_queue: {num_consumers: 1} # what is told later arrives later
{{- end }}
{{- if and .log.enabled (include "llmfleet.judges" $) }}
debug/events: {verbosity: normal} # a line for each
{{- end }}
{{- end }}
{{- with .Values.extra.exporters }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "llmfleet.remoteWrite" -}}
{{- with .Values.outputs.remoteWrite -}}
http:
  endpoint: {{ quote .endpoint }}
  {{- with .headers }}
  headers: {{ toJson . }}
  {{- end }}
  {{- with include "llmfleet.clientTLS" (dict "tls" .tls "serverName" "server_name_override") | trim }}
  tls:
    {{- . | nindent 4 }}
  {{- end }}
  {{- if .auth.secret }}
  auth: {authenticator: bearertokenauth/remote_write}
  {{- end }}
target_info: {enabled: false}
disable_scope_info: true
max_batch_request_parallelism: 1 # the samples of a series have to arrive in order
remote_write_queue: {num_consumers: 1}
{{- end -}}
{{- end -}}

{{- define "llmfleet.otlpExporter" -}}
{{ ternary "otlp_grpc" "otlp_http" (eq .Values.outputs.otlp.protocol "grpc") }}
{{- end -}}
