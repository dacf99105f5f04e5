{{/* The name of the chart's objects: the release's, with the chart's if it does not hold it already. */}}
{{- define "llmfleet.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods of a role: (list . "gateway"). */}}
{{- define "llmfleet.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of every object of a role: (list . "gateway"). */}}
{{- define "llmfleet.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{ include "llmfleet.selectorLabels" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- end -}}

{{- define "llmfleet.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "llmfleet.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "llmfleet.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A quantity of bytes in MiB, where it is in Ti, Gi or Mi; else as it is written. */}}
{{- define "llmfleet.mebibytes" -}}
{{- $quantity := toString . -}}
{{- $factors := dict "Ti" 1048576 "Gi" 1024 "Mi" 1 -}}
{{- $unit := regexFind "[A-Za-z]*$" $quantity -}}
{{- if hasKey $factors $unit -}}
{{ mulf (trimSuffix $unit $quantity | float64) (get $factors $unit) }}
{{- else -}}
{{ $quantity }}
{{- end -}}
{{- end -}}

{{/* 80 % of a memory limit such as 1Gi, as GOMEMLIMIT has it; nothing without a limit. */}}
{{- define "llmfleet.gomemlimit" -}}
{{- $limit := toString . -}}
{{- if regexMatch "^[0-9.]+[TGM]i$" $limit -}}
{{ mulf (include "llmfleet.mebibytes" $limit | float64) 0.8 | floor | int64 }}MiB
{{- else if $limit -}}
{{- fail (printf "resources.limits.memory is %q: write it in Mi, Gi or Ti, so that GOMEMLIMIT can be set to 80 %% of it" $limit) -}}
{{- end -}}
{{- end -}}

{{/* What is on, each "true" or nothing. */}}
{{- define "llmfleet.scrapes" -}}
{{- with .Values }}{{ if and .inputs.scrape.enabled (or .presets.engines.enabled .presets.gpu.enabled .presets.epp.enabled) }}true{{ end }}{{ end -}}
{{- end -}}
{{- define "llmfleet.watches" -}}
{{- with .Values.presets }}{{ if or .coldstart.enabled .capacity.enabled }}true{{ end }}{{ end -}}
{{- end -}}
{{- define "llmfleet.judges" -}}
{{- with .Values.presets }}{{ if or .outlier.enabled .canary.enabled .tenants.enabled }}true{{ end }}{{ end -}}
{{- end -}}
{{- define "llmfleet.asksKubernetes" -}}
{{- if or (include "llmfleet.scrapes" .) (include "llmfleet.watches" .) }}true{{ end -}}
{{- end -}}
