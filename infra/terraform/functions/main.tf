# The functions on AWS, from the template of serverless.yml, by the provider "aws".

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "package" {
  description = "folder that `npm run package -- --package FOLDER` has written, with the parameters of docs/deploy-parameters.md"
  type        = string
}

variable "bucket" {
  description = "name of a bucket that exists, in the region of the functions"
  type        = string
}

variable "name" {
  description = "of the stack"
  type        = string
  default     = "sidecarset-prod"
}

module "template" {
  source  = "../template"
  package = var.package
  bucket  = var.bucket
}

resource "aws_s3_object" "code" {
  for_each    = module.template.code
  bucket      = var.bucket
  key         = each.key
  source      = each.value
  source_hash = filemd5(each.value)
}

resource "aws_cloudformation_stack" "functions" {
  name          = var.name
  template_body = module.template.body
  capabilities  = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"]
  depends_on    = [aws_s3_object.code]
}

output "urls" {
  description = "where the webhooks answer, by path, as the module cluster takes them"
  value = {
    for path, output in {
      "/mutate-pod"                         = "MutateDashpodLambdaFunctionUrl"
      "/mutate-apps-kruise-io-sidecarset"   = "MutateDashsidecarsetLambdaFunctionUrl"
      "/announce-apps-kruise-io-sidecarset" = "ValidateDashsidecarsetLambdaFunctionUrl"
      "/convert"                            = "ConvertDashsidecarsetLambdaFunctionUrl"
    } : path => aws_cloudformation_stack.functions.outputs[output] if contains(keys(aws_cloudformation_stack.functions.outputs), output)
  }
}
