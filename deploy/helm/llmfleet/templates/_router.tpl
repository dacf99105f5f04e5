{{/* The configuration of a router: what comes by OTLP goes to the gateway that judges its model. */}}
{{- define "llmfleet.router" -}}
{{- $name := include "llmfleet.fullname" . -}}
{{- with .Values -}}
extensions:
  health_check: {endpoint: {{ printf "%s:13133" .bindAddress | quote }}}
  {{- if .inputs.otlp.auth.secret }}
  {{- include "llmfleet.authenticator" (dict "auth" .inputs.otlp.auth "name" "otlp_in") | nindent 2 }}
  {{- end }}
receivers:
  otlp:
    {{- include "llmfleet.otlpReceiver" (list $ true) | nindent 4 }}
processors:
  {{ include "llmfleet.memoryLimiter" $ }}
  fleet_identity: # puts model_name on the resource, and leaves all else to the gateways
    {{- $quiet := dict "enabled" false }}
    {{- $metrics := dict "llmfleet.replica.variant_changes" $quiet "llmfleet.identity.sources" $quiet "llmfleet.component.signals" $quiet }}
    {{- merge (dict "stamps" (list "model_name") "metrics" $metrics) (deepCopy (default dict .presets.identity.config)) | toYaml | nindent 4 }}
{{- if .presets.tenants.enabled }}
connectors:
  {{- include "llmfleet.tenantUsage" $ | nindent 2 }}
{{- end }}
exporters:
  load_balancing:
    routing_key: {{ .scaleOut.routingKey }}
    routing_attributes: {{ toJson .scaleOut.routingAttributes }}
    protocol:
      otlp:
        tls: {insecure: true}
        timeout: 5s
        # One consumer keeps pages in order; while a gateway restarts, what is its waits here.
        sending_queue: {num_consumers: 1, queue_size: 1000}
        retry_on_failure: {initial_interval: 1s, max_interval: 5s, max_elapsed_time: 5m}
    # By name, so that a gateway that restarts has the models that it had.
    resolver:
      static:
        hostnames:
          {{- range $i := until (int .replicas) }}
          - {{ printf "%s-%d.%s-headless.%s.svc:4317" $name $i $name $.Release.Namespace }}
          {{- end }}
service:
  extensions: [health_check{{ if .inputs.otlp.auth.secret }}, bearertokenauth/otlp_in{{ end }}]
  pipelines:
    metrics: {receivers: [otlp], processors: [memory_limiter, fleet_identity], exporters: [load_balancing]}
    {{- if .presets.tenants.enabled }}
    metrics/tenants: {receivers: [tenant_usage], processors: [], exporters: [load_balancing]}
    traces: {receivers: [otlp], processors: [memory_limiter, fleet_identity], exporters: [tenant_usage]}
    {{- end }}
  {{- include "llmfleet.telemetry" $ | nindent 2 }}
{{- end -}}
{{- end -}}
