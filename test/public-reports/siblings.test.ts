/**
 * Tests three inputs for each class of input with which users of SidecarSets had problems. The word at the start of
 * each row is the result of the first try, on 29 November 2026. The rest is the expected result.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { isConsistent } from "../../shared/core/pod/is-consistent.ts";
import { type Outcome, runHere } from "../cli/run-cli.ts";
import { set } from "./manifests.ts";

let file: string;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "siblings-"));
  file = join(folder, "file.yaml");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function run(command: string, text: string): Promise<Outcome> {
  await writeFile(file, text);
  return runHere([...command.split(" "), "-f", file]);
}

const APP = `{name: app, image: "nginx:1"}`;
const pod = (spec = `{containers: [${APP}]}`, metadata = "name: web, labels: {app: web}") =>
  `apiVersion: v1\nkind: Pod\nmetadata: {${metadata}}\nspec: ${spec}\n`;
const AGENT = `{name: agent, image: "agent:1"}`;
const HOT =
  'upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: "e:1"}, lifecycle: {postStart: {exec: {command: [x]}}}';
const withField = (field: string, more = "") => set(`{name: agent, image: "agent:1", ${field}}`, more);

type Row = readonly [
  input: string,
  tried: string,
  run: readonly [first: "right" | "wrong", command: string, code: number],
  text: string,
  ...said: readonly (RegExp | string)[],
];

const ROWS: readonly Row[] = [
  [
    "01 excluded pods",
    "a mirror pod of a kubelet",
    ["right", "preview", 0],
    set(AGENT) + pod(undefined, `name: web, labels: {app: web}, annotations: {kubernetes.io/config.mirror: "a"}`),
    /mirror/,
  ],
  [
    "01 excluded pods",
    "a pod in a namespace labelled control-plane",
    ["right", "preview", 0],
    `${set(AGENT)}apiVersion: v1\nkind: Namespace\nmetadata: {name: plane, labels: {control-plane: x}}\n---\n${pod(undefined, "name: web, namespace: plane, labels: {app: web}")}`,
    /namespace plane/,
  ],
  [
    "01 excluded pods",
    "a StatefulSet in kube-system",
    ["right", "preview", 0],
    `${set(AGENT)}apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web, namespace: kube-system}\nspec: {template: {metadata: {labels: {app: web}}, spec: {containers: [${APP}]}}}\n`,
    /kube-system/,
  ],
  [
    "01 new fields",
    "a native sidecar with a resizePolicy",
    ["wrong", "preview", 0],
    set(
      `{name: other, image: "x:1"}`,
      `initContainers: [{name: agent, image: "agent:1", restartPolicy: Always, resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]}]\n  updateStrategy: {type: NotUpdate}`,
    ) + pod(),
    "resizePolicy:",
  ],
  [
    "01 new fields",
    "a variable whose name begins with a digit",
    ["wrong", "preview", 0],
    withField(`env: [{name: 1A, value: "b"}]`) + pod(),
    "name: 1A",
    /before Kubernetes 1\.32/,
  ],
  [
    "01 new fields",
    "a hook that sleeps for 0 seconds",
    ["wrong", "preview", 0],
    withField("lifecycle: {preStop: {sleep: {seconds: 0}}}") + pod(),
    "seconds: 0",
    /before Kubernetes 1\.33/,
  ],
  [
    "01 new fields",
    "a stop signal in an init container that keeps running",
    ["right", "preview", 0],
    set(
      `{name: other, image: "x:1"}`,
      `initContainers: [{name: agent, image: "agent:1", restartPolicy: Always, lifecycle: {stopSignal: SIGINT}}]\n  updateStrategy: {type: NotUpdate}`,
    ) + pod(),
    "stopSignal: SIGINT",
  ],
  [
    "01 new fields",
    "a rule that restarts all containers",
    ["right", "preview", 0],
    withField(
      "restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: NotIn, values: [0]}}]",
    ) + pod(),
    "action: RestartAllContainers",
  ],
  [
    "01 new fields",
    "a mount that is recursively read-only",
    ["right", "preview", 0],
    withField(
      "volumeMounts: [{name: v, mountPath: /v, readOnly: true, recursiveReadOnly: Enabled}]",
      "volumes: [{name: v, emptyDir: {}}]",
    ) + pod(),
    "recursiveReadOnly: Enabled",
  ],
  [
    "03 names that are taken",
    "the app has the name of the sidecar's second slot",
    ["right", "preview", 3],
    set(`{name: agent, image: "agent:1", ${HOT}}`) +
      pod(`{containers: [{name: agent-2, image: "x:1"}], initContainers: [{name: agent-1, image: "x:1"}]}`),
    /agent-1/,
  ],
  [
    "03 names that are taken",
    "two SidecarSets, one with an init container that has the name of the other's slot",
    ["right", "lint", 3],
    `${set(`{name: agent, image: "agent:1", ${HOT}}`)}${set(`{name: other, image: "x:1"}`, `initContainers: [{name: agent-2, image: "x:1"}]`).replace("metadata: {name: agent}", "metadata: {name: second}")}`,
    /agent-2/,
  ],
  [
    "03 names that are taken",
    "a hot sidecar of 61 letters, which is the longest",
    ["right", "lint", 0],
    set(`{name: ${"a".repeat(61)}, image: "agent:1", ${HOT}}`),
    "nothing is wrong",
  ],
  [
    "15 wrong shapes",
    "containers in one map instead of a list",
    ["right", "lint", 4],
    set(AGENT).replace(`[${AGENT}]`, AGENT),
    "spec.containers must be a list",
  ],
  [
    "15 wrong shapes",
    "a selector of plain labels",
    ["right", "lint", 4],
    set(AGENT).replace("matchLabels: {app: web}", "app: web"),
    /selector/,
  ],
  [
    "15 wrong shapes",
    "a SidecarSet with a namespace and with a list of labels",
    ["right", "lint", 4],
    set(AGENT).replace("{name: agent}", "{name: agent, namespace: x, labels: [a]}"),
    /metadata\.labels/,
  ],
  [
    "15 wrong shapes",
    "a list with an empty item",
    ["wrong", "lint", 2],
    set(AGENT).replace(`[${AGENT}]`, `[${AGENT}, {name: two, image: "x:1", args: [a, null]}]`),
    /:6:\d+: spec\.containers\[1\]\.args\[1\] is empty; write the item, or leave it out/,
  ],
  [
    "15 wrong shapes",
    "a pod whose lists are null, as charts print empty values",
    ["wrong", "preview", 0],
    set(AGENT) + pod(`{initContainers: null, volumes: null, imagePullSecrets: null, containers: [${APP}]}`),
    "agent:1",
  ],
  [
    "18 YAML 1.1",
    "an argument that is the word yes without quotes",
    ["right", "lint", 4],
    withField("args: [yes]"),
    /spec\.containers\[0\]\.args\[0\]/,
  ],
  [
    "18 YAML 1.1",
    "a mode of 0o755 and one of 0755",
    ["right", "preview", 0],
    set(
      AGENT,
      "volumes: [{name: a, configMap: {name: c, defaultMode: 0o755}}, {name: b, configMap: {name: c, defaultMode: 0755}}]",
    ).replace(
      `[${AGENT}]`,
      `[{name: agent, image: "agent:1", volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /b}]}]`,
    ) + pod(),
    /defaultMode: 493[\s\S]+defaultMode: 493/,
  ],
  [
    "18 YAML 1.1",
    "a value that begins with a zero, in quotes",
    ["right", "preview", 0],
    withField(`env: [{name: A, value: "0644"}]`) + pod(),
    /value: ["']0644["']/,
  ],
  [
    "21 sources of the future",
    "an unknown source beside a known one",
    ["right", "lint", 3],
    withField("volumeMounts: [{name: v, mountPath: /v}]", "volumes: [{name: v, emptyDir: {}, future: {}}]"),
    /no field spec\.volumes\[0\]\.future.*no effect/,
  ],
  [
    "21 sources of the future",
    "an unknown source in a projected volume",
    ["right", "lint", 3],
    withField(
      "volumeMounts: [{name: v, mountPath: /v}]",
      "volumes: [{name: v, projected: {sources: [{configMap: {name: c}}, {future: {}}]}}]",
    ),
    /no field spec\.volumes\[0\]\.projected\.sources\[1\]\.future/,
  ],
  [
    "21 sources of the future",
    "an unknown source in v1alpha1",
    ["right", "lint", 4],
    withField("volumeMounts: [{name: v, mountPath: /v}]", "volumes: [{name: v, future: {}}]").replace(
      "v1beta1",
      "v1alpha1",
    ),
    /the volume v would be an emptyDir/,
  ],
  [
    "23 typos",
    "a volume with secrets in the plural",
    ["right", "lint", 4],
    withField("volumeMounts: [{name: v, mountPath: /v}]", "volumes: [{name: v, secrets: {secretName: s}}]"),
    /did you mean secret; without it the volume v would be an emptyDir/,
  ],
  [
    "23 typos",
    "a probe with the wrong case",
    ["right", "lint", 3],
    withField("livenessprobe: {tcpSocket: {port: 1}}"),
    /did you mean livenessProbe/,
  ],
  [
    "23 typos",
    "maxUnavailable beside updateStrategy",
    ["right", "lint", 3],
    set(AGENT, "maxUnavailable: 1"),
    /spec\.maxUnavailable/,
  ],
  [
    "24 pinned revisions",
    "a pinned revision without a cluster to read it from",
    ["right", "lint", 3],
    set(AGENT, "injectionStrategy: {revision: {customVersion: stable, policy: Always}}"),
    /only a cluster can tell/,
  ],
  [
    "24 pinned revisions",
    "a policy that does not exist",
    ["right", "lint", 4],
    set(AGENT, "injectionStrategy: {revision: {customVersion: stable, policy: Sometimes}}"),
    /policy/,
  ],
  [
    "24 pinned revisions",
    "a paused injection",
    ["right", "preview", 0],
    set(AGENT, "injectionStrategy: {paused: true}") + pod(),
    /injection is paused for agent/,
  ],
  [
    "29 odd inputs",
    "a pod with generateName alone, in UTF-8 with a byte order mark",
    ["right", "preview", 0],
    `\uFEFF${set(AGENT)}${pod(undefined, 'generateName: web-, labels: {app: web}, annotations: {note: "中文"}')}`,
    "agent:1",
    "中文",
  ],
  [
    "29 odd inputs",
    "a JobSet, three templates deep, beside a Service",
    ["right", "preview", 0],
    `${set(AGENT)}apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: j}\nspec: {replicatedJobs: [{name: a, template: {spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [${APP}]}}}}}]}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n`,
    "agent:1",
    "passed over",
  ],
  [
    "29 odd inputs",
    "a file whose last document is only a comment",
    ["right", "preview", 0],
    `${set(AGENT)}${pod()}---\n# the end\n`,
    "agent:1",
  ],
];

it.each(ROWS.map((one) => [one[0], one[1], one] as const))(
  "an input similar to %s gives the right outcome: %s",
  async (_, __, [, , [, command, code], text, ...said]) => {
    const outcome = await run(command, text);
    const all = `${outcome.stdout}\n${outcome.stderr}`;
    for (const one of said) expect(all).toMatch(one);
    expect(outcome.code).toBe(code);
  },
);

const DIGEST = `sha256:${"1".repeat(64)}`;
const OTHER = `sha256:${"2".repeat(64)}`;

/** All three inputs were right at the first try. */
it.each([
  [
    "a registry with a port, and a tag beside the digest",
    `localhost:5000/agent:1@${DIGEST}`,
    `localhost:5000/agent@${DIGEST}`,
    true,
  ],
  [
    "a bare digest that differs",
    `reg.example/agent@${DIGEST}`,
    `mirror.example/cache/reg.example/agent@${DIGEST}`,
    true,
  ],
  ["a bare digest that is another one", `reg.example/agent@${DIGEST}`, OTHER, false],
])("an input similar to 14 image status gives the right outcome: %s", (_, image, imageID, is) => {
  const status = { containerStatuses: [{ name: "agent", image, imageID, ready: true, restartCount: 0 }] };
  const one = { metadata: { name: "web" }, spec: { containers: [{ name: "agent", image }] }, status };
  expect(isConsistent(one as unknown as Pod, "agent", new Set(["agent"]))).toBe(is);
});

/** The two other classes are in test/lambda/doors.test.ts and test/core/upgrade/down-pods.test.ts. */
it("each class of input from files has three similar inputs", () => {
  const counts = new Map<string, number>();
  for (const [input] of ROWS) counts.set(input, (counts.get(input) ?? 0) + 1);
  expect(counts.size).toBe(9);
  expect(Math.min(...counts.values())).toBeGreaterThanOrEqual(3);
});
