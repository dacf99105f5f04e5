{{/* Combinations that cannot work, each refused with what to set instead. */}}
{{- define "llmfleet.validate" -}}
{{- with .Values -}}
{{- $replicas := int .replicas -}}
{{- if not (or .outputs.prometheus.enabled .outputs.remoteWrite.enabled .outputs.otlp.enabled .extra.exporters .configOverride) -}}
{{- fail "nothing comes out: set outputs.prometheus.enabled, outputs.remoteWrite.enabled or outputs.otlp.enabled to true" -}}
{{- end -}}
{{- if and (include "llmfleet.judges" $) (not (or (include "llmfleet.metricExporters" $) .extra.pipelines .configOverride)) -}}
{{- fail "what is found out goes nowhere: set outputs.prometheus.enabled, outputs.remoteWrite.enabled or outputs.otlp.metrics to true" -}}
{{- end -}}
{{- if and .rbac.create (not .serviceAccount.create) (not .serviceAccount.name) (include "llmfleet.asksKubernetes" $) -}}
{{- fail "roles would go to every pod of the namespace, by its account default: set serviceAccount.name, or serviceAccount.create to true, or rbac.create to false" -}}
{{- end -}}
{{- if not (or (include "llmfleet.scrapes" $) .inputs.federate.enabled .inputs.otlp.enabled .scaleOut.enabled (include "llmfleet.watches" $) .extra.receivers .configOverride) -}}
{{- fail "nothing comes in: set inputs.scrape.enabled with presets.engines.enabled, inputs.federate.enabled or inputs.otlp.enabled to true" -}}
{{- end -}}
{{- if and .scaleOut.enabled .shardScrape.enabled -}}
{{- fail "scaleOut and shardScrape are two ways to the same end: set one of them, scaleOut.enabled or shardScrape.enabled" -}}
{{- end -}}
{{- if and (gt $replicas 1) (not .scaleOut.enabled) (not .shardScrape.enabled) -}}
{{- fail (printf "replicas is %d, and each gateway would judge every fleet: set scaleOut.enabled or shardScrape.enabled, or replicas to 1" $replicas) -}}
{{- end -}}
{{- if .scaleOut.enabled -}}
{{- if include "llmfleet.scrapes" $ -}}
{{- fail "scaleOut gets its metrics by OTLP, and each gateway would scrape every engine besides: set inputs.scrape.enabled to false and let agents send to the routers, or use shardScrape" -}}
{{- end -}}
{{- if not .inputs.otlp.enabled -}}
{{- fail "scaleOut gets its metrics by OTLP: set inputs.otlp.enabled to true" -}}
{{- end -}}
{{- if .inputs.otlp.forward -}}
{{- fail "the routers of scaleOut pass on metrics and nothing else: set inputs.otlp.forward to false, and let senders send spans and logs to their store themselves" -}}
{{- end -}}
{{- if and (not .networkPolicy.enabled) (or .inputs.otlp.tls.enabled .inputs.otlp.auth.secret) -}}
{{- fail "inputs.otlp.tls and auth guard the routers, and without a policy everybody could send past them to the gateways: set networkPolicy.enabled to true" -}}
{{- end -}}
{{- if .presets.coldstart.enabled -}}
{{- fail "what is told of one start has to meet in one gateway, and routers send on no logs: set presets.coldstart.enabled to false here, and install a second release with that preset and without scaleOut" -}}
{{- end -}}
{{- if and .outputs.prometheus.enabled (not .presets.reduce.enabled) -}}
{{- fail "with scaleOut, a gateway that lost a model would go on serving the last values of its engines beside those of the new one: set presets.reduce.enabled to true" -}}
{{- end -}}
{{- if .configOverride -}}
{{- fail "configOverride replaces the configuration of one role, and scaleOut has two: set scaleOut.enabled to false, and install one release a role" -}}
{{- end -}}
{{- if ne .scaleOut.routingKey "attributes" -}}
{{- fail (printf "scaleOut.routingKey is %q, by which the replicas of one fleet reach different gateways, and none of them sees the fleet: set it to attributes" .scaleOut.routingKey) -}}
{{- end -}}
{{- end -}}
{{- if .shardScrape.enabled -}}
{{- if not (include "llmfleet.scrapes" $) -}}
{{- fail "shardScrape shares out what is scraped: set inputs.scrape.enabled and presets.engines.enabled to true, or use scaleOut" -}}
{{- end -}}
{{- if .inputs.otlp.enabled -}}
{{- fail "what comes by OTLP reaches any gateway, and not the one that scrapes its model: set inputs.otlp.enabled to false, or use scaleOut instead of shardScrape" -}}
{{- end -}}
{{- end -}}
{{- if and .inputs.federate.enabled (gt $replicas 1) -}}
{{- fail "each of several gateways would take every series from Prometheus: set inputs.federate.enabled to false, or replicas to 1" -}}
{{- end -}}
{{- if and .presets.coldstart.enabled (gt $replicas 1) -}}
{{- fail "what is told of one start has to meet in one gateway: set presets.coldstart.enabled to false here, and install a second release with replicas 1 and that preset alone" -}}
{{- end -}}
{{- include "llmfleet.validateInputs" $ -}}
{{- include "llmfleet.validateOutputs" $ -}}
{{- include "llmfleet.validateExtra" $ -}}
{{- include "llmfleet.validateUpgrade" $ -}}
{{- end -}}
{{- end -}}

