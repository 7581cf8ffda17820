/** Tries public reports about manifests and injection, with the command line on files. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { readYaml } from "../../shared/kube/yaml.ts";
import { type Outcome, runHere } from "../cli/run-cli.ts";

/** Runs the command line on one file; `FILE` is replaced by its path. */
async function on(text: string, ...args: readonly string[]): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), "report-"));
  try {
    const file = join(folder, "file.yaml");
    await writeFile(file, text);
    const { stdout, stderr, code } = await runHere([...args, "-f", file]);
    return { code, stdout: stdout.replaceAll(file, "FILE"), stderr: stderr.replaceAll(file, "FILE") };
  } finally {
    await rm(folder, { recursive: true });
  }
}

const AGENT = `{name: agent, image: "agent:1"}`;
export const set = (containers: string, more = "") => `apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: web}}
  containers: [${containers}]
  ${more}
---
`;
const pod = (spec: string, metadata = "{name: web, labels: {app: web}}") => `apiVersion: v1
kind: Pod
metadata: ${metadata}
spec: ${spec}
---
`;
const APP = `{containers: [{name: app, image: "nginx:1"}]}`;

async function previewed(text: string): Promise<{ readonly pods: readonly Pod[]; readonly stderr: string }> {
  const { code, stdout, stderr } = await on(text, "preview");
  expect(`${code} ${stderr}`).toMatch(/^0/);
  return { pods: readYaml(stdout).map(({ value }) => value as Pod), stderr };
}

async function sidecar(container: string, more?: string) {
  const { pods } = await previewed(set(container, more) + pod(APP));
  return pods[0]?.spec.containers[0];
}

const namesOf = (one: Pod | undefined) => one?.spec.containers.map(({ name }) => name);
const template = `{metadata: {labels: {app: web}}, spec: ${APP}}`;

