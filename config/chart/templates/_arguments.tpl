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
- --shutdown-delay-duration={{ .Values.controllerManager.manager.shutdownDelaySeconds }}s
{{- end -}}
