// Prints the JSON fields of a SidecarSet's containers and volumes, and of pod templates, a line each: path and Go kind.
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
)

var lines []string

func walk(t reflect.Type, path string, depth int) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		walk(t.Elem(), path, depth)
		return
	}
	pkg := t.PkgPath()
	if t.Kind() != reflect.Struct || depth > 12 || strings.HasSuffix(pkg, "resource") || strings.HasSuffix(pkg, "intstr") || t.Name() == "Time" || t.Name() == "FieldsV1" {
		return
	}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			walk(f.Type, path, depth+1)
			continue
		}
		lines = append(lines, path+"."+name)
		walk(f.Type, path+"."+name, depth+1)
	}
}

func main() {
	walk(reflect.TypeOf(v1.PodTemplateSpec{}), "template", 0)
	sort.Strings(lines)
	fmt.Fprintln(os.Stdout, strings.Join(lines, "\n"))
}
