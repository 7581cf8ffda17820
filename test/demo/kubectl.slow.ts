/** Tests the demo's cluster with kubectl: server-side apply, debug, access reviews, odd keys, unknown tags. */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { install, mayBeUnavailable, type Stage, setStage } from "../../infra/demo/stage.ts";
import { runHere } from "../cli/run-cli.ts";
import { newPod } from "../support/objects.ts";
import { PATIENT } from "../support/patient.ts";

const run = promisify(execFile);
const hasKubectl = await run("kubectl", ["version", "--client"]).then(
  () => true,
  () => false,
);

const SET = (more: string) => `apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: web}}
  containers: [{name: agent, image: "agent:1"}]
  ${more}
`;

describe.skipIf(!hasKubectl)("the demo with kubectl:", () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await setStage(["app:1"]);
    await install(stage.client, [
      newPod({ name: "web", namespace: "default" }, { containers: [{ name: "app", image: "app:1" }] }),
    ]);
  });
  afterAll(() => stage.close());

  const env = () => ({ ...process.env, KUBECONFIG: stage.kubeconfig });
  async function kubectl(...args: readonly string[]): Promise<string> {
    const { stdout } = await run("kubectl", args, { env: env(), timeout: PATIENT.timeout }).catch((error) => error);
    return stdout.trim();
  }
  /** Returns the output that a person sees, with errors. */
  async function said(...args: readonly string[]): Promise<string> {
    const { stdout, stderr } = await run("kubectl", args, { env: env(), timeout: PATIENT.timeout }).catch(
      (error) => error,
    );
    return `${stdout}${stderr}`.trim();
  }
  async function apply(text: string): Promise<string> {
    const file = join(dirname(stage.kubeconfig), "apply.yaml");
    await writeFile(file, text);
    return kubectl("apply", "--server-side", "-f", file);
  }
  const get = (what: string, path: string) => kubectl("get", what, "-o", `jsonpath={${path}}`);

  it("server-side apply creates a SidecarSet, and removes fields that the next file leaves out", async () => {
    expect(await apply(SET("injectionStrategy: {paused: true}"))).toBe(
      "sidecarset.apps.kruise.io/agent serverside-applied",
    );
    expect(await get("sidecarset/agent", ".spec.injectionStrategy.paused")).toBe("true");
    expect(await apply(SET(""))).toBe("sidecarset.apps.kruise.io/agent serverside-applied");
    expect(await get("sidecarset/agent", ".spec.injectionStrategy.paused")).toBe("");
  });

  it("server-side apply refuses a field of another manager, takes it by force, and leaves other managers' other fields", async () => {
    const file = join(dirname(stage.kubeconfig), "owned.yaml");
    const applyAs = async (manager: string, spec: string, ...more: readonly string[]) => {
      await writeFile(file, `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: owned}\nspec: ${spec}\n`);
      return said("apply", "--server-side", `--field-manager=${manager}`, "-f", file, ...more);
    };
    const spec = (replicas: string, image: string, other = "") =>
      `{${replicas} selector: {matchLabels: {app: owned}}, template: {metadata: {labels: {app: owned}}, spec: {containers: [{name: a, image: "${image}"}${other}]}}}`;
    const applied = "deployment.apps/owned serverside-applied";
    expect(await applyAs("kubectl", spec("replicas: 0,", "app:1", ', {name: b, image: "app:1"}'))).toBe(applied);
    const refused = await applyAs("other", "{replicas: 2}");
    expect(refused).toContain('error: Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas');
    expect(await applyAs("other", spec("replicas: 2,", "app:2"))).toContain(
      'conflicts with "kubectl":\n- .spec.replicas\n- .spec.template.spec.containers[name="a"].image',
    );
    expect(await get("deployment/owned", ".spec.replicas")).toBe("0");
    expect(await applyAs("other", "{replicas: 2}", "--force-conflicts")).toBe(applied);
    expect(await applyAs("kubectl", spec("", "app:1"))).toBe(applied);
    expect(await get("deployment/owned", ".spec.replicas")).toBe("2");
    expect(await get("deployment/owned", ".spec.template.spec.containers[*].name")).toBe("a");
    await kubectl("delete", "deployment", "owned");
    expect(await applyAs("kubectl", spec("replicas: 1,", "app:3"))).toBe(applied);
    await kubectl("delete", "deployment", "owned");
  });

  it.each([["--server-side"], ["--server-side", "--validate=strict"]])(
    "an apply with %s of an unknown volume source is refused with one sentence, and so is the next apply",
    async (...options) => {
      for (const size of ["1Gi", "2Gi"]) {
        const file = join(dirname(stage.kubeconfig), "volume.yaml");
        await writeFile(file, SET(`volumes: [{name: v, newSourceOfTomorrow: {size: ${size}}}]`));
        await expect(
          run("kubectl", ["apply", ...options, "-f", file], { env: env(), timeout: PATIENT.timeout }),
        ).rejects.toThrow("newSourceOfTomorrow; without it the volume v would be an emptyDir");
      }
    },
  );

  it("a file with a kind that the demo does not know gets the same answer as from any cluster", async () => {
    const file = join(dirname(stage.kubeconfig), "unknown.yaml");
    await writeFile(file, "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec: {}\n");
    expect(await said("apply", "-f", file)).toContain(
      'no matches for kind "Rollout" in version "argoproj.io/v1alpha1"',
    );
  });

  it("kubectl debug adds a container that runs", async () => {
    await kubectl("debug", "web", "--image=busybox:1.36", "-c", "debugger", "--profile=general", "--", "sleep", "1");
    await expect.poll(() => get("pod/web", ".status.ephemeralContainerStatuses[*].state")).toContain("running");
    expect(await get("pod/web", ".status.containerStatuses[*].name")).toBe("app");
  });

  it("kubectl auth can-i and kubectl auth whoami get an answer", async () => {
    expect(await kubectl("auth", "can-i", "create", "pods")).toBe("yes");
    expect(await kubectl("auth", "whoami")).toContain("kubernetes-admin");
  });

  it("kubectl --as gets the rights of the stored roles, and is refused everything else", async () => {
    await kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods");
    await kubectl("create", "rolebinding", "reader", "--role=reader", "--user=jane", "--serviceaccount=default:robot");
    const robot = "--as=system:serviceaccount:default:robot";
    expect(await said("auth", "can-i", "list", "pods", "--as=jane")).toBe("yes");
    expect(await said("auth", "can-i", "list", "pods", robot)).toBe("yes");
    expect(await said("auth", "can-i", "list", "pods", "--as=jane", "-n", "kube-system")).toMatch(/^no/);
    expect(await said("auth", "can-i", "delete", "pods", "--as=jane")).toMatch(/^no/);
    expect(await said("auth", "can-i", "list", "pods", "--as=jim")).toMatch(/^no/);
    expect(await said("auth", "can-i", "delete", "pods", "--as=jim", "--as-group=system:masters")).toBe("yes");
    expect(await said("auth", "can-i", "--list", "--as=jane")).toMatch(/pods +\[\] +\[\] +\[get list\]/);
    expect(await said("auth", "whoami", "--as=jane")).toContain("jane");
    expect(await said("get", "pods", "-o", "name", "--as=jane")).toContain("pod/web");
    expect(await said("delete", "pod", "web", "--as=jane")).toBe(
      'Error from server (Forbidden): pods "web" is forbidden: User "jane" cannot delete resource "pods" in API group "" in the namespace "default"',
    );
    expect(await said("get", "sidecarsets", "--as=jane")).toBe(
      'Error from server (Forbidden): sidecarsets.apps.kruise.io is forbidden: User "jane" cannot list resource "sidecarsets" in API group "apps.kruise.io" at the cluster scope',
    );
  });

  it("kubectl create makes roles, bindings and disruption budgets", async () => {
    await kubectl("create", "clusterrole", "all", "--verb=get", "--resource=pods,sidecarsets.apps.kruise.io");
    await kubectl("create", "clusterrolebinding", "all", "--clusterrole=all", "--group=team");
    expect(await get("clusterrole/all", ".rules[*].resources")).toBe('["pods"] ["sidecarsets"]');
    expect(await get("clusterrolebinding/all", ".roleRef.name")).toBe("all");
    await kubectl("create", "pdb", "few", "--selector=app=web", "--min-available=2");
    await kubectl("create", "pdb", "most", "--selector=app=web", "--max-unavailable=20%");
    expect(await get("pdb/few", ".spec.minAvailable")).toBe("2");
    expect(await get("pdb/most", ".spec")).toBe('{"maxUnavailable":"20%","selector":{"matchLabels":{"app":"web"}}}');
    await kubectl("delete", "pdb", "few", "most");
  });

  it("constructor, toString and __proto__ are ordinary keys of labels and data", async () => {
    await kubectl("label", "pod", "web", "constructor=x");
    expect(await kubectl("get", "pods", "-l", "constructor=x", "-o", "name")).toBe("pod/web");
    expect(await kubectl("get", "pods", "-l", "toString", "-o", "name")).toBe("");
    expect(await kubectl("annotate", "pod", "web", "__proto__=x")).toBe("");
    await apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: odd}\ndata: {__proto__: x, constructor: v}\n");
    expect(await get("configmap/odd", ".data")).toBe('{"__proto__":"x","constructor":"v"}');
  });

  it("a tag that is not known cannot be pulled", async () => {
    await kubectl("run", "failing", "--image=app:typo");
    const reason = () => get("pod/failing", ".status.containerStatuses[0].state.waiting.reason");
    await expect.poll(reason).toMatch(/^(ErrImagePull|ImagePullBackOff)$/);
  });

  it("check finds nothing wrong on a fresh demo", async () => {
    await kubectl("delete", "pod", "failing", "--now");
    await mayBeUnavailable(stage);
    await expect.poll(() => stage.reports.length, PATIENT).toBeGreaterThan(0);
    const { code, stdout } = await runHere(["--kubeconfig", stage.kubeconfig, "check"]);
    expect(code, stdout).toBe(0);
    expect(stdout).toMatch(/and [1-9]\d* rights/);
  });
});
