{{/* Where a key of a Secret is in the container: (list "secret" "key"). */}}
{{- define "llmfleet.secretPath" -}}
/etc/llmfleet/secrets/{{ index . 0 }}/{{ index . 1 }}
{{- end -}}

{{/* The names of the Secrets that a role's configuration reads from files, as a JSON list: (list . "gateway"). */}}
{{- define "llmfleet.secretNames" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $names := list -}}
{{- with $root.Values -}}
{{- $takesOTLP := and .inputs.otlp.enabled (eq (eq $role "router") .scaleOut.enabled) -}}
{{- if $takesOTLP -}}
{{- if .inputs.otlp.tls.enabled -}}{{- $names = concat $names (list .inputs.otlp.tls.cert.secret .inputs.otlp.tls.clientCA.secret) -}}{{- end -}}
{{- $names = append $names .inputs.otlp.auth.secret -}}
{{- end -}}
{{- if eq $role "gateway" -}}
{{- if and (include "llmfleet.scrapes" $root) .presets.epp.enabled -}}{{- $names = append $names .presets.epp.auth.secret -}}{{- end -}}
{{- if .inputs.federate.enabled -}}
{{- if .inputs.federate.tls.enabled -}}{{- $names = concat $names (list .inputs.federate.tls.ca.secret .inputs.federate.tls.cert.secret) -}}{{- end -}}
{{- $names = append $names .inputs.federate.auth.secret -}}
{{- end -}}
{{- if .outputs.prometheus.enabled -}}
{{- if .outputs.prometheus.tls.enabled -}}{{- $names = concat $names (list .outputs.prometheus.tls.cert.secret .outputs.prometheus.tls.clientCA.secret) -}}{{- end -}}
{{- $names = append $names .outputs.prometheus.auth.secret -}}
{{- end -}}
{{- range list .outputs.remoteWrite .outputs.otlp -}}
{{- if .enabled -}}{{- $names = concat $names (list .tls.ca.secret .tls.cert.secret .auth.secret) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $names | compact | uniq | toJson -}}
{{- end -}}

{{/* TLS of a client: (dict "tls" … "serverName" "the key's name in this component"). */}}
{{- define "llmfleet.clientTLS" -}}
{{- with .tls.ca -}}
{{- if .secret }}
ca_file: {{ include "llmfleet.secretPath" (list .secret .key) }}
{{- end }}
{{- end }}
{{- with .tls.cert.secret }}
cert_file: {{ include "llmfleet.secretPath" (list . "tls.crt") }}
key_file: {{ include "llmfleet.secretPath" (list . "tls.key") }}
{{- end }}
{{- with .tls.serverName }}
{{ $.serverName }}: {{ . }}
{{- end }}
{{- if .tls.insecureSkipVerify }}
insecure_skip_verify: true
{{- end }}
{{- if .tls.insecure }}
insecure: true
{{- end }}
{{- end -}}

{{/* TLS of a server. */}}
{{- define "llmfleet.serverTLS" -}}
cert_file: {{ include "llmfleet.secretPath" (list .cert.secret "tls.crt") }}
key_file: {{ include "llmfleet.secretPath" (list .cert.secret "tls.key") }}
{{- with .clientCA }}
{{- if .secret }}
client_ca_file: {{ include "llmfleet.secretPath" (list .secret .key) }}
client_ca_file_reload: true
{{- end }}
{{- end }}
reload_interval: 1m
{{- end -}}

{{/* An extension that shows, or asks for, the token of a Secret: (dict "auth" … "name" "otlp_in"). */}}
{{- define "llmfleet.authenticator" -}}
bearertokenauth/{{ .name }}:
  scheme: {{ .auth.scheme }}
  filename: {{ include "llmfleet.secretPath" (list .auth.secret .auth.key) }}
  retry_on_failure: {enabled: true, interval: 5s} # a file that is empty or not there yet
{{- end -}}
