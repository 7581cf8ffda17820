/**
 * Tests the policy of a SidecarSet, and the parts that it cannot express. Tests on a real API server show that it
 * injects the same.
 */
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

/** Returns the variables that hold containers, in the order of their addition, each with its place. */
function additions(set: SidecarSet, options: Partial<CompileOptions> = {}): readonly string[] {
  const found = mutationOf(set, options).matchAll(/path: "\/spec\/(\w+\/[-0])", value: variables\.(\w+)/g);
  return [...found].map(([, path, variable]) => `${variable} ${path}`);
}

function conditions(set: SidecarSet, options: Partial<CompileOptions> = {}): readonly string[] {
  return compile(set, options).policy.spec.matchConditions.map(({ name }) => name);
}

describe("compileSidecarSet:", () => {
  it("values that change in place are injected as references, and their annotations are added", () => {
    const set = setWith(
      { containers: [{ ...AGENT, env: [{ name: "LEVEL", value: "info" }] }] },
      { annotations: { "sidecarset.kruise.io/in-place": "Values" } },
    );
    const { policy } = compile(set);
    const key = "mesh.value.sidecarset.kruise.io/agent.LEVEL";
    expect(policy.spec.variables[0]?.expression).toContain(`metadata.annotations['${key}']`);
    expect(mutationOf(set)).toContain(`path: "/metadata/annotations/${key.replace("/", "~1")}", value: "info"`);
  });

  it("the policy skips pods that decline sidecars only if the option mayDecline is true", () => {
    expect(conditions(setWith(), { mayDecline: true })).toContain("declines-no-sidecars");
    expect(conditions(setWith())).not.toContain("declines-no-sidecars");
  });

  it("a SidecarSet becomes a policy and its binding, both owned by the SidecarSet", () => {
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

  it("the policy of a SidecarSet without a uid has no owner reference", () => {
    expect(compile(setWith({}, { uid: undefined })).policy.metadata).not.toHaveProperty("ownerReferences");
  });

  it("the policy has the selectors of the SidecarSet and excludes the system namespaces", () => {
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

  it("the policy writes an annotation with the hash, the revision and the time in whole seconds", () => {
    const text = mutationOf(setWith());
    const record = { updateTimestamp: "2026-03-01T00:00:00Z", hash: "h1", sidecarSetName: "mesh" };
    const whole = JSON.stringify({ ...record, sidecarList: ["agent"], controllerRevision: "mesh-1" });
    expect(text).toContain(JSON.stringify(`"mesh":${whole}`));
    expect(text).toContain('["mesh"]).distinct().sort().join(",")');
  });

  it("the policy adds containers before or after the pod's own, and init containers sorted by name", () => {
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

  it("the policy of a hot upgrade adds both containers and the annotations that name the working one", () => {
    const upgradeStrategy = { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "empty:v1" };
    const set = setWith({ containers: [{ ...AGENT, upgradeStrategy }] });
    expect(additions(set)).toEqual(["containers0b containers/0", "containers0a containers/0"]);
    const [first, second] = compile(set).policy.spec.variables.map(({ expression }) => expression);
    expect(first).toContain('"name": dyn("agent-1"), "image": dyn("agent:v1")');
    expect(second).toContain('"name": dyn("agent-2"), "image": dyn("empty:v1")');
    expect(mutationOf(set)).toContain('"/metadata/annotations/versionalt.sidecarset.kruise.io~1agent-2", value: "1"');
    expect(mutationOf(set)).toContain('["\\"agent\\":\\"agent-1\\""]');
  });

  it("the policy adds each mounted volume once and no unused volume", () => {
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

  it("the policy uses the pinned revision and its hashes", () => {
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

  it("the policy of a base excludes the pods that its canary selects, unless injection of the canary is paused", () => {
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

it("a policy leaves out mirror pods, pods with a launch order, unreadable records or a container of the same name", () => {
  expect(conditions(setWith())).toEqual([
    "not-a-mirror-pod",
    "no-launch-order",
    "readable-records",
    "no-container-of-that-name",
  ]);
  const named = compile(setWith()).policy.spec.matchConditions.at(-1)?.expression;
  expect(named).toBe('!object.spec.?containers.orValue([]).exists(c, c.name in ["agent"])');
});

describe("an expression of a compiled policy:", () => {
  const variable = (container: object, name: string, spec: Partial<SidecarSetSpec> = {}) =>
    compile(setWith({ containers: [{ ...AGENT, ...container }], ...spec })).policy.spec.variables.find(
      (one) => one.name === name,
    )?.expression;

  it("transferEnv copies the named variables of the source container, sorted by name", () => {
    const transferEnv = [{ sourceContainerName: "main", envName: "B", envNames: ["A", "B"] }];
    const text = variable({ transferEnv }, "containers0Env") ?? "";
    expect([...text.matchAll(/e\.name == "(\w)"/g)].map(([, name]) => name)).toEqual(["A", "B"]);
    expect(text).toContain('c.name == "main"');
  });

  it.each([
    ["a label", "metadata.labels['from']", 'object.metadata.?labels[?"from"].orValue("")'],
    ["an annotation", "metadata.annotations['from']", 'object.metadata.?annotations[?"from"].orValue("")'],
  ])("transferEnv finds the source container by the name in %s", (_what, fieldPath, expression) => {
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
  ])(
    "transferEnv finds the source container by an annotation that patchPodMetadata changes with the policy %s",
    (patchPolicy, expression) => {
      const fieldRef = { fieldPath: "metadata.annotations['from']" };
      const transferEnv = [{ sourceContainerNameFrom: { fieldRef }, envName: "A" }];
      const patch = { annotations: { from: "x" }, ...(patchPolicy ? { patchPolicy } : {}) };
      expect(variable({ transferEnv }, "containers0Env", { patchPodMetadata: [patch] })).toContain(
        `c.name == ${expression})`,
      );
    },
  );

  it("transferEnv finds no variables by the field metadata.name", () => {
    const fieldRef = { fieldPath: "metadata.name" };
    expect(variable({ transferEnv: [{ sourceContainerNameFrom: { fieldRef }, envName: "A" }] }, "containers0Env")).toBe(
      undefined,
    );
  });

  it("shareVolumePolicy adds the mounts of the app containers at free paths, and the variables in these paths", () => {
    const container = {
      shareVolumePolicy: { type: "enabled" },
      volumeMounts: [{ name: "data", mountPath: "/data" }],
      volumeDevices: [{ name: "disk", devicePath: "/dev/a" }],
    };
    expect(variable(container, "containers0Mounts")).toContain('!(x.mountPath in ["/data", "/dev/a"])');
    expect(variable(container, "containers0Env")).toMatch(
      /^\[variables\.pathEnv\]\.flatten\(\)\.map\(e, dyn\(\{\?"name": /,
    );
    expect(variable(container, "apps")).toContain("IS_INJECTED");
    expect(variable({}, "apps")).toBe(undefined);
  });

  it("shareVolumeDevicePolicy adds the devices of the app containers at paths that no mount or device uses", () => {
    const devices = { shareVolumeDevicePolicy: { type: "enabled" }, volumeMounts: [{ name: "d", mountPath: "/d" }] };
    expect(variable(devices, "containers0a")).toContain('!(x.devicePath in ["/d"]) && variables.appDevices');
    const both = { ...devices, shareVolumePolicy: { type: "enabled" } };
    expect(variable(both, "containers0a")).toContain(
      "!variables.containers0Mounts.exists(m, m.mountPath == x.devicePath)",
    );
  });
});

describe("compileSidecarSet reports what a policy cannot express:", () => {
  const policy = { targetContainersMode: "sum", resourcesExpr: {} };
  it.each<[string, Partial<SidecarSetSpec>, string]>([
    [
      "the resourcesPolicy of a container",
      { containers: [{ ...AGENT, resourcesPolicy: policy }] },
      "spec.containers[0].resourcesPolicy",
    ],
    [
      "the resourcesPolicy of an init container",
      { initContainers: [AGENT, { ...AGENT, name: "b", resourcesPolicy: policy }], containers: [] },
      "spec.initContainers[1].resourcesPolicy",
    ],
    [
      "a patchPolicy MergePatchJson",
      { patchPodMetadata: [{}, { annotations: { a: "{}" }, patchPolicy: "MergePatchJson" }] },
      "spec.patchPodMetadata[1].patchPolicy",
    ],
  ])("%s is reported and the rest is compiled", (_what, spec, field) => {
    const { objects, notExpressible } = compile(setWith(spec));
    expect(notExpressible).toEqual([expect.objectContaining({ field, isFatal: false })]);
    expect(objects).toHaveLength(2);
    expect(JSON.stringify(objects)).not.toContain("resourcesPolicy");
  });

  const hot = { ...AGENT, name: "hot", upgradeStrategy: { upgradeType: "HotUpgrade" } };
  it.each<[string, Partial<SidecarSetSpec>, string]>([
    ["paused injection", { injectionStrategy: { paused: true } }, "spec.injectionStrategy.paused"],
    ["an empty selector", { selector: {} }, "spec.selector"],
    ["a SidecarSet without containers", { containers: [] }, "spec"],
    [
      "an unknown operator",
      { namespaceSelector: { matchExpressions: [{ key: "a", operator: "Near" }] } },
      "spec.namespaceSelector",
    ],
    [
      "a launch order",
      { containers: [{ ...AGENT, env: [{ name: "A" }, { name: "KRUISE_CONTAINER_PRIORITY", value: "1" }] }] },
      "spec.containers[0].env[1]",
    ],
    [
      "a resourcesPolicy beside a hot upgrade",
      { containers: [hot, { ...AGENT, resourcesPolicy: policy }] },
      "spec.containers[1].resourcesPolicy",
    ],
    [
      "a transferEnv from a sidecar of the same SidecarSet",
      { containers: [hot, { ...AGENT, transferEnv: [{ sourceContainerName: "hot-1", envName: "A" }] }] },
      "spec.containers[1].transferEnv[0].sourceContainerName",
    ],
    [
      "a revision with the policy Partial",
      { injectionStrategy: { revision: { revisionName: "mesh-0", policy: "Partial" } } },
      "spec.injectionStrategy.revision",
    ],
    [
      "a patch of an annotation that holds records",
      { patchPodMetadata: [{ annotations: { "version.sidecarset.kruise.io/a": "1" } }] },
      "spec.patchPodMetadata[0].annotations[version.sidecarset.kruise.io/a]",
    ],
    [
      "an expression that is too long",
      { containers: [{ ...AGENT, env: [{ name: "A", value: "x".repeat(100_000) }] }] },
      "spec",
    ],
  ])("%s is reported and nothing is compiled", (_what, spec, field) => {
    const { objects, notExpressible } = compile(setWith(spec));
    expect(notExpressible).toEqual([expect.objectContaining({ field, effect: "nothing is compiled", isFatal: true })]);
    expect(objects).toEqual([]);
  });
});
