{{- /* Names and labels of the release. */ -}}

{{- define "kueue.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* The prefix of names, by Kueue's rule: the name of the release, with that of the chart unless it contains it. */ -}}
{{- define "kueue.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $both := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- .Values.fullnameOverride | default $both | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* Labels of Helm, on every object. Selectors use others, so that a new version of the chart changes no selector. */ -}}
{{- define "kueue.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* What selects the manager's pods. */ -}}
{{- define "kueue.managerLabels" -}}
app.kubernetes.io/name: {{ include "kueue.name" . }}
app.kubernetes.io/component: manager
{{- end -}}
