# The checked-in manifests as values, with the address of the webhooks in them. Needs no provider.

variable "url" {
  description = "https, without a path: where the webhooks answer"
  type        = string
  validation {
    condition     = can(regex("^https://[^/?#@]+/*$", var.url))
    error_message = "url: API servers call https only; write for example https://webhooks.example.com"
  }
}

variable "ca_bundle" {
  description = "the authority that signed its certificate, PEM in base64; empty: one that API servers trust anyway"
  type        = string
  default     = ""
}

variable "path_secrets" {
  description = "the secret of each path, where callers prove by it who they are: what `sidecarset path-secrets` prints"
  type        = map(string)
  default     = {}
  sensitive   = true
  validation {
    condition     = alltrue([for secret in values(var.path_secrets) : can(regex("^[A-Za-z0-9_-]{43}$", secret))])
    error_message = "path_secrets: expected 256 bits in base64url for each path, 43 characters"
  }
}

variable "urls" {
  description = "where a webhook has an address of its own, such as a function's: { \"/mutate-pod\" = \"https://…\" }"
  type        = map(string)
  default     = {}
  validation {
    condition     = alltrue([for url in values(var.urls) : can(regex("^https://[^/?#@]+/*$", url))])
    error_message = "urls: API servers call https only; write for example https://webhooks.example.com"
  }
}

variable "failure_policy" {
  description = "what becomes of pods while the webhook is down: Ignore lets them in without sidecars, Fail refuses them"
  type        = string
  default     = "Ignore"
  validation {
    condition     = contains(["Ignore", "Fail"], var.failure_policy)
    error_message = "failure_policy: write Ignore or Fail"
  }
}

variable "fence" {
  description = "policies by which API servers refuse the reconciler what no rollout writes"
  type        = bool
  default     = true
}

variable "fence_annotations" {
  description = "what SidecarSets may patch into pods that run, such as example.com/mesh; a prefix ends with a slash"
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for key in var.fence_annotations : can(regex("^[A-Za-z0-9][A-Za-z0-9._/-]*$", key))])
    error_message = "fence_annotations: write keys such as example.com/mesh, or prefixes such as example.com/"
  }
}

variable "features" {
  description = "what else is to be served, such as launch-order: the names in infra/rbac/optional, and status-hints"
  type        = set(string)
  default     = []
  validation {
    condition     = length(setsubtract(var.features, local.known)) == 0
    error_message = "features: one of them is unknown, expected some of ${join(", ", local.known)}"
  }
}

locals {
  infra  = "${path.module}/../.."
  access = concat(["rbac/namespace.yaml", "rbac/access.yaml"], var.fence ? ["rbac/fence.yaml"] : [])
  always = concat(local.access, ["crd/sidecarsets.yaml", "webhooks/webhook-configurations.yaml"])

  rights = { for file in fileset("${local.infra}/rbac/optional", "*.yaml") : trimsuffix(file, ".yaml") => ["rbac/optional/${file}"] }
  beside_rights = {
    "container-recreate" = ["crd/containerrecreaterequests.yaml", "webhooks/container-recreate.yaml"]
    "ordered-sets"       = ["crd/statefulsets.yaml", "webhooks/stateful-sets.yaml"]
    "status-hints"       = ["webhooks/status-hints.yaml"]
  }
  known = sort(distinct(concat(keys(local.rights), keys(local.beside_rights))))
  files = { for feature in local.known : feature => concat(lookup(local.rights, feature, []), lookup(local.beside_rights, feature, [])) }
  paths = concat(local.always, flatten([for feature in sort(tolist(var.features)) : local.files[feature]]))

  # Only what pods are asked about says Ignore there.
  policies = { "webhooks/webhook-configurations.yaml" = "failurePolicy: ${var.failure_policy}" }
  texts    = [for path in local.paths : replace(file("${local.infra}/${path}"), "failurePolicy: Ignore", lookup(local.policies, path, "failurePolicy: Ignore"))]
  listed   = replace(join("---\n", local.texts), "expression: \"[]\"", "expression: ${jsonencode(jsonencode(var.fence_annotations))}")
  lines    = split("\n", local.listed)

  # The placeholder's indent and path.
  placeholder = "^( +)url: https://sidecarset-webhooks\\.invalid(/\\S+)$"
  addressed = flatten([for line in local.lines : [for found in coalescelist(regexall(local.placeholder, line), [[]]) :
    length(found) == 0 ? [line] : [
      "${found[0]}url: ${trim(lookup(var.urls, found[1], var.url), "/")}${length(var.path_secrets) == 0 ? "" : "/s/${var.path_secrets[found[1]]}"}${found[1]}",
      var.ca_bundle == "" ? "" : "${found[0]}caBundle: ${var.ca_bundle}",
    ]
  ]])

  objects = [for document in split("\n---\n", join("\n", local.addressed)) : yamldecode(document)]
}

output "objects" {
  description = "in the order to create them in"
  value       = local.objects
  sensitive   = true
}
