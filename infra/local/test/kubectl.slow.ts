/** kubectl without special flags against the embedded cluster. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LocalCluster, startLocalCluster } from "../cluster.ts";

const run = promisify(execFile);

const hasKubectl = await run("kubectl", ["version", "--client"]).then(
  () => true,
  () => false,
);
if (!hasKubectl) process.stdout.write("kubectl tests are skipped: there is no kubectl on the PATH\n");

const POD = `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers: [{name: main, image: "nginx:1.25"}]
`;

const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers: [{name: main, image: "shop:1"}]
`;

const DEFINITION = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      additionalPrinterColumns: [{name: SIZE, type: integer, jsonPath: .spec.size}]
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: integer}}}
            status: {type: object, properties: {seen: {type: integer}}}
`;

const GADGET = `apiVersion: example.com/v1
kind: Gadget
metadata: {name: one}
spec: {size: 3}
`;

describe.skipIf(!hasKubectl)("kubectl:", () => {
  let cluster: LocalCluster;
  let directory: string;
  let environment: NodeJS.ProcessEnv;

  beforeAll(async () => {
    cluster = await startLocalCluster({ startDelayMs: 10, readyDelayMs: 10, terminationDelayMs: 10 });
    directory = await mkdtemp(join(tmpdir(), "kubectl-"));
    const kubeconfig = join(directory, "config");
    await writeFile(kubeconfig, cluster.kubeconfig());
    environment = { ...process.env, KUBECONFIG: kubeconfig, HOME: directory };
  });

  afterAll(async () => {
    await cluster.close();
    await rm(directory, { recursive: true, force: true });
  });

  async function kubectl(...words: readonly string[]): Promise<string> {
    const { stdout } = await run("kubectl", words, { env: environment });
    return stdout.trim();
  }

  async function apply(text: string): Promise<string> {
    const file = join(directory, "object.yaml");
    await writeFile(file, text);
    return kubectl("apply", "-f", file);
  }

  function ready(name: string): Promise<string> {
    return kubectl("wait", "--for=condition=Ready", `pod/${name}`, "--timeout=300s");
  }

  it("kubectl apply creates a pod, reports no change, and configures a changed pod", async () => {
    expect(await apply(POD)).toBe("pod/web created");
    expect(await apply(POD)).toBe("pod/web unchanged");
    expect(await apply(POD.replace("1.25", "1.26"))).toBe("pod/web configured");
    await ready("web");
  });

  it("kubectl apply refuses an unknown field of a custom resource", async () => {
    expect(await apply(DEFINITION)).toBe("customresourcedefinition.apiextensions.k8s.io/gadgets.example.com created");
    await expect(apply(GADGET.replace("size", "sizes"))).rejects.toThrow(
      /strict decoding error: unknown field "spec.sizes"/,
    );
    expect(await apply(GADGET)).toBe("gadget.example.com/one created");
  });

  it("kubectl get prints the columns of pods and of custom resources", async () => {
    const [header, row] = (await kubectl("get", "pods")).split("\n");
    expect(header?.split(/ +/)).toEqual(["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    expect(row).toMatch(/^web +1\/1 +Running +\d/);
    expect(await kubectl("get", "gadgets")).toMatch(/^NAME +SIZE\none +3$/);
    expect(await kubectl("get", "nodes", "-o", "name")).toBe("node/node-1\nnode/node-2\nnode/node-3");
  });

  it("kubectl get -o json prints the whole object", async () => {
    const pod = JSON.parse(await kubectl("get", "pod", "web", "-o", "json"));
    expect(pod).toMatchObject({
      kind: "Pod",
      spec: { containers: [{ image: "nginx:1.26" }] },
      status: { phase: "Running" },
    });
  });

  it("kubectl describe describes a pod, a namespace, a node and a custom resource", async () => {
    expect(await kubectl("describe", "pod", "web")).toMatch(/Image ID: +docker-pullable:\/\/nginx@sha256:[0-9a-f]{64}/);
    expect(await kubectl("describe", "namespace", "default")).toMatch(/Status: +Active/);
    expect(await kubectl("describe", "node", "node-1")).toMatch(/Kubelet Version: +v1\.32/);
    expect(await kubectl("describe", "gadget", "one")).toMatch(/Size: +3/);
  });

  it("kubectl label and annotate change a pod and a custom resource", async () => {
    expect(await kubectl("label", "pod", "web", "tier=front")).toBe("pod/web labeled");
    expect(await kubectl("annotate", "gadget", "one", "note=x")).toBe("gadget.example.com/one annotated");
    expect(await kubectl("get", "pods", "-l", "tier=front", "-o", "name")).toBe("pod/web");
  });

  it("kubectl patch accepts strategic, merge and JSON patches", async () => {
    const spec = '{"spec":{"containers":[{"name":"main","image":"nginx:1.27"}]}}';
    expect(await kubectl("patch", "pod", "web", "-p", spec)).toBe("pod/web patched");
    expect(await kubectl("patch", "gadget", "one", "--type=merge", "-p", '{"spec":{"size":4}}')).toMatch(/patched$/);
    const operations = '[{"op":"replace","path":"/spec/size","value":5}]';
    expect(await kubectl("patch", "gadget", "one", "--type=json", "-p", operations)).toMatch(/patched$/);
    expect(await kubectl("get", "gadget", "one", "-o", "jsonpath={.spec.size} {.metadata.generation}")).toBe("5 3");
  });

  it("kubectl edit changes a custom resource with KUBE_EDITOR", async () => {
    const { stdout } = await run("kubectl", ["edit", "gadget", "one"], {
      env: { ...environment, KUBE_EDITOR: "sed -i /size:/s/5$/6/" },
    });
    expect(stdout.trim()).toBe("gadget.example.com/one edited");
    expect(await kubectl("get", "gadget", "one", "-o", "jsonpath={.spec.size}")).toBe("6");
  });

  it("kubectl get -w prints each change of a custom resource", async () => {
    const watching: ChildProcess = spawn("kubectl", ["get", "gadgets", "-w"], { env: environment });
    let shown = "";
    watching.stdout?.on("data", (chunk) => {
      shown += chunk;
    });
    await expect.poll(() => shown).toMatch(/one +6\n/);
    await kubectl("patch", "gadget", "one", "--type=merge", "-p", '{"spec":{"size":7}}');
    await expect.poll(() => shown).toMatch(/one +7\n/);
    expect(shown.match(/NAME/g)).toHaveLength(1);
    watching.kill();
  });

  it("kubectl create, scale, set image and rollout status work for a Deployment", async () => {
    expect(await kubectl("create", "namespace", "shop")).toBe("namespace/shop created");
    const literal = "--from-literal=k=v";
    expect(await kubectl("create", "configmap", "settings", literal, "-n", "shop")).toBe("configmap/settings created");
    expect(await kubectl("create", "secret", "generic", "hidden", literal, "-n", "shop")).toBe("secret/hidden created");
    const image = ["--image=tool:1", "--port=80", "--replicas=0", "-n", "shop"];
    expect(await kubectl("create", "deployment", "tool", ...image)).toBe("deployment.apps/tool created");
    expect(await kubectl("get", "secret", "hidden", "-n", "shop", "-o", "jsonpath={.data.k}")).toBe("dg==");
    expect(await kubectl("get", "deployment", "tool", "-n", "shop")).toMatch(/tool +0\/0/);
    expect(await apply(DEPLOYMENT)).toBe("deployment.apps/shop created");
    expect(await kubectl("rollout", "status", "deployment/shop", "--timeout=300s")).toMatch(/successfully rolled out$/);
    expect(await kubectl("scale", "deployment/shop", "--replicas=3")).toBe("deployment.apps/shop scaled");
    expect(await kubectl("set", "image", "deployment/shop", "main=shop:2")).toBe("deployment.apps/shop image updated");
    expect(await kubectl("rollout", "status", "deployment/shop", "--timeout=300s")).toMatch(/successfully rolled out$/);
    expect(await kubectl("get", "deployment", "shop")).toMatch(/shop +3\/3 +3 +3/);
    expect(await kubectl("describe", "deployment", "shop")).toMatch(/Image: +shop:2/);
  });

  it("kubectl delete waits until the object is deleted", async () => {
    expect(await kubectl("delete", "deployment", "shop")).toBe('deployment.apps "shop" deleted');
    expect(await kubectl("delete", "pod", "web")).toBe('pod "web" deleted');
    expect(await kubectl("delete", "namespace", "shop")).toBe('namespace "shop" deleted');
    expect(await kubectl("delete", "gadget", "--all")).toBe('gadget.example.com "one" deleted');
    await expect(kubectl("get", "pod", "web")).rejects.toThrow(/\(NotFound\): pods "web" not found/);
  });

  it("kubectl api-resources lists the served custom resource", async () => {
    expect(await kubectl("api-resources", "--api-group=example.com", "-o", "name")).toBe("gadgets.example.com");
  });
});
