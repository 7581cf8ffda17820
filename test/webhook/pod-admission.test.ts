import { describe, expect, test } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { ControllerRevision } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { readConfig } from "../../shared/settings/config.ts";
import { podAdmission } from "../../shared/webhook/handlers/pod-admission.ts";
import type { ClusterView } from "../../shared/webhook/view/cluster-view.ts";

const { kruiseNamespace, featureGates } = readConfig({});

/** Both SidecarSets name the first one's revision. */
const sidecarSets = ["a", "b"].map(
  (name): SidecarSet => ({
    metadata: { name, uid: `uid-${name}` },
    spec: {
      selector: { matchLabels: { [name]: "yes" } },
      containers: [{ name, image: `${name}:2` }],
      injectionStrategy: { revision: { revisionName: "a-1" } },
    },
  }),
);
const revision = {
  apiVersion: "apps/v1",
  kind: "ControllerRevision",
  metadata: {
    name: "a-1",
    namespace: kruiseNamespace,
    ownerReferences: [{ apiVersion: "v1", kind: "SidecarSet", name: "a", uid: "uid-a", controller: true }],
  },
  revision: 1,
  data: { spec: { containers: [{ name: "a", image: "a:1" }] } },
} as ControllerRevision;
const view = {
  listSidecarSets: () => ({ value: { sidecarSets, index: indexSidecarSets(sidecarSets) } }),
  getNamespace: () => ({ value: undefined }),
  getConfigMap: () => ({ value: undefined }),
  findRevisions: () => ({ value: [revision] }),
} satisfies ClusterView;

const admissionOf = (labels: Record<string, string>, seen: ClusterView = view) =>
  podAdmission({ view: seen, kruiseNamespace, featureGates })({
    uid: "u",
    operation: "CREATE",
    namespace: "default",
    resource: { group: "", version: "v1", resource: "pods" },
    object: { metadata: { labels }, spec: { containers: [{ name: "main" }] } },
  } as AdmissionRequest);

test("a revision of another SidecarSet is not found, even when that SidecarSet is injected too", async () => {
  expect(await admissionOf({ a: "yes" })).toMatchObject({ kind: "allowed" });
  const refused = { kind: "denied", message: expect.stringContaining('"a-1" not found') };
  expect(await admissionOf({ b: "yes" })).toMatchObject(refused);
  expect(await admissionOf({ a: "yes", b: "yes" })).toMatchObject(refused);
});

describe("new pods:", () => {
  const deletionTimestamp = "2026-01-02T03:04:05Z";
  const admit = (claims: object, metadata: object = {}) => {
    const object = {
      metadata: { labels: { c: "yes" }, ...metadata },
      spec: { containers: [{ name: "main", image: "nginx" }] },
      ...claims,
    };
    const set: SidecarSet = {
      metadata: { name: "c", uid: "uid-c" },
      spec: { selector: { matchLabels: { c: "yes" } }, containers: [{ name: "c", image: "c:1" }] },
    };
    const value = { sidecarSets: [set], index: indexSidecarSets([set]) };
    return podAdmission({ view: { ...view, listSidecarSets: () => ({ value }) }, kruiseNamespace, featureGates })({
      uid: "u",
      operation: "CREATE",
      namespace: "default",
      resource: { group: "", version: "v1", resource: "pods" },
      object,
    } as AdmissionRequest);
  };

  test.each([
    ["a status with phase Succeeded", { status: { phase: "Succeeded", message: "kept" } }, {}],
    ["a status with phase Failed", { status: { phase: "Failed" } }, {}],
    ["a deletionTimestamp", {}, { deletionTimestamp }],
    ["a status with phase Failed and a deletionTimestamp", { status: { phase: "Failed" } }, { deletionTimestamp }],
  ])("a new pod with %s gets its sidecars, because the API server resets it", async (_what, claims, metadata) => {
    const admission = await admit(claims, metadata);
    expect(admission).toMatchObject({ kind: "allowed", object: { ...claims, metadata } });
    const object = admission.kind === "allowed" ? admission.object : undefined;
    expect(JSON.stringify(object)).toContain('"c:1"');
  });

  test("a new pod whose phase is a number is refused", async () => {
    expect(await admit({ status: { phase: 5 } })).toMatchObject({ kind: "denied", code: 400 });
  });
});

