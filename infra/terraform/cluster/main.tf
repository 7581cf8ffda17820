# Everything a cluster needs of us, by the provider "kubernetes". It reads the cluster when it plans, so the definitions
# have to be there before what is of their kind.

terraform {
  required_version = ">= 1.9"
  required_providers {
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = ">= 2.35"
    }
  }
}

variable "url" { type = string }
variable "ca_bundle" {
  type    = string
  default = ""
}
variable "path_secrets" {
  type      = map(string)
  default   = {}
  sensitive = true
}
variable "urls" {
  type    = map(string)
  default = {}
}
variable "failure_policy" {
  type    = string
  default = "Ignore"
}
variable "fence" {
  type    = bool
  default = true
}
variable "fence_annotations" {
  type    = list(string)
  default = []
}
variable "features" {
  type    = set(string)
  default = []
}

module "objects" {
  source            = "../objects"
  url               = var.url
  ca_bundle         = var.ca_bundle
  path_secrets      = var.path_secrets
  urls              = var.urls
  failure_policy    = var.failure_policy
  fence             = var.fence
  fence_annotations = var.fence_annotations
  features          = var.features
}

locals {
  # Which objects there are is public; what is in them may hold the secret.
  objects = { for object in module.objects.objects : join("/", [object.kind, try(object.metadata.namespace, ""), object.metadata.name]) => object }
  former  = "MutatingWebhookConfiguration//sidecarset-mutating-webhook-configuration"
  others  = nonsensitive(toset([for key, object in local.objects : key if object.kind != "Namespace" && key != local.former]))
}

resource "kubernetes_manifest" "namespace" {
  manifest = nonsensitive(local.objects["Namespace//kruise-system"])
}

resource "kubernetes_manifest" "object" {
  for_each   = local.others
  manifest   = local.objects[each.key]
  depends_on = [kubernetes_manifest.namespace]

  # What API servers fill in, and what a rollout function may keep up to date.
  computed_fields = ["metadata.annotations", "metadata.labels", "webhooks", "spec.conversion", "spec.names"]
}

# Under its former name the registration is emptied when the new one is there, not at the same time.
moved {
  from = kubernetes_manifest.object["MutatingWebhookConfiguration//sidecarset-mutating-webhook-configuration"]
  to   = kubernetes_manifest.former
}

resource "kubernetes_manifest" "former" {
  manifest   = nonsensitive(local.objects[local.former])
  depends_on = [kubernetes_manifest.object]
}