{{/* What Kubernetes lets nobody change in a StatefulSet, said before anything else is changed. */}}
{{- define "llmfleet.validateUpgrade" -}}
{{- $name := include "llmfleet.fullname" . -}}
{{- with lookup "apps/v1" "StatefulSet" .Release.Namespace $name -}}
{{- $claims := default list .spec.volumeClaimTemplates -}}
{{- $storage := $.Values.storage -}}
{{- $same := eq (not (empty $claims)) $storage.enabled -}}
{{- range $claims -}}
{{- $class := ne $storage.className (default "" .spec.storageClassName) -}}
{{- if or $class (ne (include "llmfleet.mebibytes" $storage.size) (include "llmfleet.mebibytes" .spec.resources.requests.storage)) -}}{{- $same = false -}}{{- end -}}
{{- end -}}
{{- if not $same -}}
{{- fail (printf "storage of a StatefulSet cannot be changed: `kubectl --namespace %s delete statefulset %s` first, then upgrade; what was learned stays on its claims, for whose size and class see Upgrade in docs/operations.md" $.Release.Namespace $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "llmfleet.validateInputs" -}}
{{- with .Values -}}
{{- if and .inputs.federate.enabled (not .inputs.federate.url) -}}
{{- fail "inputs.federate.url is empty: name your Prometheus, as http://prometheus-operated.monitoring.svc:9090" -}}
{{- end -}}
{{- if contains "@" .inputs.federate.url -}}
{{- fail "inputs.federate.url holds a user or a password: put the password into a Secret, and set inputs.federate.auth" -}}
{{- end -}}
{{- if and .inputs.federate.enabled .inputs.scrape.enabled .presets.engines.enabled (not .configOverride) -}}
{{- fail "engines would be read twice, from their pages and from Prometheus: set inputs.scrape.enabled or inputs.federate.enabled to false" -}}
{{- end -}}
{{- if and (eq .inputs.federate.auth.scheme "Basic") .inputs.federate.auth.secret (not .inputs.federate.auth.username) -}}
{{- fail "inputs.federate.auth.username is empty, and scheme is Basic: set it, with the password in the Secret" -}}
{{- end -}}
{{- if and .inputs.otlp.tls.enabled (not .inputs.otlp.tls.cert.secret) -}}
{{- fail "inputs.otlp.tls.cert.secret is empty: name a Secret of type kubernetes.io/tls, or set inputs.otlp.tls.enabled to false" -}}
{{- end -}}
{{- if and .inputs.otlp.enabled .inputs.otlp.auth.secret (not .inputs.otlp.tls.enabled) -}}
{{- fail "inputs.otlp.auth asks for a token, which senders would show in clear and gRPC does not send: set inputs.otlp.tls.enabled to true" -}}
{{- end -}}
{{- if and .inputs.otlp.forward (not .outputs.otlp.enabled) -}}
{{- fail "inputs.otlp.forward has nowhere to forward to: set outputs.otlp.enabled to true, or inputs.otlp.forward to false" -}}
{{- end -}}
{{- with .presets.tenants -}}
{{- if .enabled -}}
{{- if not (or $.Values.inputs.otlp.enabled $.Values.extra.receivers) -}}
{{- fail "presets.tenants counts the spans of gateways, which come by OTLP: set inputs.otlp.enabled to true" -}}
{{- end -}}
{{- if and (not .key.secret) (eq (dig "tenant" "id" "hash" (default dict .usage)) "hash") (not (dig "tenant" "key_file" "" (default dict .usage))) -}}
{{- fail "presets.tenants hashes names with a key: keep one in a Secret and set presets.tenants.key.secret, or set presets.tenants.usage.tenant.id to plain, and tenant.from beside it, if names may be seen" -}}
{{- end -}}
{{- if and (eq (dig "tenant" "id" "hash" (default dict .usage)) "plain") (not (dig "tenant" "from" list (default dict .usage))) -}}
{{- fail "presets.tenants.usage.tenant.id is plain, and shows whatever an attribute holds: name the attributes in presets.tenants.usage.tenant.from, as [tenant.id]" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "llmfleet.validateOutputs" -}}
{{- with .Values.outputs -}}
{{- if and .prometheus.tls.enabled (not .prometheus.tls.cert.secret) -}}
{{- fail "outputs.prometheus.tls.cert.secret is empty: name a Secret of type kubernetes.io/tls, or set outputs.prometheus.tls.enabled to false" -}}
{{- end -}}
{{- if and .prometheus.podMonitor.enabled .prometheus.serviceMonitor.enabled -}}
{{- fail "Prometheus would scrape each gateway twice: set one of outputs.prometheus.podMonitor.enabled and outputs.prometheus.serviceMonitor.enabled to false" -}}
{{- end -}}
{{- if and (or .prometheus.podMonitor.enabled .prometheus.serviceMonitor.enabled) (not .prometheus.enabled) -}}
{{- fail "there is no page to scrape: set outputs.prometheus.enabled to true, or podMonitor and serviceMonitor below it to false" -}}
{{- end -}}
{{- if and .otlp.enabled .otlp.auth.secret .otlp.tls.insecure -}}
{{- fail "outputs.otlp.auth would show its token in clear: set outputs.otlp.tls.insecure to false" -}}
{{- end -}}
{{- if and .otlp.enabled .otlp.endpoint (eq .otlp.protocol "http") (not (regexMatch "^https?://" .otlp.endpoint)) -}}
{{- fail (printf "outputs.otlp.endpoint is %s, and protocol http takes a URL: write http://%s or https://%s" .otlp.endpoint .otlp.endpoint .otlp.endpoint) -}}
{{- end -}}
{{- range $name, $output := dict "remoteWrite" .remoteWrite "otlp" .otlp -}}
{{- if and $output.enabled (not $output.endpoint) -}}
{{- fail (printf "outputs.%s.endpoint is empty: say where to send to" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "llmfleet.validateExtra" -}}
{{- $own := dict
  "receivers" (list "prometheus" "prometheus/federate" "prometheus/self" "otlp" "k8s_fleet")
  "processors" (list "memory_limiter" "fleet_identity" "fleet_outlier" "canary_delta" "tenant_share" "filter/derived")
  "exporters" (list "prometheus" "prometheus_remote_write" "prometheus_remote_write/self" "otlp_grpc" "otlp_http" "debug/events" "load_balancing")
  "connectors" (list "tenant_usage" "cold_start" "fleet_events")
  "extensions" (list "health_check" "file_storage" "bearertokenauth/otlp_in" "bearertokenauth/prometheus" "bearertokenauth/remote_write" "bearertokenauth/otlp_out")
-}}
{{- range $section, $names := $own -}}
{{- range $name, $_ := index $.Values.extra $section -}}
{{- if has $name $names -}}
{{- fail (printf "extra.%s.%s would replace a component of the chart: call yours %s/mine" $section $name $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraVolumes -}}
{{- if or (has .name (list "config" "storage")) (hasPrefix "secret-" .name) -}}
{{- fail (printf "extraVolumes: %s is the name of a volume of the chart: choose another" .name) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.configOverride (or .Values.extra.receivers .Values.extra.processors .Values.extra.exporters .Values.extra.connectors .Values.extra.extensions .Values.extra.pipelines) -}}
{{- fail "configOverride is the whole configuration, and extra would be lost: put what extra has into configOverride" -}}
{{- end -}}
{{- range $name, $exporter := merge dict (default dict .Values.extra.exporters) (default dict (default dict .Values.configOverride).exporters) -}}
{{- if regexMatch "^load_?balancing(/|$)" $name -}}
{{- $key := default "traceID" (get (default dict $exporter) "routing_key") -}}
{{- if not (has $key (list "attributes" "service")) -}}
{{- fail (printf "exporter %s routes by %s, by which the replicas of one fleet reach different gateways: set routing_key to attributes and routing_attributes to [model_name]" $name $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
