{{- define "sidecarset.clientConfig" -}}
{{- $own := ternary "https://sidecarset-serve.kruise-system.svc" "" .values.serve.enabled -}}
{{- $url := index .values.urls .path | default .values.url | default $own | required "url is missing: where the webhooks answer, such as --set url=https://webhooks.example.com" | trimSuffix "/" -}}
{{- $path := .path -}}
{{- if .values.pathSecrets }}{{ $path = printf "/s/%s%s" (index .values.pathSecrets .path | required (printf "pathSecrets has none for %s: sidecarset path-secrets prints all" .path)) .path }}{{ end -}}
{{- $service := regexFindAll "^https://[a-z0-9-]+[.][a-z0-9-]+[.]svc(:[0-9]+)?$" $url 1 -}}
{{- if $service }}
{{- $parts := splitList "." (trimPrefix "https://" $url) -}}
service:
  namespace: {{ index $parts 1 }}
  name: {{ index $parts 0 }}
  path: {{ $path }}
  port: {{ $url | regexFind "[0-9]+$" | default "443" }}
{{- else }}
url: {{ $url }}{{ $path }}
{{- end }}
{{- with .values.caBundle }}
caBundle: {{ . }}
{{- end }}
{{- end }}
