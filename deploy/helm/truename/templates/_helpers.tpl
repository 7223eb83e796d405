{{- define "truename.fullname" -}}
{{- if contains "truename" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-truename" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- /* What a selector names; it cannot change while a release lives. */ -}}
{{- define "truename.selector" -}}
app.kubernetes.io/name: truename
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "truename.labels" -}}
{{ include "truename.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "truename.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- define "truename.configMap" -}}
{{- .Values.existingConfigMap | default (include "truename.fullname" .) }}
{{- end }}