export const MANIFESTS = {
  "pods of a List are told apart": async () => {
    const other = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: other}, spec: {template: {spec: ${APP}}}}`;
    const odd = `{apiVersion: v1, kind: Pod, metadata: {name: odd}, spec: {containers: [{name: app, image: 1.2}]}}`;
    const { code, stderr } = await on(
      `${set(AGENT)}{apiVersion: v1, kind: List, items: [${other}, ${odd}]}`,
      "preview",
    );
    expect(code).toBe(3);
    expect(stderr).toMatch(/^Deployment other: no SidecarSet is meant.*\nPod odd: the webhook would refuse the pod: /);
  },
  "a file without pods": async () => {
    const { code, stdout, stderr } = await on("{apiVersion: v1, kind: Service, metadata: {name: web}}", "preview");
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: "",
      stderr: "FILE: no pod and nothing with a pod template in there; add one with -f\n",
    });
  },
  "a CronJob": async () => {
    const job = `{apiVersion: batch/v1, kind: CronJob, metadata: {name: backup}, spec: {jobTemplate: {spec: {template: ${template}}}}}`;
    const { pods } = await previewed(set(AGENT) + job);
    expect([pods[0]?.metadata?.generateName, namesOf(pods[0])]).toEqual(["backup-", ["agent", "app"]]);
  },
  "a List": async () => {
    const items = `[{apiVersion: v1, kind: Service}, {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: ${template}}}]`;
    const { pods, stderr } = await previewed(`${set(AGENT)}{apiVersion: v1, kind: List, items: ${items}}`);
    expect(pods.map(namesOf)).toEqual([["agent", "app"]]);
    expect(stderr).toBe("passed over, because they have no pod template: Service\n");
  },
  "a pod that is injected already": async () => {
    const once = await on(set(AGENT) + pod(APP), "preview");
    const { pods } = await previewed(set(AGENT) + once.stdout);
    expect(namesOf(pods[0])).toEqual(["agent", "app"]);
  },
  "comments, empty documents and Windows line ends": async () => {
    const text = `# Copyright\n\n####\n${set(AGENT)}# nothing\n---\n\n---\n${pod(APP)}null\n...\n`;
    const { pods } = await previewed(`\ufeff${text.replaceAll("\n", "\r\n")}`);
    expect(pods.map(namesOf)).toEqual([["agent", "app"]]);
  },
  "texts with tabs and several lines": async () => {
    const args = ["^(\\d*(\\.\\d*)?µs)+|infinite$", "one\ntwo  \n\n\tlast: x # y\n", "\u200bhidden\u202e", "a\u0007b"];
    const one = await sidecar(`{name: agent, image: "agent:1", args: ${JSON.stringify(args)}}`);
    expect(one?.["args" as never]).toEqual(args);
  },
  "texts that look like booleans": async () => {
    const { stdout } = await on(
      set(`{name: agent, image: "agent:1", args: ["yes", "no", "on", "off", "y", "N"]}`) + pod(APP),
      "preview",
    );
    expect(stdout.match(/- "(yes|no|on|off|y|N)"$/gm)).toHaveLength(6);
  },
  "texts that look like dates": async () => {
    const args = ["2020-01-01", "12:30:45", "1e3", "0666", "0o7", "~"];
    const one = await sidecar(`{name: agent, image: "agent:1", args: ${JSON.stringify(args)}}`);
    expect(one?.["args" as never]).toEqual(args);
  },
  "a mode in octal": async () => {
    const volume =
      "{name: v, projected: {defaultMode: 0644, sources: [{configMap: {name: m, items: [{key: a, path: b, mode: 0o600}]}}]}}";
    const { pods } = await previewed(
      set(`{name: agent, image: "agent:1", volumeMounts: [{name: v, mountPath: /v}]}`, `volumes: [${volume}]`) +
        pod(APP),
    );
    expect(pods[0]?.spec.volumes?.[0]).toMatchObject({
      projected: { defaultMode: 420, sources: [{ configMap: { items: [{ mode: 384 }] } }] },
    });
  },
  "a label that became a float": async () => {
    const { code, stdout } = await on(
      set(AGENT).replace("{name: agent}", "{name: agent, labels: {ticket: 3.56136738e+08}}"),
      "lint",
    );
    expect(code).toBe(4);
    expect(stdout).toMatch(
      /^FILE:3:34: error agent: metadata\.labels\[ticket\] must be a string, not the number 356136738\n/,
    );
  },
  "a key that is given twice": async () => {
    const { stderr } = await on(set(AGENT) + pod(APP, "{name: web, labels: {app: x}, labels: {app: web}}"), "preview");
    expect(stderr).toBe("FILE:11:41: labels is given twice; the last one counts\n");
  },
  "a template that nobody rendered": async () => {
    const { code, stderr } = await on(`{{- if .Values.x }}\n${pod(APP)}`, "preview");
    expect(code).toBe(2);
    expect(stderr).toContain("is this a Helm template? helm template renders it");
  },
  "an API version that is gone": async () => {
    const { code, stderr } = await on(set(AGENT).replace("v1beta1", "v1") + pod(APP), "preview");
    expect(code).toBe(2);
    expect(stderr).toBe(
      "FILE:1:1: there is no SidecarSet of apiVersion apps.kruise.io/v1; write apps.kruise.io/v1beta1 or apps.kruise.io/v1alpha1\n",
    );
  },
  "a native sidecar": async () => {
    const natives = (more: string) =>
      set("", `initContainers: [{name: proxy, image: "p:1", readinessProbe: {tcpSocket: {port: 1}}${more}}]`);
    const init = await on(natives(""), "lint");
    expect(init.stdout).toContain(
      "readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
    );
    const native = await on(natives(", restartPolicy: Always"), "lint");
    expect(native.stdout).toContain(
      "not currently supported; write updateStrategy: {type: NotUpdate}, or have FEATURE_GATES say NativeSidecarInPlaceUpdate=true\n",
    );
    process.env["FEATURE_GATES"] = "NativeSidecarInPlaceUpdate=true";
    const updated = await on(natives(", restartPolicy: Always"), "lint").finally(
      () => delete process.env["FEATURE_GATES"],
    );
    expect(updated).toMatchObject({ code: 0, stdout: "1 SidecarSet: nothing is wrong\n" });
  },
  "fields of the future": async () => {
    const spec = `{brandNew: [1], initContainers: [{name: i, image: "i:1", restartPolicy: Always, next: {a: 1}}], containers: [{name: app, image: "nginx:1", other: 2}]}`;
    const { stdout } = await on(set(AGENT) + pod(spec), "preview", "-o", "patch");
    const paths = (JSON.parse(stdout) as readonly { op: string; path: string }[]).map(
      ({ op, path }) => `${op} ${path}`,
    );
    expect(paths).toEqual(["add /metadata/annotations", "add /spec/containers/0"]);
  },
  "a sidecar that starts first": async () => {
    const first = `{name: z, image: "z:1", podInjectPolicy: BeforeAppContainer, lifecycle: {postStart: {exec: {command: [wait]}}}}`;
    const last = `{name: a, image: "a:1", podInjectPolicy: AfterAppContainer}`;
    const { pods } = await previewed(set(`${last}, ${first}`) + pod(APP));
    expect(namesOf(pods[0])).toEqual(["z", "app", "a"]);
  },
  "two mounts at one path": async () => {
    const mounts = "[{name: v, mountPath: /v}, {name: w, mountPath: /v}]";
    const volumes = "volumes: [{name: v, emptyDir: {}}, {name: w, emptyDir: {}}]";
    const { code, stderr } = await on(
      set(`{name: agent, image: "a:1", volumeMounts: ${mounts}}`, volumes) + pod(APP),
      "preview",
    );
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /^FILE:6:\d+: spec\.containers\[0\]\.volumeMounts\[1\]\.mountPath: Invalid value: "\/v": must be unique;/,
    );
  },
  "a volume name that no pod may have": async () => {
    const text = set(
      `{name: agent, image: "a:1", volumeMounts: [{name: a_b, mountPath: /v}]}`,
      "volumes: [{name: a_b, emptyDir: {}}]",
    );
    const { code, stdout } = await on(text, "lint");
    expect(code).toBe(4);
    expect(stdout).toMatch(
      /^FILE:7:14: error agent: spec\.volumes\[0\]\.name: Invalid value: "a_b": .*\nFILE:6:\d+: error agent: spec\.containers\[0\]\.volumeMounts\[0\]\.name: Not found: "a_b"\n/,
    );
  },
  "a pod that has none of the lists": async () => {
    const more = `initContainers: [{name: i, image: "i:1"}]\n  volumes: [{name: v, emptyDir: {}}]\n  imagePullSecrets: [{name: s}]`;
    const text =
      set(`{name: agent, image: "a:1", volumeMounts: [{name: v, mountPath: /v}]}`, more) +
      pod(APP, "{generateName: web-, labels: {app: web}}");
    const { stdout } = await on(text, "preview", "-o", "patch");
    expect((JSON.parse(stdout) as readonly { path: string }[]).map(({ path }) => path)).toEqual([
      "/metadata/annotations",
      "/spec/containers/0",
      "/spec/initContainers",
      "/spec/volumes",
      "/spec/imagePullSecrets",
    ]);
  },
  "a second look behind another webhook": async () => {
    const once = await on(set(AGENT) + pod(APP), "preview", "-o", "json");
    const injected = JSON.parse(once.stdout) as Pod;
    const spec = { ...injected.spec, containers: [...injected.spec.containers, { name: "mesh", image: "mesh:1" }] };
    const { pods } = await previewed(set(AGENT) + JSON.stringify({ ...injected, spec }));
    expect(namesOf(pods[0])).toEqual(["agent", "app", "mesh"]);
  },
  "two sets that add to one pod": async () => {
    const annotations = (key: string) =>
      `patchPodMetadata: [{patchPolicy: MergePatchJson, annotations: {team: '{"${key}": 1}'}}]`;
    const whitelist = `{apiVersion: v1, kind: ConfigMap, metadata: {name: kruise-configuration, namespace: kruise-system}, data: {SidecarSet_PatchPodMetadata_WhiteList: '{"rules": [{"allowedAnnotationKeyExprs": ["^team$"]}]}'}}\n---\n`;
    const both =
      set(AGENT, annotations("a")) +
      set(`{name: other, image: "o:1"}`, annotations("b")).replace("{name: agent}", "{name: other}");
    const { pods } = await previewed(both + whitelist + pod(APP));
    expect(namesOf(pods[0])?.toSorted()).toEqual(["agent", "app", "other"]);
    expect(JSON.parse(pods[0]?.metadata?.annotations?.["team"] ?? "")).toEqual({ a: 1, b: 1 });
  },
  "injection that is paused": async () => {
    const { stderr } = await on(set(AGENT, "injectionStrategy: {paused: true}") + pod(APP), "preview");
    expect(stderr).toBe("Pod web: injection is paused for agent\n");
  },
  "a quantity without quotes": async () => {
    const one = await sidecar(
      `{name: agent, image: "agent:1", resources: {requests: {cpu: 0.5}, limits: {cpu: 1, memory: 1e9}}}`,
    );
    expect(one).toMatchObject({ resources: { requests: { cpu: "500m" }, limits: { cpu: "1", memory: "1G" } } });
  },
  "volumes that init containers share": async () => {
    const more = `initContainers: [{name: i, image: "i:1", shareVolumePolicy: {type: enabled}}]`;
    const spec = `{volumes: [{name: test, emptyDir: {}}], containers: [{name: app, image: "nginx:1", volumeMounts: [{name: test, mountPath: /test}]}]}`;
    const { pods } = await previewed(set(AGENT, more) + pod(spec));
    expect(pods[0]?.spec.initContainers?.[0]).toMatchObject({ volumeMounts: [{ name: "test", mountPath: "/test" }] });
  },
  "a volume of the downward API": async () => {
    const volume = "{name: info, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}";
    const text = set(
      `{name: agent, image: "a:1", volumeMounts: [{name: info, mountPath: /i}]}`,
      `volumes: [${volume}]`,
    );
    expect(await on(text, "lint")).toMatchObject({ code: 0, stdout: "1 SidecarSet: nothing is wrong\n" });
  },
  "a volume that both have": async () => {
    const text = set(
      `{name: agent, image: "a:1", volumeMounts: [{name: log, mountPath: /l}]}`,
      "volumes: [{name: log, emptyDir: {}}]",
    );
    const { pods } = await previewed(
      text + pod(`{volumes: [{name: log, hostPath: {path: /x}}], containers: [{name: app, image: "n:1"}]}`),
    );
    expect(pods[0]?.spec.volumes).toEqual([{ name: "log", hostPath: { path: "/x" } }]);
  },
  "lists that are null": async () => {
    const text = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: shell
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {"kind":"Deployment","spec":{"template":{"metadata":{"annotations":{"config":"a:\\n  B: c\\n"}}}}}
spec:
  template:
    metadata: {creationTimestamp: null, annotations: {config: "a:\\n  B: c\\n"}, labels: {app: web}}
    spec: {initContainers: null, volumes: null, containers: [{name: shell, image: "x:1", volumeMounts: null, ports: null}]}
status: {replicas: 1}
`;
    const { pods } = await previewed(set(AGENT) + text);
    expect(pods.map(namesOf)).toEqual([["agent", "shell"]]);
    expect(pods[0]?.metadata?.annotations?.["config"]).toBe("a:\n  B: c\n");
  },
  "a workload without a template": async () => {
    const text = "{apiVersion: v1, kind: ReplicationController, metadata: {name: my-nginx}, spec: {replicas: 1}}";
    const { code, stderr } = await on(set(AGENT) + text, "preview");
    expect([code, stderr]).toEqual([2, "FILE: no pod and nothing with a pod template in there; add one with -f\n"]);
  },
  "anchors with one name": async () => {
    const security = "securityContext: {runAsUser: &id 6969, runAsGroup: &id 7000}";
    const { pods } = await previewed(
      set(`{name: a, image: "a:1", ${security}}, {name: b, image: "b:1", securityContext: {runAsUser: *id}}`) +
        pod(APP),
    );
    expect(pods[0]?.spec.containers.map((one) => one["securityContext" as never])).toEqual([
      { runAsUser: 6969, runAsGroup: 7000 },
      { runAsUser: 7000 },
      undefined,
    ]);
  },
  "a port of the host that two containers want": async () => {
    const ports = (port: number) => `ports: [{containerPort: ${port}}]`;
    const refusal = async (network: string, port: number) => {
      const spec = `{${network} containers: [{name: app, image: "n:1", ${ports(port)}}]}`;
      const { code, stderr } = await on(set(`{name: agent, image: "a:1", ${ports(80)}}`) + pod(spec), "preview");
      return [code, stderr];
    };
    const why =
      'Pod web: the API server would refuse the pod: spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"\n';
    expect(await refusal("hostNetwork: true,", 80)).toEqual([3, why]);
    expect(await refusal("hostNetwork: true,", 81)).toEqual([0, ""]);
    expect(await refusal("", 80)).toEqual([0, ""]);
  },
  "an init container with a volume of the SidecarSet": async () => {
    const more = `initContainers: [{name: i, image: "i:1", volumeMounts: [{name: workdir1, mountPath: /v}]}]\n  volumes: [{name: workdir1, emptyDir: {}}]`;
    const { pods } = await previewed(set(AGENT, more) + pod(APP));
    expect(pods[0]?.spec.volumes).toEqual([{ name: "workdir1", emptyDir: {} }]);
  },
} as const;
