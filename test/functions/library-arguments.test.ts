/** Tests that the library answers any arguments, or names the wrong argument in one sentence. */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { check } from "../../functions/library/check.ts";
import { compile } from "../../functions/library/compile.ts";
import { diff } from "../../functions/library/diff.ts";
import { explain } from "../../functions/library/explain.ts";
import { hash } from "../../functions/library/hash.ts";
import { lint } from "../../functions/library/lint.ts";
import { plan } from "../../functions/library/plan.ts";
import { preview } from "../../functions/library/preview.ts";
import { installation } from "../../shared/install/manifests.ts";
import { newPod } from "../support/objects.ts";

const NOW = "2026-01-02T03:04:05Z";
const SIDECAR_SET = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "log-agent", uid: "a", generation: 1, labels: { a: "b" } },
  spec: {
    selector: { matchLabels: { app: "web" } },
    namespaceSelector: { matchExpressions: [{ key: "a", operator: "NotIn", values: ["b"] }] },
    containers: [{ name: "agent", image: "agent:1", volumeMounts: [{ name: "v", mountPath: "/v" }] }],
    volumes: [{ name: "v", emptyDir: {} }],
    updateStrategy: { type: "RollingUpdate", maxUnavailable: "20%", partition: 1 },
    injectionStrategy: { revision: { revisionName: "log-agent-1", policy: "Always" } },
  },
};
const POD = newPod(
  {
    name: "web-0",
    namespace: "shop",
    uid: "u",
    resourceVersion: "1",
    creationTimestamp: NOW,
    labels: { app: "web" },
    annotations: { "kruise.io/sidecarset-injected-list": "log-agent" },
    ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "r", controller: true }],
  },
  {
    nodeName: "n",
    containers: [
      { name: "app", image: "app:1" },
      { name: "agent", image: "agent:0", env: [{ name: "IS_INJECTED", value: "true" }] },
    ],
  },
  {
    phase: "Running",
    conditions: [{ type: "Ready", status: "True", lastTransitionTime: NOW }],
    containerStatuses: [
      { name: "agent", image: "agent:0", imageID: "i", ready: false, state: { waiting: { reason: "x" } } },
    ],
  },
);
const REVISION = {
  apiVersion: "apps/v1",
  kind: "ControllerRevision",
  metadata: {
    name: "log-agent-1",
    namespace: "kruise-system",
    labels: { "kruise.io/sidecarset-name": "log-agent" },
    ownerReferences: [
      { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", name: "log-agent", uid: "a", controller: true },
    ],
  },
  revision: 1,
  data: { spec: SIDECAR_SET.spec },
};
const NAMESPACE = { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop", labels: { a: "c" } } };
const BUDGET = { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "web", namespace: "shop" } };
const pass = {
  featureGates: { InPlaceResize: true },
  kubelets: new Map([["n", "v1.36.0"]]),
  isResizeServed: true,
  disruptionBudgets: [BUDGET],
};
const objects = installation({ url: "https://webhooks.example.com" });
const ofKind = (kind: string) => objects.filter((one) => one.kind === kind);

type Call = (input: never) => unknown;
const CALLS: Readonly<Record<string, readonly [Call, object]>> = {
  plan: [
    plan,
    {
      ...pass,
      sidecarSet: SIDECAR_SET,
      pods: [POD],
      revisions: [REVISION],
      now: NOW,
      readyAfterSeconds: 3,
      maxSteps: 9,
    },
  ],
  diff: [diff, { ...pass, before: SIDECAR_SET, after: SIDECAR_SET, pods: [POD], revisions: [REVISION] }],
  preview: [
    preview,
    {
      object: POD,
      sidecarSets: [SIDECAR_SET],
      namespace: "shop",
      namespaceObject: NAMESPACE,
      revisions: [REVISION],
      now: NOW,
    },
  ],
  explain: [
    explain,
    {
      ...pass,
      ...{ sidecarSet: SIDECAR_SET, pod: POD, pods: [POD], namespaceObject: NAMESPACE, sidecarSets: [SIDECAR_SET] },
      ...{
        revisions: [REVISION],
        registrations: [{ name: "mpod.kb.io", objectSelector: {} }],
        lastPass: NOW,
        now: NOW,
      },
    },
  ],
  compile: [
    compile,
    { sidecarSet: SIDECAR_SET, sidecarSets: [SIDECAR_SET], revisions: [REVISION], now: NOW, failurePolicy: "Fail" },
  ],
  lint: [lint, { objects: [SIDECAR_SET, NAMESPACE], featureGates: { InPlaceResize: true } }],
  hash: [hash, SIDECAR_SET],
  check: [
    check,
    {
      ...pass,
      ...{
        sidecarSets: [SIDECAR_SET],
        pods: [POD],
        namespaces: [NAMESPACE],
        revisions: [REVISION],
        now: NOW,
        lastPass: null,
      },
      mutatingWebhookConfigurations: ofKind("MutatingWebhookConfiguration"),
      validatingWebhookConfigurations: ofKind("ValidatingWebhookConfiguration"),
      definition: ofKind("CustomResourceDefinition")[0],
      configMaps: [
        { metadata: { name: "sidecarset-ledger-log-agent", namespace: "kruise-system" }, data: { ledger: "{}" } },
      ],
      managers: [],
    },
  ],
};

/** Returns the answer of a call, or the sentence of its error. */
function answer(name: string, input: unknown): unknown {
  const [call = () => undefined] = CALLS[name] ?? [];
  try {
    return call(input as never);
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    const { message } = error as TypeError;
    expect(message).toMatch(new RegExp(`^${name}: [^\\n]{5,}$`));
    expect(message).not.toMatch(
      /Cannot (?:read|convert)|is not iterable|\[object|undefined is|is not a function: undefined/,
    );
    return message;
  }
}

describe.each(Object.entries(CALLS))("%s:", (name, [, good]) => {
  it(`${name} answers valid arguments with an object`, () => {
    expect(typeof answer(name, good)).toBe("object");
  });

  it.each([[undefined], [null], [1], ["x"], [[]], [() => 1]])(
    `${name} refuses the argument “%s” in one sentence`,
    (input) => {
      expect(typeof answer(name, input)).toBe("string");
    },
  );

  it(`${name} answers or throws one sentence when one argument is missing, wrong or unknown`, () => {
    if (name === "hash") return;
    for (const key of Object.keys(good)) {
      for (const value of [null, 1, "x", [1], {}, [null], () => 1]) answer(name, { ...good, [key]: value });
      answer(name, Object.fromEntries(Object.entries(good).filter(([one]) => one !== key)));
    }
    expect(answer(name, { ...good, podz: [] })).toMatch(/there is no argument podz/);
  });

  const json = fc.jsonValue({ maxDepth: 3 });
  test(`${name} answers or throws one sentence when any one value is replaced`, () => {
    fc.assert(
      fc.property(fc.infiniteStream(fc.nat(1000)), json, (turns, value) => {
        answer(name, replaced(good, turns, value));
      }),
      { numRuns: 500 },
    );
  });
});

/** Returns a copy with one value replaced, at the place that the turns select. */
function replaced(object: unknown, turns: Iterator<number>, value: unknown): unknown {
  const turn = turns.next().value ?? 0;
  if (typeof object !== "object" || object === null || object instanceof Map || turn % 7 === 0) return value;
  const keys = Object.keys(object);
  const key = keys[turn % keys.length];
  if (key === undefined) return value;
  const child = replaced((object as Readonly<Record<string, unknown>>)[key], turns, value);
  return Array.isArray(object)
    ? object.map((one, index) => (String(index) === key ? child : one))
    : { ...object, [key]: child };
}

it.each([
  ["plan", {}, "plan: sidecarSet is missing"],
  ["plan", { sidecarSet: SIDECAR_SET, pods: POD, now: NOW }, "plan: pods is not a list of Pods"],
  ["plan", { sidecarSet: POD, pods: [], now: NOW }, "plan: sidecarSet: a Pod is no SidecarSet"],
  [
    "plan",
    { sidecarSet: SIDECAR_SET, pods: [], now: "now" },
    'plan: now is not a time such as 2026-01-02T03:04:05Z: "now"',
  ],
  ["plan", { sidecarset: SIDECAR_SET }, "plan: there is no argument sidecarset, perhaps sidecarSet"],
  [
    "plan",
    { sidecarSet: SIDECAR_SET, pods: [{ kind: "Pod" }], now: NOW },
    "plan: pods[0] is not a Pod: it has no metadata.name",
  ],
  [
    "explain",
    {
      sidecarSet: SIDECAR_SET,
      pod: { ...POD, status: { containerStatuses: [{ ready: true }] } },
      now: NOW,
    },
    "explain: pod is not a Pod: the status of a container has no name",
  ],
  ["lint", { objects: [], featureGates: { Strict: true } }, "lint: featureGates has no gate Strict"],
  [
    "compile",
    { sidecarSet: SIDECAR_SET, now: NOW, failurePolicy: "ignore" },
    'compile: failurePolicy is none of Ignore, Fail: "ignore"',
  ],
])("%s names the wrong argument in one sentence (case %#)", (name, input, sentence) => {
  expect(answer(name, input)).toBe(sentence);
});

it.each(Object.keys(CALLS))(
  "%s answers or throws one sentence for circular values, bigints, NaN and symbols",
  (name) => {
    const [, good = {}] = CALLS[name] ?? [];
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    for (const key of Object.keys(good))
      for (const value of [circle, [circle], { a: 1n }, [1n], 1n, Number.NaN, Symbol("x")])
        answer(name, { ...good, [key]: value });
  },
);

/** Returns the lines of a call's interface, and of the interface that calls about passes extend. */
function argumentLines(name: string): readonly string[] {
  const source = readFileSync(`functions/library/${name}.ts`, "utf8");
  const shared = readFileSync("functions/library/pass-input.ts", "utf8");
  const bodyOf = (text: string) =>
    /export interface \w+Input[^{]*\{\n([\s\S]*?)\n\}/.exec(text)?.[1]?.split("\n") ?? [];
  return [...bodyOf(source), ...(/Input extends PassInput/.test(source) ? bodyOf(shared) : [])];
}

const ARGUMENT = /^ {2}readonly (\w+)\??:/;

describe("docs/library.md:", () => {
  const page = readFileSync("docs/library.md", "utf8");
  const rowOf = (name: string) =>
    page.split("\n").find((line) => line.startsWith(`- [\`sidecarset-serverless/${name}\`]`)) ?? "";
  const named = Object.keys(CALLS).filter((name) => name !== "hash");

  it.each(named)("docs/library.md names the arguments that %s requires", (name) => {
    const required = [...(rowOf(name).split(/, from |: /)[1] ?? "").matchAll(/`(\w+)`/g)].map(([, one]) => one);
    expect(answer(name, null)).toBe(`${name}: give it one object: ${name}({ ${required.join(", ")} })`);
  });

  it.each(named)("the type of each argument of %s has a comment about its meaning", (name) => {
    const lines = argumentLines(name);
    expect(lines.filter((line) => ARGUMENT.test(line)).length).toBeGreaterThan(1);
    expect(lines.filter((line, at) => ARGUMENT.test(line) && !/\*\/$/.test(lines[at - 1] ?? ""))).toEqual([]);
  });

  it("docs/library.md has a line for every function that the package exports, and links to its type", () => {
    const { exports } = JSON.parse(readFileSync("package.json", "utf8"));
    expect(
      Object.keys(exports)
        .map((path) => path.replace("./", ""))
        .toSorted(),
    ).toEqual(Object.keys(CALLS).toSorted());
    for (const name of Object.keys(CALLS)) expect(rowOf(name)).toContain(`(../functions/library/${name}.ts)`);
  });
});
