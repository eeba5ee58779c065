{{- /* The manager's configuration file, and what follows from it. */ -}}

{{- /* The configuration file as YAML. */ -}}
{{- define "kueue.configuration" -}}
{{- $config := .Files.Get "files/manager-config.yaml" | fromYaml -}}
{{- with .Values.managerConfig.controllerManagerConfigYaml -}}
{{- $config = fromYaml . -}}
{{- if hasKey $config "Error" -}}
{{- printf "managerConfig.controllerManagerConfigYaml is no YAML object: %s" $config.Error | fail -}}
{{- end -}}
{{- else -}}
{{- include "kueue.overlay" (list $config .Values.managerConfig.config) -}}
{{- end -}}
{{- if ne ($config.namespace | default .Release.Namespace) .Release.Namespace -}}
{{- printf "managerConfig: the configuration has the namespace %s, and the release %s. Leave the field out." $config.namespace .Release.Namespace | fail -}}
{{- end -}}
{{- if and $config.featureGates .Values.controllerManager.featureGates -}}
{{- fail "managerConfig: the manager takes feature gates from controllerManager.featureGates or from the field featureGates of the configuration, not from both." -}}
{{- end -}}
{{- $leaseNamespace := ($config.leaderElection | default dict).resourceNamespace | default .Release.Namespace -}}
{{- if ne $leaseNamespace .Release.Namespace -}}
{{- printf "managerConfig: leaderElection.resourceNamespace is %s, and the Role of the Lease is in %s. Leave the field out." $leaseNamespace .Release.Namespace | fail -}}
{{- end -}}
{{- $_ := set $config "namespace" .Release.Namespace -}}
{{- $certificates := $config.internalCertManagement | default dict -}}
{{- if .Values.enableCertManager -}}
{{- if $certificates.enable -}}
{{- fail "enableCertManager: the configuration lets the manager create certificates (internalCertManagement.enable). Leave the field out." -}}
{{- end -}}
{{- $_ := set $certificates "enable" false -}}
{{- end -}}
{{- $names := dict "webhookServiceName" "webhook-service" "webhookSecretName" "webhook-server-cert" -}}
{{- range $field, $end := $names -}}
{{- $name := printf "%s-%s" (include "kueue.fullname" $) $end -}}
{{- if ne (get $certificates $field | default $name) $name -}}
{{- printf "managerConfig: internalCertManagement.%s is %s, and the chart's object is called %s. Leave the field out." $field (get $certificates $field) $name | fail -}}
{{- end -}}
{{- /* The manager's own defaults begin with `kueue`. */ -}}
{{- if ne (include "kueue.fullname" $) "kueue" -}}
{{- $_ := set $certificates $field $name -}}
{{- end -}}
{{- end -}}
{{- if $certificates -}}
{{- $_ := set $config "internalCertManagement" $certificates -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- /* The name of the Lease by which the replicas elect a leader. */ -}}
{{- define "kueue.leaseName" -}}
{{- $election := (include "kueue.configuration" . | fromYaml).leaderElection | default dict -}}
{{- $election.resourceName | default "c1f6bfd2.kueue.x-k8s.io" -}}
{{- end -}}

{{- /* Sets the fields of the second object in the first one, at every depth. A list replaces a list, and null removes a field. */ -}}
{{- define "kueue.overlay" -}}
{{- $base := index . 0 -}}
{{- range $key, $value := index . 1 -}}
{{- $present := get $base $key -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $base $key -}}
{{- else if and (kindIs "map" $value) (kindIs "map" $present) -}}
{{- include "kueue.overlay" (list $present $value) -}}
{{- else -}}
{{- $_ := set $base $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Whether certificates are mounted: "true" unless the manager creates them. */ -}}
{{- define "kueue.mountsCertificates" -}}
{{- $certificates := (include "kueue.configuration" . | fromYaml).internalCertManagement | default dict -}}
{{- eq (toString $certificates.enable) "false" -}}
{{- end -}}

{{- /* "true" unless the gate VisibilityOnDemand is off: APIServices without a server would fail, and keep namespaces from deletion. */ -}}
{{- define "kueue.servesVisibility" -}}
{{- $gates := (include "kueue.configuration" . | fromYaml).featureGates | default dict -}}
{{- $served := ne (toString $gates.VisibilityOnDemand) "false" -}}
{{- range .Values.controllerManager.featureGates -}}
{{- if and (eq .name "VisibilityOnDemand") (not .enabled) -}}
{{- $served = false -}}
{{- end -}}
{{- end -}}
{{- $served -}}
{{- end -}}

{{- /* The selector of the namespaces with managed jobs, for webhooks of jobs. */ -}}
{{- define "kueue.jobNamespaces" -}}
{{- $selector := (include "kueue.configuration" . | fromYaml).managedJobsNamespaceSelector -}}
{{- $system := dict "key" "kubernetes.io/metadata.name" "operator" "NotIn" "values" (list "kube-system" .Release.Namespace) -}}
{{- $selector | default (dict "matchExpressions" (list $system)) | toYaml -}}
{{- end -}}
