// Prints the objects that Helm makes of a chart: `helm template`, by Helm's own engine.
//
//	render CHART NAMESPACE < VALUES.yaml
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	if err := render(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(directory, namespace string) error {
	chart, err := loader.Load(directory)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	given, err := chartutil.ReadValues(text)
	if err != nil {
		return err
	}
	release := chartutil.ReleaseOptions{Name: "sidecarset", Namespace: namespace, Revision: 1, IsInstall: true}
	// Checks values.schema.json too.
	values, err := chartutil.ToRenderValues(chart, given, release, nil)
	if err != nil {
		return err
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		if extension := filepath.Ext(name); extension == ".yaml" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("---\n# Source: %s\n%s\n", name, files[name])
	}
	return nil
}
