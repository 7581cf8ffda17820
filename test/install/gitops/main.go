// Reads {"script", "actions", "failed", "current", "objects"} from stdin and prints, for each object, what Argo CD's
// interpreter makes of it by each script: its health, and what each action returns; and the status that Flux makes of it
// by kstatus and by the two expressions.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	luajson "layeh.com/gopher-json"
)

type verdict struct {
	ArgoCD struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	} `json:"argocd"`
	Actions map[string]json.RawMessage `json:"actions"`
	Kstatus string                     `json:"kstatus"`
	Flux    string                     `json:"flux"`
}

func main() {
	var input struct {
		Script  string            `json:"script"`
		Actions map[string]string `json:"actions"`
		Failed  string            `json:"failed"`
		Current string            `json:"current"`
		Objects []map[string]any  `json:"objects"`
	}
	must(json.NewDecoder(os.Stdin).Decode(&input))
	evaluator, err := cel.NewStatusEvaluator(&kustomize.HealthCheckExpressions{Failed: input.Failed, Current: input.Current})
	must(err)
	verdicts := []verdict{}
	for _, object := range input.Objects {
		var one verdict
		must(json.Unmarshal(evaluate(input.Script, object), &one.ArgoCD))
		one.Actions = map[string]json.RawMessage{}
		for name, script := range input.Actions {
			one.Actions[name] = evaluate(script, object)
		}
		// integers, as a client has them
		whole, err := json.Marshal(object)
		must(err)
		var typed unstructured.Unstructured
		must(typed.UnmarshalJSON(whole))
		result, err := status.Compute(&typed)
		must(err)
		one.Kstatus = result.Status.String()
		if flux, err := evaluator.Evaluate(context.Background(), &typed); err != nil {
			one.Flux = "Unknown" // Flux looks again
		} else {
			one.Flux = flux.Status.String()
		}
		verdicts = append(verdicts, one)
	}
	must(json.NewEncoder(os.Stdout).Encode(verdicts))
}

// As Argo CD's own: only these libraries are open.
func evaluate(script string, object map[string]any) []byte {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		must(state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)))
	}
	state.SetGlobal("obj", luajson.DecodeValue(state, object))
	must(state.DoString(script))
	text, err := luajson.Encode(state.Get(-1))
	must(err)
	return text
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
