{{/* Where metrics are sent to, as names with a comma between. */}}
{{- define "llmfleet.pushExporters" -}}
{{- $names := list -}}
{{- with .Values.outputs -}}
{{- if .remoteWrite.enabled -}}{{- $names = append $names "prometheus_remote_write" -}}{{- end -}}
{{- if and .otlp.enabled .otlp.metrics -}}{{- $names = append $names (include "llmfleet.otlpExporter" $) -}}{{- end -}}
{{- end -}}
{{ join "," $names }}
{{- end -}}

{{/* Where derived metrics go. */}}
{{- define "llmfleet.metricExporters" -}}
{{- $names := splitList "," (include "llmfleet.pushExporters" .) | compact -}}
{{- if .Values.outputs.prometheus.enabled -}}{{- $names = prepend $names "prometheus" -}}{{- end -}}
{{ join "," $names }}
{{- end -}}

{{/* Where events go. */}}
{{- define "llmfleet.eventExporters" -}}
{{- $names := list -}}
{{- with .Values.outputs -}}
{{- if .log.enabled -}}{{- $names = append $names "debug/events" -}}{{- end -}}
{{- if and .otlp.enabled .otlp.logs -}}{{- $names = append $names (include "llmfleet.otlpExporter" $) -}}{{- end -}}
{{- end -}}
{{ join "," $names }}
{{- end -}}

{{- define "llmfleet.gatewayPipelines" -}}
{{- $scaled := .Values.scaleOut.enabled -}}
{{- $otlp := or .Values.inputs.otlp.enabled $scaled -}}
{{- $presets := .Values.presets -}}
{{- $outputs := .Values.outputs -}}
{{- $metricExporters := splitList "," (include "llmfleet.metricExporters" .) | compact -}}
{{- $eventExporters := splitList "," (include "llmfleet.eventExporters" .) | compact -}}
{{- $otlpTraces := ternary (list (include "llmfleet.otlpExporter" .)) list (and $outputs.otlp.enabled $outputs.otlp.traces) -}}
{{- $otlpLogs := ternary (list (include "llmfleet.otlpExporter" .)) list (and $outputs.otlp.enabled $outputs.otlp.logs) -}}
{{- $forwards := and .Values.inputs.otlp.forward (not $scaled) -}}

{{- /* metrics: judged one after the other */ -}}
{{- $receivers := list -}}
{{- if include "llmfleet.scrapes" . -}}{{- $receivers = append $receivers "prometheus" -}}{{- end -}}
{{- if .Values.inputs.federate.enabled -}}{{- $receivers = append $receivers "prometheus/federate" -}}{{- end -}}
{{- if $otlp -}}{{- $receivers = append $receivers "otlp" -}}{{- end -}}
{{- if and $presets.tenants.enabled (not $scaled) -}}{{- $receivers = append $receivers "tenant_usage" -}}{{- end -}}
{{- $processors := list "memory_limiter" "fleet_identity" -}}
{{- if $presets.outlier.enabled -}}{{- $processors = append $processors "fleet_outlier" -}}{{- end -}}
{{- if $presets.canary.enabled -}}{{- $processors = append $processors "canary_delta" -}}{{- end -}}
{{- if $presets.tenants.enabled -}}{{- $processors = append $processors "tenant_share" -}}{{- end -}}
{{- if $presets.reduce.enabled -}}{{- $processors = append $processors "filter/derived" -}}{{- end -}}
{{- $exporters := $metricExporters -}}
{{- $tells := and (include "llmfleet.judges" .) $eventExporters -}}
{{- if $tells -}}{{- $exporters = append $exporters "fleet_events" -}}{{- end -}}
{{ include "llmfleet.pipeline" (dict "root" . "name" "metrics" "receivers" $receivers "processors" $processors "exporters" $exporters) }}

{{- /* what Kubernetes tells, and the stages of starts */ -}}
{{- $receivers = list -}}
{{- if include "llmfleet.watches" . -}}{{- $receivers = append $receivers "k8s_fleet" -}}{{- end -}}
{{- if $presets.coldstart.enabled -}}{{- $receivers = append $receivers "cold_start" -}}{{- end -}}
{{- include "llmfleet.pipeline" (dict "root" . "name" "metrics/kubernetes" "receivers" $receivers "processors" (list "memory_limiter") "exporters" $metricExporters) }}

{{- /* what llmfleet says of itself; a Prometheus that scrapes the page scrapes that as well */ -}}
{{- $exporters = splitList "," (include "llmfleet.pushExporters" . | replace "prometheus_remote_write" "prometheus_remote_write/self") | compact -}}
{{- include "llmfleet.pipeline" (dict "root" . "name" "metrics/self" "receivers" (ternary (list "prometheus/self") list (not (empty $exporters))) "processors" list "exporters" $exporters) }}

{{- /* spans: of requests, to be counted; of starts */ -}}
{{- $exporters = list -}}
{{- if and $presets.tenants.enabled (not $scaled) -}}{{- $exporters = append $exporters "tenant_usage" -}}{{- end -}}
{{- if $presets.coldstart.enabled -}}{{- $exporters = append $exporters "cold_start" -}}{{- end -}}
{{- if $forwards -}}{{- $exporters = concat $exporters $otlpTraces -}}{{- end -}}
{{- include "llmfleet.pipeline" (dict "root" . "name" "traces" "receivers" (ternary (list "otlp") list (and $otlp (not $scaled))) "processors" (list "memory_limiter" "fleet_identity") "exporters" $exporters) }}
{{- include "llmfleet.pipeline" (dict "root" . "name" "traces/starts" "receivers" (ternary (list "cold_start") list $presets.coldstart.enabled) "processors" list "exporters" $otlpTraces) }}

{{- /* logs: facts and engines' lines; events; what each tenant took */ -}}
{{- $receivers = ternary (list "otlp") list (and $otlp (not $scaled)) -}}
{{- $exporters = list -}}
{{- if $presets.coldstart.enabled -}}
{{- $receivers = prepend $receivers "k8s_fleet" -}}
{{- $exporters = append $exporters "cold_start" -}}
{{- end -}}
{{- if $forwards -}}{{- $exporters = concat $exporters $otlpLogs -}}{{- end -}}
{{- include "llmfleet.pipeline" (dict "root" . "name" "logs" "receivers" $receivers "processors" (list "memory_limiter" "fleet_identity") "exporters" $exporters) }}
{{- include "llmfleet.pipeline" (dict "root" . "name" "logs/events" "receivers" (ternary (list "fleet_events") list (not (empty $tells))) "processors" list "exporters" $eventExporters) }}
{{- include "llmfleet.pipeline" (dict "root" . "name" "logs/tenants" "receivers" (ternary (list "tenant_usage") list (and $presets.tenants.enabled (not $scaled))) "processors" list "exporters" $otlpLogs) }}

{{- /* pipelines of the user's own */ -}}
{{- $own := list "metrics" "metrics/kubernetes" "metrics/self" "traces" "traces/starts" "logs" "logs/events" "logs/tenants" -}}
{{- range $name, $pipeline := .Values.extra.pipelines }}
{{- if not (has $name $own) }}
{{ $name }}:
  {{- toYaml $pipeline | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}