describe("the Namespace of a pod:", () => {
  const selecting = (labels: Readonly<Record<string, string>>): SidecarSet => ({
    metadata: { name: "c", uid: "uid-c" },
    spec: {
      selector: { matchExpressions: [{ key: "example.com/none", operator: "DoesNotExist" }] },
      namespaceSelector: { matchLabels: labels },
      containers: [{ name: "c" }],
    },
  });
  /** Returns the Namespaces that an admission of the object reads. */
  async function readFor(labels: Readonly<Record<string, string>>, request: Partial<AdmissionRequest>) {
    const read: string[] = [];
    const all = [selecting(labels)];
    const looking: ClusterView = {
      ...view,
      listSidecarSets: () => ({ value: { sidecarSets: all, index: indexSidecarSets(all) } }),
      getNamespace: async (name) => {
        read.push(name);
        return { value: { metadata: { name, labels: { team: "a" } } }, staleBecause: new Error("down") };
      },
    };
    const resource = { group: "", version: "v1", resource: "pods" };
    const full = { uid: "u", operation: "CREATE", resource, ...request } as AdmissionRequest;
    return { read, admission: await podAdmission({ view: looking, kruiseNamespace, featureGates })(full) };
  }
  const podIn = (metadata: object) => ({ metadata, spec: { containers: [{ name: "main" }] } }) as never;

  test.each<[string, Partial<AdmissionRequest>, string]>([
    ["the pod's metadata", { namespace: "b", object: podIn({ namespace: "a" }) }, "a"],
    ["the request when the pod has none", { namespace: "b", object: podIn({}) }, "b"],
    ["the request when the pod's is empty", { namespace: "b", object: podIn({ namespace: "" }) }, "b"],
    ["the default when neither has one", { object: podIn({}) }, "default"],
  ])("the Namespace comes from %s", async (_, request, name) => {
    const { read, admission } = await readFor({ team: "a" }, request);
    expect(read).toEqual([name]);
    expect(JSON.stringify(admission)).toContain("decided on an earlier state of the Namespace");
  });

  test.each([
    ["b", true],
    ["c", false],
  ])(
    "the Namespace is not read when the selector uses only its name (%s is injected: %s)",
    async (namespace, isInjected) => {
      const labels = { "kubernetes.io/metadata.name": "b" };
      const { read, admission } = await readFor(labels, { namespace, object: podIn({}) });
      const containers = admission.kind === "allowed" ? JSON.stringify(admission.object ?? {}) : "denied";
      expect([read, containers.includes('"name":"c"')]).toEqual([[], isInjected]);
    },
  );

  test.each([
    ["a missing object", null],
    ["an object whose namespace is a number", podIn({ namespace: 5 })],
    ["an object without metadata", { spec: { containers: [{ name: "main" }] } } as never],
  ])("the Namespace is also read for %s", async (_, object) => {
    const { read } = await readFor({ team: "a" }, { object, namespace: "b" });
    expect(read).toEqual(["b"]);
  });
});

test("a pod without matching SidecarSets is decided synchronously", () => {
  expect(admissionOf({})).toMatchObject({ kind: "allowed" });
});

test("an outdated read of a revision adds a warning", async () => {
  const stale: ClusterView = {
    ...view,
    findRevisions: () => ({ value: [revision], staleBecause: new Error("no way to the cluster") }),
  };
  expect(await admissionOf({ a: "yes" }, stale)).toMatchObject({
    kind: "allowed",
    warnings: ["decided on an earlier state of ControllerRevisions, which cannot be read now: no way to the cluster"],
  });
});
