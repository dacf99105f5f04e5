{{/* How Prometheus calls a label of a pod. */}}
{{- define "llmfleet.podLabel" -}}
__meta_kubernetes_pod_label_{{ regexReplaceAll "[^a-zA-Z0-9_]" . "_" }}
{{- end -}}

{{/*
One scrape job: (dict "root" . "job" "engines" "find" {name: {labels, port, path}} "except" {label: pattern} …).
Kubernetes tells of a pod once for each of its ports. Each finder notes `port;path` in __tmp_page if nobody did before it, or
`none` where it looks for another port of the pod; so all that is kept of a pod has one address, and Prometheus asks it once.
*/}}
{{- define "llmfleet.scrapeJob" -}}
{{- $root := .root -}}
{{- $scrape := $root.Values.inputs.scrape -}}
- job_name: {{ .job }}
  scrape_interval: {{ $scrape.interval }}
  scrape_timeout: {{ $scrape.interval }}
  {{- if .honorLabels }}
  honor_labels: true # pod and namespace of the page are those that hold the GPU
  {{- end }}
  {{- with .auth }}
  {{- if .secret }}
  authorization: {type: {{ .scheme }}, credentials_file: {{ include "llmfleet.secretPath" (list .secret .key) }}}
  {{- end }}
  {{- end }}
  kubernetes_sd_configs:
    - role: pod
      {{- if .nodeLabels }}
      attach_metadata: {node: true}
      {{- end }}
      {{- with $root.Values.namespaces }}
      namespaces: {names: {{ toJson . }}}
      {{- end }}
      {{- with $scrape.selector }}
      selectors: [{role: pod, label: {{ quote . }}}]
      {{- end }}
  relabel_configs:
    - {source_labels: [__meta_kubernetes_pod_phase], regex: Running, action: keep}
    - {source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_name], regex: {{ default $root.Chart.Name $root.Values.nameOverride }}, action: drop}
    {{- range $label, $value := .except }}
    - source_labels: [{{ include "llmfleet.podLabel" $label }}]
      regex: {{ toJson $value }}
      action: drop
    {{- end }}
    {{- if .replicas }}
    - {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_scrape], regex: "false", action: drop}
    {{- end }}
    {{- if .annotated }}
    - source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_scrape, __meta_kubernetes_pod_annotation_prometheus_io_port]
      regex: true;(\d+)
      target_label: __tmp_page
      replacement: $$1;/metrics
    {{- end }}
    {{- range $name, $finder := .find }}
    {{- range $label, $value := $finder.labels }}
    {{- $meta := include "llmfleet.podLabel" $label }}
    {{- if kindIs "string" $finder.port }}
    - source_labels: [__meta_kubernetes_pod_container_port_number, __tmp_page, {{ $meta }}, __meta_kubernetes_pod_container_port_name]
      regex: {{ printf "(\\d+);;(?:%s);(?:%s)" $value $finder.port | toJson }}
      target_label: __tmp_page
      replacement: $$1;{{ $finder.path }}
    - source_labels: [__tmp_page, {{ $meta }}] # other ports of the same pod: no later finder's
      regex: {{ printf ";(?:%s)" $value | toJson }}
      target_label: __tmp_page
      replacement: none
    {{- else }}
    - source_labels: [__tmp_page, {{ $meta }}]
      regex: {{ printf ";(?:%s)" $value | toJson }}
      target_label: __tmp_page
      replacement: {{ printf "%d;%s" (int $finder.port) $finder.path | quote }}
    {{- end }}
    {{- end }}
    {{- end }}
    {{- if .replicas }}
    - source_labels: [__tmp_page, __meta_kubernetes_pod_annotation_prometheus_io_port]
      regex: none;(\d+)
      target_label: __tmp_page
      replacement: $$1;/metrics
    {{- end }}
    - {source_labels: [__tmp_page], regex: '\d+;.+', action: keep}
    {{- if .replicas }}
    # What the pod says of itself counts.
    - source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_port, __tmp_page]
      regex: (\d+);\d+;(.+)
      target_label: __tmp_page
      replacement: $$1;$$2
    - source_labels: [__tmp_page, __meta_kubernetes_pod_annotation_prometheus_io_path]
      regex: (\d+);[^;]+;(/.*)
      target_label: __tmp_page
      replacement: $$1;$$2
    {{- end }}
    - source_labels: [__meta_kubernetes_pod_ip, __tmp_page]
      regex: ([^:]+);(\d+);.+
      target_label: __address__
      replacement: $$1:$$2
    - source_labels: [__meta_kubernetes_pod_ip, __tmp_page] # IPv6
      regex: (.*:.*);(\d+);.+
      target_label: __address__
      replacement: "[$$1]:$$2"
    - source_labels: [__tmp_page]
      regex: \d+;(.+)
      target_label: __metrics_path__
    {{- if .replicas }}
    - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
    - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
    # Model, role and version, for fleet_identity.
    - action: labelmap
      regex: __meta_kubernetes_pod_label_(llm_d_ai_.+|inference_networking_k8s_io_engine_type|(?:rollouts_)?pod_template_hash|controller_revision_hash|leaderworkerset_.+|ray_io_cluster)
    - action: labelmap
      regex: __meta_kubernetes_pod_annotation_(model_revision)
    {{- if .nodeLabels }}
    - action: labelmap
      regex: __meta_kubernetes_node_label_(nvidia_com_gpu_product|amd_com_gpu_product_name|cloud_google_com_gke_accelerator|karpenter_k8s_aws_instance_gpu_name)
    {{- end }}
    {{- with $root.Values.shardScrape }}
    {{- if .enabled }}
    # Only the models of this gateway.
    - source_labels: [{{ include "llmfleet.podLabel" .modelLabel }}]
      action: hashmod
      modulus: {{ $root.Values.replicas }}
      target_label: __tmp_shard
    - {source_labels: [__tmp_shard], regex: "(?:${env:SHARD})", action: keep}
    {{- end }}
    {{- end }}
    {{- end }}
{{- end -}}

{{/* All jobs that find pods. */}}
{{- define "llmfleet.scrapeJobs" -}}
{{- with .Values.presets -}}
{{- if .engines.enabled -}}
{{ include "llmfleet.scrapeJob" (dict "root" $ "job" "engines" "find" .engines.find "except" .engines.except "annotated" .engines.annotated "nodeLabels" .engines.nodeLabels "replicas" true) }}
{{ end -}}
{{- if .gpu.enabled -}}
{{ include "llmfleet.scrapeJob" (dict "root" $ "job" "gpu" "find" .gpu.find "honorLabels" true) }}
{{ end -}}
{{- if .epp.enabled -}}
{{ include "llmfleet.scrapeJob" (dict "root" $ "job" "epp" "find" .epp.find "auth" .epp.auth) }}
{{ end -}}
{{- end -}}
{{- end -}}
