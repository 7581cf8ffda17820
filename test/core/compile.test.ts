/** What is compiled of a SidecarSet and what is said to be missing; that it injects the same is shown on a real API server. */
import { describe, expect, it } from "vitest";
import type { ControllerRevision } from "../../shared/api/kubernetes.ts";
import type { SidecarSet, SidecarSetSpec } from "../../shared/api/sidecarset.ts";
import { type CompileOptions, compileSidecarSet } from "../../shared/core/injection/compile/compile.ts";

const OPTIONS: CompileOptions = {
  now: "2026-03-01T01:00:00.5+01:00",
  kruiseNamespace: "kruise-system",
  failurePolicy: "Ignore",
  sortContainersByName: false,
  mayDecline: false,
  revisions: [],
  others: [],
};
const AGENT = { name: "agent", image: "agent:v1", podInjectPolicy: "BeforeAppContainer" };

function setWith(spec: Partial<SidecarSetSpec> = {}, metadata: object = {}): SidecarSet {
  const annotations = { "kruise.io/sidecarset-hash": "h1", "kruise.io/sidecarset-hash-without-image": "h2" };
  return {
    metadata: { name: "mesh", uid: "u1", annotations, ...metadata },
    spec: { selector: { matchLabels: { app: "web" } }, containers: [AGENT], ...spec },
    status: { latestRevision: "mesh-1" },
  };
}

interface Policy {
  readonly metadata: object;
  readonly spec: {
    readonly failurePolicy: string;
    readonly matchConstraints: { readonly namespaceSelector: object; readonly objectSelector: object };
    readonly matchConditions: readonly { readonly name: string; readonly expression: string }[];
    readonly variables: readonly { readonly name: string; readonly expression: string }[];
    readonly mutations: readonly [{ readonly jsonPatch: { readonly expression: string } }];
  };
}

function compile(set: SidecarSet, options: Partial<CompileOptions> = {}) {
  const { objects, notExpressible } = compileSidecarSet(set, { ...OPTIONS, ...options });
  const [policy, binding] = objects as readonly unknown[] as readonly [Policy, object];
  return { policy, binding, objects, notExpressible };
}

function mutationOf(set: SidecarSet, options: Partial<CompileOptions> = {}): string {
  return compile(set, options).policy.spec.mutations[0].jsonPatch.expression;
}

/** The variables that hold containers, in the order in which they are added, each with where. */
function additions(set: SidecarSet, options: Partial<CompileOptions> = {}): readonly string[] {
  const found = mutationOf(set, options).matchAll(/path: "\/spec\/(\w+\/[-0])", value: variables\.(\w+)/g);
  return [...found].map(([, path, variable]) => `${variable} ${path}`);
}

function conditions(set: SidecarSet, options: Partial<CompileOptions> = {}): readonly string[] {
  return compile(set, options).policy.spec.matchConditions.map(({ name }) => name);
}

