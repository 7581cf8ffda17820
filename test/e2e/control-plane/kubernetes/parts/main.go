// Prints random parts of pods, a line of JSON each, and what Kubernetes' own code says of them: `parts validate SEED
// COUNT` the errors of its validation, `parts decode SEED COUNT` what its decoder keeps of a SidecarSet.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"
	kjson "sigs.k8s.io/json"
)

var r *rand.Rand

// How often a field of a SidecarSet, or of a container, is set.
var setP float64

var pool = []string{"", "a", "b", "main", "data", "A", "a_b", "x.y", "-a", "a-", "a..b", "/", "/a", "/a/", "a/b", "../a", "a/../b", "..", "/a:b", "$(A)", " ", "a b", "http", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.labels['a']", "metadata.annotations['A/b']", "metadata.annotations['x.y/Z']", "metadata.labels['-']", "metadata.annotations['']", "spec.nodeName", "spec.serviceAccountName", "status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs", "status.phase", "spec.hostNetwork", "limits.cpu", "requests.memory", "limits.memory", "limits.ephemeral-storage", "requests.hugepages-2Mi", "limits.hugepages-", "limits.foo", "requests.cpu", "v1", "v2", "1.2.3.4", "1.2.3", "::1", "0.0.0.0", "127.0.0.1", "example.com", "Example.com", "https://x", "CAP_SYS_ADMIN", "SYS_ADMIN", "ALL", "localhost/x", "é", "a\tb", "0123456789012345678901234567890123456789012345678901234567890123", "a.b.c.d/e", "X-Header", "x header", "/dev/termination-log", "{\"a\":1}", "nfs", "disk.example", "NT AUTHORITY\\SYSTEM", "user", "dom\\user", "ContainerAdministrator", "iqn.2001-04.com.example:storage", "eui.0123456789abcdef", "naa.0123456789abcdef", "iqn.x", "zero", "10.0.0.1:3260", "pd", "20", "65536", "ReadWriteOnce", "/tmp/../x", "a/b/..", "C:\\a", "/..a", "..a", "..data", "secretref"}

var enums = map[string][]string{
	"PullPolicy": {"Always", "Never", "IfNotPresent", "always"}, "Protocol": {"TCP", "UDP", "SCTP", "tcp", "HTTP"},
	"TerminationMessagePolicy": {"File", "FallbackToLogsOnError", "file"}, "URIScheme": {"HTTP", "HTTPS", "http"},
	"MountPropagationMode": {"None", "HostToContainer", "Bidirectional", "none"}, "RecursiveReadOnlyMode": {"Disabled", "IfPossible", "Enabled", "x"},
	"ContainerRestartPolicy": {"Always", "OnFailure", "Never"}, "ResourceResizeRestartPolicy": {"NotRequired", "RestartContainer", "x"},
	"ProcMountType": {"Default", "Unmasked", "x"}, "SeccompProfileType": {"Localhost", "RuntimeDefault", "Unconfined", "x"},
	"AppArmorProfileType": {"Localhost", "RuntimeDefault", "Unconfined", "x"}, "Capability": {"SYS_ADMIN", "CAP_SYS_ADMIN", "ALL", "NET_ADMIN"},
	"HostPathType":             {"", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice", "x"},
	"StorageMedium":            {"", "Memory", "HugePages", "HugePages-2Mi", "HugePages-1", "disk", "HugePages-1Gi"},
	"AzureDataDiskCachingMode": {"None", "ReadOnly", "ReadWrite", "x"}, "AzureDataDiskKind": {"Shared", "Dedicated", "Managed", "x"},
	"PersistentVolumeAccessMode": {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod", "x"},
	"PersistentVolumeMode":       {"Block", "Filesystem", "x"}, "ResourceName": {"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "foo", "x/", "requests.example.com/a", "kubernetes.io/x", "hugepages-"},
}
var quantities = []string{"0", "1", "500m", "1Gi", "2Mi", "3Mi", "-1", "1.5", "100n", "0.5", "1k", "10", "1e3", "4Mi", "64Ki"}

func pick(list []string) string { return list[r.Intn(len(list))] }

var qt = reflect.TypeOf(resource.Quantity{})
var is = reflect.TypeOf(intstr.IntOrString{})

func fill(v reflect.Value, depth int) {
	t := v.Type()
	if t == qt {
		v.Set(reflect.ValueOf(resource.MustParse(pick(quantities))))
		return
	}
	if t == is {
		if r.Intn(2) == 0 {
			v.Set(reflect.ValueOf(intstr.FromInt32(int32([]int{0, 1, 80, 65535, 65536, -1}[r.Intn(6)]))))
		} else {
			v.Set(reflect.ValueOf(intstr.FromString(pick(append([]string{"http", "http", "a", "h-t", "http-long-name-xx", "80", "1a", "-", "a--b"}, pool...)))))
		}
		return
	}
	switch t.Kind() {
	case reflect.String:
		if list, ok := enums[t.Name()]; ok && r.Float64() < 0.95 {
			v.SetString(pick(list))
		} else {
			v.SetString(pick(pool))
		}
	case reflect.Bool:
		v.SetBool(r.Intn(2) == 0)
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt([]int64{0, 1, 2, 10, 30, -1, 80, 420, 511, 512, 65535, 65536, 600, 3600, 599, 4294967296, 4294967295}[r.Intn(15)])
	case reflect.Ptr:
		v.Set(reflect.New(t.Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return
		}
		n := 1 + r.Intn(2)
		s := reflect.MakeSlice(t, n, n)
		for i := 0; i < n; i++ {
			fill(s.Index(i), depth+1)
		}
		v.Set(s)
	case reflect.Map:
		m := reflect.MakeMap(t)
		for i := 0; i < 1+r.Intn(2); i++ {
			k := reflect.New(t.Key()).Elem()
			fill(k, depth+1)
			e := reflect.New(t.Elem()).Elem()
			fill(e, depth+1)
			m.SetMapIndex(k, e)
		}
		v.Set(m)
	case reflect.Struct:
		if t == reflect.TypeOf(metav1.Time{}) || t.Name() == "FieldsV1" || t == reflect.TypeOf(metav1.ObjectMeta{}) {
			if t == reflect.TypeOf(metav1.ObjectMeta{}) && r.Intn(3) == 0 {
				m := metav1.ObjectMeta{}
				if r.Intn(2) == 0 {
					m.Labels = map[string]string{pick(pool): pick(pool)}
				}
				if r.Intn(2) == 0 {
					m.Name = pick(pool)
				}
				v.Set(reflect.ValueOf(m))
			}
			return
		}
		// unions: one member mostly
		p := setP
		if depth > 0 {
			p = 0.6
		}
		if t.Name() == "EnvVarSource" || t.Name() == "ProbeHandler" || t.Name() == "LifecycleHandler" || t.Name() == "VolumeProjection" {
			for n := 0; n < 1+r.Intn(8)/7; n++ {
				fill(v.Field(r.Intn(t.NumField())), depth+1)
			}
			return
		}
		for i := 0; i < t.NumField(); i++ {
			name := t.Field(i).Name
			q := p
			if name == "VolumeSource" {
				continue
			}
			if name == "Name" || name == "Key" || name == "MountPath" || name == "FieldPath" || name == "Path" {
				q = 0.92
			}
			if t.Field(i).Anonymous {
				q = 1
			}
			if r.Float64() < q {
				fill(v.Field(i), depth+1)
			}
		}
	}
}

func container(i int, volumes []v1.Volume, isInit bool) v1.Container {
	c := v1.Container{Name: "c" + strconv.Itoa(i), Image: "img:1", ImagePullPolicy: "Always", TerminationMessagePolicy: "File"}
	if isInit {
		c.Name = "i" + strconv.Itoa(i)
	}
	t := reflect.TypeOf(c)
	only := -1
	if r.Intn(3) > 0 {
		only = r.Intn(t.NumField())
	}
	for f := 0; f < t.NumField(); f++ {
		if (only == -1 && r.Float64() < setP) || f == only {
			fill(reflect.ValueOf(&c).Elem().Field(f), 1)
		}
	}
	if r.Intn(4) > 0 {
		for m := range c.VolumeMounts {
			if len(volumes) > 0 {
				c.VolumeMounts[m].Name = volumes[r.Intn(len(volumes))].Name
			}
			if r.Intn(2) == 0 {
				c.VolumeMounts[m].MountPath = "/m" + strconv.Itoa(m)
			}
		}
		for m := range c.VolumeDevices {
			if len(volumes) > 0 {
				c.VolumeDevices[m].Name = volumes[r.Intn(len(volumes))].Name
			}
		}
	}
	return c
}

func volume(i int) v1.Volume {
	v := v1.Volume{Name: "v" + strconv.Itoa(i)}
	if r.Intn(12) == 0 {
		v.Name = pick(pool)
	}
	s := reflect.ValueOf(&v.VolumeSource).Elem()
	for n := 0; n < 1+r.Intn(10)/9; n++ {
		fill(s.Field(r.Intn(s.NumField())), 1)
	}
	return v
}

type problem struct{ Type, Field, Detail string }

// The pod that a SidecarSet alone would make. OpenKruise is stricter in three fields (docs/compatibility.md, W15).
func validate() any {
	setP = 0.15
	spec := v1.PodSpec{}
	for i := range r.Intn(3) {
		spec.Volumes = append(spec.Volumes, volume(i))
	}
	for i := range r.Intn(3) {
		spec.Containers = append(spec.Containers, container(i, spec.Volumes, false))
	}
	for i := range r.Intn(3) / 2 {
		spec.InitContainers = append(spec.InitContainers, container(i, spec.Volumes, true))
	}
	input, _ := json.Marshal(map[string]any{"containers": spec.Containers, "initContainers": spec.InitContainers, "volumes": spec.Volumes})
	if len(spec.Containers) == 0 {
		spec.Containers = []v1.Container{{Name: "test", Image: "busybox", ImagePullPolicy: "IfNotPresent", TerminationMessagePolicy: "File"}}
	}
	grace := int64(30)
	spec.RestartPolicy, spec.DNSPolicy, spec.TerminationGracePeriodSeconds = "Always", "ClusterFirst", &grace
	spec.SecurityContext, spec.ServiceAccountName = &v1.PodSecurityContext{}, "default"
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "test", Namespace: "default"}, Spec: spec}
	internal := core.Pod{}
	problems := []problem{}
	if err := corev1.Convert_v1_Pod_To_core_Pod(pod, &internal, nil); err != nil {
		panic(err)
	}
	options := validation.PodValidationOptions{AllowRelaxedEnvironmentVariableValidation: true, AllowPodLifecycleSleepActionZeroValue: true, AllowIndivisibleHugePagesValues: true}
	for _, e := range validation.ValidatePodCreate(&internal, options) {
		problems = append(problems, problem{string(e.Type), e.Field, e.Detail})
	}
	return map[string]any{"input": json.RawMessage(input), "problems": problems}
}

type HotUp struct {
	UpgradeType          string `json:"upgradeType,omitempty"`
	HotUpgradeEmptyImage string `json:"hotUpgradeEmptyImage,omitempty"`
}
type ShareType struct {
	Type string `json:"type,omitempty"`
}
type SrcFrom struct {
	FieldRef *v1.ObjectFieldSelector `json:"fieldRef,omitempty"`
}
type TransferEnv struct {
	SourceContainerName     string   `json:"sourceContainerName,omitempty"`
	SourceContainerNameFrom *SrcFrom `json:"sourceContainerNameFrom,omitempty"`
	EnvName                 string   `json:"envName,omitempty"`
	EnvNames                []string `json:"envNames,omitempty"`
}
type Expr struct {
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
}
type Exprs struct {
	Limits   *Expr `json:"limits,omitempty"`
	Requests *Expr `json:"requests,omitempty"`
}
type ResPolicy struct {
	Mode  string `json:"targetContainersMode"`
	Regex string `json:"targetContainersNameRegex,omitempty"`
	E     Exprs  `json:"resourcesExpr"`
}
type SC struct {
	v1.Container    `json:",inline"`
	PodInjectPolicy string        `json:"podInjectPolicy,omitempty"`
	UpgradeStrategy HotUp         `json:"upgradeStrategy,omitempty"`
	Share           ShareType     `json:"shareVolumePolicy,omitempty"`
	ShareDev        *ShareType    `json:"shareVolumeDevicePolicy,omitempty"`
	TransferEnv     []TransferEnv `json:"transferEnv,omitempty"`
	ResourcesPolicy *ResPolicy    `json:"resourcesPolicy,omitempty"`
}
type Spec struct {
	Selector             *metav1.LabelSelector     `json:"selector,omitempty"`
	NamespaceSelector    *metav1.LabelSelector     `json:"namespaceSelector,omitempty"`
	InitContainers       []SC                      `json:"initContainers,omitempty"`
	Containers           []SC                      `json:"containers,omitempty"`
	Volumes              []v1.Volume               `json:"volumes,omitempty"`
	ImagePullSecrets     []v1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	RevisionHistoryLimit *int32                    `json:"revisionHistoryLimit,omitempty"`
	CustomVersion        string                    `json:"customVersion,omitempty"`
}
type SS struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec `json:"spec,omitempty"`
}

var texts = []string{"", "<a&b>", "\u2028", "\u00e9\u0001", "1", "tab\t", "back\\slash", "\"q\""}
var qforms = []any{"0.5", "1024Mi", "1.5Gi", "+1", "0001Mi", "1e6", "1E3", "1E", "5.", ".5", "1000m", "1000Ki", "100n", "1u", "0.0001", "1.123456789", "-1", "12345678901234567890", "0.1Gi", "1Ki", "2Ti", "1e-3", "1e+3", "00", "0.0", "-0", "1.10", "8Mi", "7Mi", "1000000000n", "1000k", "10k", 1, 0, 2.5, 1000, 1e6, "abc", "1 Gi", "", "1.5e3", "123456789012345678Ki", "0e3", "0Ki", "100E", "9223372036854775807", "9223372036854775808", "0.000000001", "0.0000000001", "1.5Mi", "1.7Ki", "-1.5Gi", "3e-10", "1Pi", "16Ei", "1M", "0m"}

func noise(v any, p float64) any {
	if r.Float64() < p {
		switch r.Intn(9) {
		case 0:
			return nil
		case 1:
			return map[string]any{}
		case 2:
			return []any{}
		case 3:
			return pick(texts)
		case 4:
			return r.Intn(3) == 0
		case 5:
			_ = 0
			return []any{0, -1, 7, 2147483647, 2147483648, 4294967296.0}[r.Intn(6)]
		}
	}
	switch t := v.(type) {
	case map[string]any:
		keys := []string{}
		for k := range t {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			t[k] = noise(t[k], p)
			if (k == "limits" || k == "requests") && r.Float64() < 0.8 {
				t[k] = map[string]any{[]string{"cpu", "memory", "x"}[r.Intn(3)]: qforms[r.Intn(len(qforms))]}
			}
			if r.Float64() < p && len(k) > 0 {
				t[strings.ToUpper(k[:1])+k[1:]] = "case"
			}
		}
		if r.Float64() < p {
			t["unknownField"] = 1
		}
	case []any:
		for i := range t {
			t[i] = noise(t[i], p)
		}
	}
	return v
}

func decode() any {
	setP = 0.5
	set := SS{}
	fill(reflect.ValueOf(&set.Spec).Elem(), 0)
	raw, _ := json.Marshal(set.Spec)
	var spec map[string]any
	if err := json.Unmarshal(raw, &spec); err != nil {
		panic(err)
	}
	noise(spec, []float64{0, 0.002, 0.01, 0.03}[r.Intn(4)])
	input, _ := json.Marshal(map[string]any{"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": map[string]any{"name": "x"}, "spec": spec})
	got := SS{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(input, &got); err != nil {
		return map[string]any{"input": json.RawMessage(input), "refused": err.Error()}
	}
	kept, err := json.Marshal(got.Spec)
	if err != nil {
		panic(err)
	}
	return map[string]any{"input": json.RawMessage(input), "kept": string(kept)}
}

func main() {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	seed, _ := strconv.ParseInt(os.Args[2], 10, 64)
	count, _ := strconv.ParseInt(os.Args[3], 10, 64)
	made := map[string]func() any{"validate": validate, "decode": decode}[os.Args[1]]
	if made == nil {
		panic(fmt.Sprintf("%s is neither validate nor decode", os.Args[1]))
	}
	out := json.NewEncoder(os.Stdout)
	for n := range count {
		r = rand.New(rand.NewSource(seed + n))
		out.Encode(made())
	}
}
