// Krew's own validator of plugin manifests, at the version of go.mod.
package main

import _ "sigs.k8s.io/krew/cmd/validate-krew-manifest"

func main() {}
