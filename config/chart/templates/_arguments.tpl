{{- /* The manager's flags. */ -}}
{{- define "kueue.arguments" -}}
- --config=/etc/sluice/controller_manager_config.yaml
{{- with .Values.controllerManager.manager.logLevel }}
- --zap-log-level={{ . }}
{{- end }}
{{- if .Values.controllerManager.featureGates }}
{{- $gates := list -}}
{{- range .Values.controllerManager.featureGates -}}
{{- $gates = append $gates (printf "%s=%t" .name .enabled) -}}
{{- end }}
- --feature-gates={{ join "," $gates }}
{{- end }}
{{- if ne (include "kueue.fullname" .) "kueue" }}
- --name-prefix={{ include "kueue.fullname" . }}
{{- end }}
{{- /* `helm upgrade --reuse-values` keeps the values of a chart that had no such value. 0 is a value. */ -}}
{{- $delay := .Values.controllerManager.manager.shutdownDelaySeconds -}}
{{- if not (kindIs "invalid" $delay) }}
- --shutdown-delay-duration={{ $delay }}s
{{- end }}
{{- end -}}
