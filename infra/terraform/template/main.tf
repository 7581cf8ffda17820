# The CloudFormation template that `npm run package` writes, for a bucket of one's own. Needs no provider.

variable "package" {
  description = "folder that `npm run package -- --package FOLDER` has written"
  type        = string
  validation {
    condition     = fileexists("${var.package}/cloudformation-template-update-stack.json")
    error_message = "package: there is no cloudformation-template-update-stack.json in it; run npm run package -- --package FOLDER first"
  }
}

variable "bucket" {
  description = "name of the bucket that the functions' code is put into"
  type        = string
}

locals {
  packaged = jsondecode(file("${var.package}/cloudformation-template-update-stack.json"))
  # The template brings a bucket along, which Terraform could not fill before the functions are made.
  own = "ServerlessDeploymentBucket"
  kept = merge(local.packaged, {
    Resources = { for name, resource in local.packaged.Resources : name => resource if !startswith(name, local.own) }
    Outputs   = { for name, output in local.packaged.Outputs : name => output if !startswith(name, local.own) }
  })
  code = [for resource in values(local.kept.Resources) : resource.Properties.Code.S3Key if resource.Type == "AWS::Lambda::Function"]
}

output "body" {
  description = "the template, JSON"
  value       = replace(jsonencode(local.kept), jsonencode({ Ref = local.own }), jsonencode(var.bucket))
}

output "code" {
  description = "key in the bucket → file to put there"
  value       = { for key in distinct(local.code) : key => "${var.package}/${basename(key)}" }
}