describe("a SidecarSet becomes", () => {
  it("a policy that leaves pods alone which decline, only where they may", () => {
    expect(conditions(setWith(), { mayDecline: true })).toContain("declines-no-sidecars");
    expect(conditions(setWith())).not.toContain("declines-no-sidecars");
  });

  it("a policy and its binding, which go with it when it is deleted", () => {
    const { policy, binding, notExpressible } = compile(setWith());
    const metadata = {
      name: "sidecarset-mesh",
      labels: { "kruise.io/sidecarset-name": "mesh" },
      annotations: { "kruise.io/sidecarset-hash": "h1" },
      ownerReferences: [{ apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", name: "mesh", uid: "u1" }],
    };
    expect(policy).toMatchObject({ kind: "MutatingAdmissionPolicy", metadata });
    expect(binding).toMatchObject({
      kind: "MutatingAdmissionPolicyBinding",
      metadata,
      spec: { policyName: "sidecarset-mesh" },
    });
    expect(notExpressible).toEqual([]);
  });

  it("objects without an owner where it comes from a file", () => {
    expect(compile(setWith({}, { uid: undefined })).policy.metadata).not.toHaveProperty("ownerReferences");
  });

  it("a policy for its pods, in its namespaces, outside of the cluster's own", () => {
    const namespaceSelector = { matchLabels: { team: "a" }, matchExpressions: [{ key: "x", operator: "Exists" }] };
    expect(compile(setWith({ namespaceSelector })).policy.spec.matchConstraints).toMatchObject({
      objectSelector: { matchLabels: { app: "web" } },
      namespaceSelector: {
        matchLabels: { team: "a" },
        matchExpressions: [
          { key: "control-plane", operator: "DoesNotExist" },
          { key: "kubernetes.io/metadata.name", operator: "NotIn", values: ["kube-node-lease", "kube-system"] },
          { key: "x", operator: "Exists" },
        ],
      },
    });
  });

  it("records with the hashes, the revision and the time in whole seconds", () => {
    const text = mutationOf(setWith());
    const record = { updateTimestamp: "2026-03-01T00:00:00Z", hash: "h1", sidecarSetName: "mesh" };
    const whole = JSON.stringify({ ...record, sidecarList: ["agent"], controllerRevision: "mesh-1" });
    expect(text).toContain(JSON.stringify(`"mesh":${whole}`));
    expect(text).toContain('["mesh"]).distinct().sort().join(",")');
  });

  it("containers before and after the pod's, init containers sorted by name", () => {
    const after = { ...AGENT, podInjectPolicy: "AfterAppContainer" };
    const set = setWith({
      containers: [
        { ...AGENT, name: "b" },
        { ...after, name: "c" },
        { ...AGENT, name: "a" },
      ],
      initContainers: [
        { ...after, name: "z" },
        { ...after, name: "y" },
      ],
    });
    const inits = ["initContainers1a initContainers/-", "initContainers0a initContainers/-"];
    const [a, b, c] = ["containers2a containers/0", "containers0a containers/0", "containers1a containers/-"];
    expect(additions(set)).toEqual([...inits, c, a, b]);
    expect(additions(set, { sortContainersByName: true })).toEqual([...inits, c, b, a]);
  });

  it("both containers of a hot upgrade, and the annotations that say which works", () => {
    const upgradeStrategy = { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "empty:v1" };
    const set = setWith({ containers: [{ ...AGENT, upgradeStrategy }] });
    expect(additions(set)).toEqual(["containers0b containers/0", "containers0a containers/0"]);
    const [first, second] = compile(set).policy.spec.variables.map(({ expression }) => expression);
    expect(first).toContain('"name": dyn("agent-1"), "image": dyn("agent:v1")');
    expect(second).toContain('"name": dyn("agent-2"), "image": dyn("empty:v1")');
    expect(mutationOf(set)).toContain('"/metadata/annotations/versionalt.sidecarset.kruise.io~1agent-2", value: "1"');
    expect(mutationOf(set)).toContain('["\\"agent\\":\\"agent-1\\""]');
  });

  it("each volume that is mounted, once, and no other", () => {
    const volumeMounts = [
      { name: "data", mountPath: "/a" },
      { name: "data", mountPath: "/b" },
    ];
    const volumes = [
      { name: "data", emptyDir: {} },
      { name: "unused", emptyDir: {} },
    ];
    const text = mutationOf(setWith({ containers: [{ ...AGENT, volumeMounts }], volumes }));
    expect(text.match(/"\/spec\/volumes\/-"/g)).toHaveLength(1);
    expect(text).not.toContain("unused");
  });

  it("the revision that new pods are to get, with its hashes", () => {
    const data = { spec: { containers: [{ ...AGENT, image: "agent:v0" }] } };
    const revision = {
      metadata: {
        name: "mesh-0",
        namespace: "kruise-system",
        annotations: { "kruise.io/sidecarset-hash": "h0", "kruise.io/sidecarset-hash-without-image": "h2" },
      },
      revision: 1,
      data,
    } as unknown as ControllerRevision;
    const set = setWith({ injectionStrategy: { revision: { revisionName: "mesh-0" } } });
    const { policy } = compile(set, { revisions: [revision] });
    expect(policy.spec.variables[0]?.expression).toContain('"image": dyn("agent:v0")');
    expect(policy.spec.mutations[0].jsonPatch.expression).toContain('\\"hash\\":\\"h0\\"');
  });

  it("the policy for what its canary does not take", () => {
    const annotations = { "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "mesh" };
    const canary = setWith(
      {
        selector: { matchLabels: { app: "web", canary: "yes" } },
        namespaceSelector: { matchExpressions: [{ key: "team", operator: "Exists" }] },
      },
      { name: "next", annotations },
    );
    const { policy } = compile(setWith(), { others: [setWith(), canary] });
    const { expression } = policy.spec.matchConditions.at(-1) ?? { expression: "" };
    expect(expression).toMatch(/^!\(.*"canary"\] in \["yes"\].*"team" in namespaceObject\.metadata\.labels\)$/);
    expect(conditions(canary, { others: [setWith(), canary] })).not.toContain("not-for-canary-0");
    const paused = { ...canary, spec: { ...canary.spec, injectionStrategy: { paused: true } } };
    expect(conditions(setWith(), { others: [paused] })).not.toContain("not-for-canary-0");
  });
});

it("pods that a policy could not treat as the webhook does are left to that", () => {
  expect(conditions(setWith())).toEqual([
    "not-a-mirror-pod",
    "no-launch-order",
    "readable-records",
    "no-container-of-that-name",
  ]);
  const named = compile(setWith()).policy.spec.matchConditions.at(-1)?.expression;
  expect(named).toBe('!object.spec.?containers.orValue([]).exists(c, c.name in ["agent"])');
});

describe("what a sidecar takes from the pod is an expression:", () => {
  const variable = (container: object, name: string, spec: Partial<SidecarSetSpec> = {}) =>
    compile(setWith({ containers: [{ ...AGENT, ...container }], ...spec })).policy.spec.variables.find(
      (one) => one.name === name,
    )?.expression;

  it("variables of a container by name, sorted", () => {
    const transferEnv = [{ sourceContainerName: "main", envName: "B", envNames: ["A", "B"] }];
    const text = variable({ transferEnv }, "containers0Env") ?? "";
    expect([...text.matchAll(/e\.name == "(\w)"/g)].map(([, name]) => name)).toEqual(["A", "B"]);
    expect(text).toContain('c.name == "main"');
  });

  it.each([
    ["a label", "metadata.labels['from']", 'object.metadata.?labels[?"from"].orValue("")'],
    ["an annotation", "metadata.annotations['from']", 'object.metadata.?annotations[?"from"].orValue("")'],
  ])("of the container that %s names", (_what, fieldPath, expression) => {
    const transferEnv = [{ sourceContainerNameFrom: { fieldRef: { fieldPath } }, envName: "A" }];
    expect(variable({ transferEnv }, "containers0Env")).toContain(`c.name == ${expression}`);
  });

  it.each([
    [
      undefined,
      '(object.metadata.?annotations[?"from"].hasValue() ? object.metadata.?annotations[?"from"].orValue("") : "x")',
    ],
    [
      "Retain",
      '(object.metadata.?annotations[?"from"].hasValue() ? object.metadata.?annotations[?"from"].orValue("") : "x")',
    ],
    ["Overwrite", '"x"'],
    ["Unknown", 'object.metadata.?annotations[?"from"].orValue("")'],
  ])("of the container that an annotation names which is patched before (%s)", (patchPolicy, expression) => {
    const fieldRef = { fieldPath: "metadata.annotations['from']" };
    const transferEnv = [{ sourceContainerNameFrom: { fieldRef }, envName: "A" }];
    const patch = { annotations: { from: "x" }, ...(patchPolicy ? { patchPolicy } : {}) };
    expect(variable({ transferEnv }, "containers0Env", { patchPodMetadata: [patch] })).toContain(
      `c.name == ${expression})`,
    );
  });

  it("no variables by any other field", () => {
    const fieldRef = { fieldPath: "metadata.name" };
    expect(variable({ transferEnv: [{ sourceContainerNameFrom: { fieldRef }, envName: "A" }] }, "containers0Env")).toBe(
      undefined,
    );
  });

  it("mounts of the apps at paths that are free, and the variables in them", () => {
    const container = {
      shareVolumePolicy: { type: "enabled" },
      volumeMounts: [{ name: "data", mountPath: "/data" }],
      volumeDevices: [{ name: "disk", devicePath: "/dev/a" }],
    };
    expect(variable(container, "containers0Mounts")).toContain('!(x.mountPath in ["/data", "/dev/a"])');
    expect(variable(container, "containers0Env")).toBe("variables.pathEnv");
    expect(variable(container, "apps")).toContain("IS_INJECTED");
    expect(variable({}, "apps")).toBe(undefined);
  });

  it("devices of the apps at paths that neither a mount nor a device has", () => {
    const devices = { shareVolumeDevicePolicy: { type: "enabled" }, volumeMounts: [{ name: "d", mountPath: "/d" }] };
    expect(variable(devices, "containers0a")).toContain('!(x.devicePath in ["/d"]) && variables.appDevices');
    const both = { ...devices, shareVolumePolicy: { type: "enabled" } };
    expect(variable(both, "containers0a")).toContain(
      "!variables.containers0Mounts.exists(m, m.mountPath == x.devicePath)",
    );
  });
});

describe("it is said what is missing, and what happens instead:", () => {
  const policy = { targetContainersMode: "sum", resourcesExpr: {} };
  it.each<[string, Partial<SidecarSetSpec>, string]>([
    [
      "derived resources",
      { containers: [{ ...AGENT, resourcesPolicy: policy }] },
      "spec.containers[0].resourcesPolicy",
    ],
    [
      "those of an init container",
      { initContainers: [AGENT, { ...AGENT, name: "b", resourcesPolicy: policy }], containers: [] },
      "spec.initContainers[1].resourcesPolicy",
    ],
    [
      "a merge of JSON",
      { patchPodMetadata: [{}, { annotations: { a: "{}" }, patchPolicy: "MergePatchJson" }] },
      "spec.patchPodMetadata[1].patchPolicy",
    ],
  ])("%s, while the rest is compiled", (_what, spec, field) => {
    const { objects, notExpressible } = compile(setWith(spec));
    expect(notExpressible).toEqual([expect.objectContaining({ field, isFatal: false })]);
    expect(objects).toHaveLength(2);
    expect(JSON.stringify(objects)).not.toContain("resourcesPolicy");
  });

  const hot = { ...AGENT, name: "hot", upgradeStrategy: { upgradeType: "HotUpgrade" } };
  it.each<[string, Partial<SidecarSetSpec>, string]>([
    ["a paused injection", { injectionStrategy: { paused: true } }, "spec.injectionStrategy.paused"],
    ["a selector that selects nothing", { selector: {} }, "spec.selector"],
    ["no containers", { containers: [] }, "spec"],
    [
      "an operator that nobody knows",
      { namespaceSelector: { matchExpressions: [{ key: "a", operator: "Near" }] } },
      "spec.namespaceSelector",
    ],
    [
      "a launch order",
      { containers: [{ ...AGENT, env: [{ name: "A" }, { name: "KRUISE_CONTAINER_PRIORITY", value: "1" }] }] },
      "spec.containers[0].env[1]",
    ],
    [
      "derived resources beside a hot upgrade",
      { containers: [hot, { ...AGENT, resourcesPolicy: policy }] },
      "spec.containers[1].resourcesPolicy",
    ],
    [
      "variables of a sidecar of its own",
      { containers: [hot, { ...AGENT, transferEnv: [{ sourceContainerName: "hot-1", envName: "A" }] }] },
      "spec.containers[1].transferEnv[0].sourceContainerName",
    ],
    [
      "a choice by chance",
      { injectionStrategy: { revision: { revisionName: "mesh-0", policy: "Partial" } } },
      "spec.injectionStrategy.revision",
    ],
    [
      "an annotation that holds records",
      { patchPodMetadata: [{ annotations: { "version.sidecarset.kruise.io/a": "1" } }] },
      "spec.patchPodMetadata[0].annotations[version.sidecarset.kruise.io/a]",
    ],
    [
      "an expression beyond what is read",
      { containers: [{ ...AGENT, env: [{ name: "A", value: "x".repeat(100_000) }] }] },
      "spec",
    ],
  ])("%s: nothing is compiled", (_what, spec, field) => {
    const { objects, notExpressible } = compile(setWith(spec));
    expect(notExpressible).toEqual([expect.objectContaining({ field, effect: "nothing is compiled", isFatal: true })]);
    expect(objects).toEqual([]);
  });
});
