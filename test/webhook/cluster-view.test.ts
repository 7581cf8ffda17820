import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { ControllerRevision, Pod } from "../../shared/api/kubernetes.ts";
import { SIDECARSET_V1BETA1 } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { sidecarSetCrd } from "../../shared/install/crd/sidecarset-crd.ts";
import { installedResource } from "../../shared/install/manifests.ts";
import { kruiseNamespace } from "../../shared/install/rbac/access.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import { KubeError } from "../../shared/kube/error.ts";
import {
  type Cluster,
  CONTROLLER_REVISIONS,
  type ListOptions,
  NAMESPACES,
  SIDECARSETS,
} from "../../shared/kube/port.ts";
import { readConfig } from "../../shared/settings/config.ts";
import { podAdmission } from "../../shared/webhook/handlers/pod-admission.ts";
import { sidecarSetValidation } from "../../shared/webhook/handlers/validation.ts";
import { type ClusterView, clusterView } from "../../shared/webhook/view/cluster-view.ts";
import { newPod } from "../support/objects.ts";

const CRDS = { group: "apiextensions.k8s.io", version: "v1", plural: "customresourcedefinitions", namespaced: false };
const { kruiseNamespace: namespace, featureGates } = readConfig({});

/** A selector that needs the Namespace of every pod; no Namespace has the label. */
const LABELLED = { matchExpressions: [{ key: "example.com/none", operator: "DoesNotExist" }] };
const ANY_NAMESPACE = { matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "Exists" }] };

let local: LocalCluster;
let cluster: Cluster;
const sidecarSet = (name: string, spec: object = {}) =>
  ({
    apiVersion: SIDECARSET_V1BETA1,
    kind: "SidecarSet",
    metadata: { name },
    spec: {
      selector: { matchLabels: { app: name } },
      containers: [{ name: "agent", image: "agent:1", podInjectPolicy: "BeforeAppContainer" }],
      ...spec,
    },
  }) as unknown as SidecarSet;

beforeAll(async () => {
  local = await startLocalCluster();
  cluster = connectCluster({
    server: local.url,
    certificateAuthority: local.caCertificate,
    token: async () => local.token,
  });
  // The definition converts nothing, because no webhook listens here.
  const { spec, ...crd } = sidecarSetCrd({ url: "https://127.0.0.1:1" });
  await cluster.create(CRDS, { ...crd, spec: { ...spec, conversion: { strategy: "None" } } } as typeof crd);
  await cluster.create(installedResource(kruiseNamespace()), kruiseNamespace());
  const names = Array.from({ length: 1_001 }, (_, index) => `set-${index}`);
  for (const name of names)
    await cluster.create(
      SIDECARSETS,
      sidecarSet(name, name === "set-0" || name === "set-7" ? { namespaceSelector: LABELLED } : {}),
    );
});
afterAll(() => local.close());

/** The cluster with counters for reads and a way to make reads fail. */
let lists: ListOptions[];
let gets: number;
let fault: (() => Error | undefined) | undefined;
let clock: number;
const watched = (): Cluster => ({
  ...cluster,
  list: (resource, options = {}) => {
    lists.push(options);
    const error = fault?.();
    return error ? Promise.reject(error) : cluster.list(resource, options);
  },
  get: (resource, key) => {
    gets++;
    const error = fault?.();
    return error ? Promise.reject(error) : cluster.get(resource, key);
  },
});
let view: ClusterView;
beforeEach(() => {
  lists = [];
  gets = 0;
  fault = undefined;
  clock = 0;
  view = clusterView({
    connect: async () => watched(),
    kruiseNamespace: namespace,
    freshnessMs: 1000,
    now: () => clock,
    steady: () => clock,
  });
});

describe("listSidecarSets:", () => {
  test("listSidecarSets reads every page, each with at most 500 items", async () => {
    const { value } = await view.listSidecarSets();
    expect(value.sidecarSets).toHaveLength(1_001);
    expect(lists).toHaveLength(3);
    expect(lists.every(({ limit }) => limit === 500)).toBe(true);
  });

  test("listSidecarSets asks for no resourceVersion, so that API servers answer consistently", async () => {
    await view.listSidecarSets();
    expect(lists.map(({ limit, continue: _, ...rest }) => rest)).toEqual([{}, {}, {}]);
  });

  test("listSidecarSets reads the list once for 50 concurrent pods", async () => {
    await Promise.all(Array.from({ length: 50 }, () => view.listSidecarSets()));
    expect(lists).toHaveLength(3);
  });

  test("listSidecarSets starts again when its pages expire", async () => {
    let count = 0;
    fault = () => (++count === 2 ? new KubeError("too old", { code: 410, reason: "Expired" }) : undefined);
    expect((await view.listSidecarSets()).value.sidecarSets).toHaveLength(1_001);
    expect(lists).toHaveLength(5);
  });

  test("listSidecarSets gives up after three attempts", async () => {
    fault = () => new KubeError("too old", { code: 410, reason: "Expired" });
    await expect(view.listSidecarSets()).rejects.toThrow("too old");
    expect(lists).toHaveLength(3);
  });
});

describe("listSidecarSets again:", () => {
  let versions: Readonly<Record<string, string>>;
  const listed = (): readonly SidecarSet[] =>
    Object.entries(versions).map(([name, resourceVersion]) => {
      const set = sidecarSet(name);
      return { ...set, metadata: { ...set.metadata, uid: `uid-${name}`, resourceVersion } } as SidecarSet;
    });
  const read = async (passed = 1_000) => {
    clock += passed;
    return (await view.listSidecarSets()).value;
  };
  beforeEach(() => {
    const list = async () => ({ items: listed(), metadata: { resourceVersion: String(clock) } });
    const connect = async () => ({ list }) as unknown as Cluster;
    view = clusterView({
      connect,
      kruiseNamespace: namespace,
      freshnessMs: 1_000,
      now: () => clock,
      steady: () => clock,
    });
  });

  test("unchanged SidecarSets keep their objects, and an unchanged list keeps its index", async () => {
    versions = { a: "1", b: "2" };
    const first = await read();
    expect((await read()).index).toBe(first.index);
    versions = { a: "1", b: "3" };
    const second = await read();
    expect(second.sidecarSets[0]).toBe(first.sidecarSets[0]);
    expect(second.sidecarSets[1]?.metadata?.resourceVersion).toBe("3");
    expect(second.index).not.toBe(first.index);
  });

  test.each([
    ["deleted", { b: "2" }],
    ["created", { a: "1", b: "2", c: "3" }],
    ["moved to another place in the list", { b: "2", a: "1" }],
  ])("the index is new when a SidecarSet was %s", async (_, next) => {
    versions = { a: "1", b: "2" };
    const first = await read();
    versions = next;
    const second = await read();
    expect(second.index).not.toBe(first.index);
    expect(second.sidecarSets).toEqual(listed());
  });

  test("unchanged SidecarSets get new objects once a minute, because the definition may have changed", async () => {
    versions = { a: "1" };
    const first = await read();
    expect((await read(59_000)).sidecarSets[0]).toBe(first.sidecarSets[0]);
    expect((await read(1_000)).sidecarSets[0]).not.toBe(first.sidecarSets[0]);
  });
});

test("bursts of 1000 pods share two lists of SidecarSets and read the Namespace at most four times", async () => {
  // On a busy machine an answer may take longer than a pod waits for it.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  view = clusterView({
    connect: async () => watched(),
    kruiseNamespace: namespace,
    freshnessMs: 0,
    now: () => clock,
    steady: () => clock,
  });
  const admit = podAdmission({ view, kruiseNamespace: namespace, featureGates });
  const review = (index: number): AdmissionRequest => {
    const metadata = { name: `p-${index}`, labels: { app: "set-0" } };
    const object = newPod(metadata, { containers: [{ name: "main", image: "x" }] });
    const resource = { group: "", version: "v1", resource: "pods" };
    return { uid: `${index}`, operation: "CREATE", namespace: "default", resource, object } as AdmissionRequest;
  };
  const pages = 3;
  const many = 1_000;
  for (let burst = 0; burst < 5; burst++) {
    const [listedBefore, readBefore] = [lists.length, gets];
    clock += 1_000;
    const admissions = await Promise.all(Array.from({ length: many }, (_, index) => admit(review(index))));
    expect(admissions.filter((admission) => "object" in admission)).toHaveLength(many);
    // The first pod started its read before the others asked.
    expect(lists.length - listedBefore).toBe(2 * pages);
    expect(gets - readBefore).toBeLessThanOrEqual(4);
  }
  const [listedBefore, readBefore] = [lists.length, gets];
  await admit(review(many));
  expect(lists.length - listedBefore).toBe(pages);
  expect(gets - readBefore).toBeLessThanOrEqual(2);
});

test("getNamespace is undefined for a missing Namespace and finds it after its creation", async () => {
  expect(await view.getNamespace("new")).toEqual({ value: undefined });
  await cluster.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "new" } });
  clock = 1000;
  expect((await view.getNamespace("new")).value?.metadata?.name).toBe("new");
});

test.each([
  ["no Namespace when no SidecarSet has a namespaceSelector", {}, []],
  ["the pod's Namespace when a namespaceSelector uses its labels", { namespaceSelector: LABELLED }, ["shop"]],
  ["no Namespace when a namespaceSelector uses only names", { namespaceSelector: ANY_NAMESPACE }, []],
  ["no Namespace when a namespaceSelector selects all", { namespaceSelector: {} }, []],
])("an admission reads %s", async (_, spec, expected) => {
  const read: string[] = [];
  const sidecarSets = [sidecarSet("web", spec)];
  const known: ClusterView = {
    ...view,
    listSidecarSets: () => ({ value: { sidecarSets, index: indexSidecarSets(sidecarSets) } }),
    getNamespace: (name) => {
      read.push(name);
      return { value: { metadata: { name, labels: { "kubernetes.io/metadata.name": name, team: "x" } } } };
    },
  };
  const admit = podAdmission({ view: known, kruiseNamespace: namespace, featureGates });
  const object = newPod({ name: "p", labels: { app: "web" } }, { containers: [{ name: "main", image: "nginx" }] });
  const resource = { group: "", version: "v1", resource: "pods" };
  const admission = await admit({ uid: "u", operation: "CREATE", namespace: "shop", resource, object });
  expect(admission).toMatchObject({ object: { spec: { containers: [{ name: "agent" }, { name: "main" }] } } });
  expect(read).toEqual(expected);
});

describe("findRevisions:", () => {
  const revision = (name: string, number: number, labels: Record<string, string>) =>
    ({
      apiVersion: "apps/v1",
      kind: "ControllerRevision",
      metadata: { name, namespace, labels },
      revision: number,
      data: {},
    }) as ControllerRevision;
  beforeAll(async () => {
    const labels = { "kruise.io/sidecarset-name": "a", "apps.kruise.io/sidecarset-custom-version": "v1" };
    await cluster.create(CONTROLLER_REVISIONS, revision("a-1", 1, labels));
    await cluster.create(CONTROLLER_REVISIONS, revision("a-2", 2, labels));
    await cluster.create(CONTROLLER_REVISIONS, revision("b-1", 1, { "kruise.io/sidecarset-name": "b" }));
  });

  test.each([
    ["a name", { revisionName: "a-1" }, ["a-1"]],
    ["an unknown name", { revisionName: "a-9" }, []],
    ["an empty name", { revisionName: "" }, []],
    ["a custom version of two revisions", { customVersion: "v1" }, ["a-1", "a-2"]],
    ["an unknown custom version", { customVersion: "v9" }, []],
    ["a custom version that is not a label and would select every revision", { customVersion: "v1,a!=b" }, []],
    ["a custom version with an invalid name of the SidecarSet", { sidecarSet: "a,b!=c", customVersion: "v1" }, []],
    ["neither a name nor a custom version", {}, []],
    ["an invalid name of the SidecarSet only", { sidecarSet: "a,b!=c" }, []],
  ])("findRevisions finds exactly the revisions with %s", async (...[, wanted, names]) => {
    const { value } = await view.findRevisions({ sidecarSet: "a", ...wanted });
    expect(value.map(({ metadata }) => metadata?.name)).toEqual(names);
  });

  test.each([
    ["an empty name", { revisionName: "" }, [0, 0]],
    ["a valid name", { revisionName: "a-9" }, [1, 0]],
    ["a custom version of 63 characters", { customVersion: "v".repeat(63) }, [0, 1]],
    ["a custom version of 64 characters", { customVersion: "v".repeat(64) }, [0, 0]],
    ["a custom version of one letter", { customVersion: "v" }, [0, 1]],
    ["an empty custom version", { customVersion: "" }, [0, 1]],
  ])("findRevisions asks the API server only for valid values: %s", async (...[, wanted, calls]) => {
    expect((await view.findRevisions({ sidecarSet: "a", ...wanted })).value).toEqual([]);
    expect([gets, lists.length]).toEqual(calls);
  });

  test("findRevisions throws when the revision cannot be read", async () => {
    fault = () => new KubeError("forbidden", { code: 403, reason: "Forbidden" });
    await expect(view.findRevisions({ sidecarSet: "a", revisionName: "a-1" })).rejects.toThrow("forbidden");
  });
});

describe("pinned revisions:", () => {
  const request = (app: string): AdmissionRequest => ({
    uid: "u",
    operation: "CREATE",
    namespace: "default",
    resource: { group: "", version: "v1", resource: "pods" },
    object: newPod({ generateName: "p-", labels: { app } }, { containers: [{ name: "main", image: "nginx" }] }),
  });
  const revisionOf = (name: string, image: string, uid: string | undefined) =>
    ({
      apiVersion: "apps/v1",
      kind: "ControllerRevision",
      metadata: {
        name: `${name}-${image.replace(":", "-")}`,
        namespace,
        ownerReferences: [{ apiVersion: SIDECARSET_V1BETA1, kind: "SidecarSet", name, uid, controller: true }],
        labels: { "kruise.io/sidecarset-name": name, "apps.kruise.io/sidecarset-custom-version": "v1" },
      },
      revision: Number(image.split(":")[1]),
      data: { spec: sidecarSet(name, { containers: [{ name: "agent", image }] }).spec },
    }) as unknown as ControllerRevision;
  const imageOf = async (app: string) => {
    const admission = await podAdmission({ view, kruiseNamespace: namespace, featureGates })(request(app));
    const object = admission.kind === "allowed" ? (admission.object as Pod | undefined) : undefined;
    return object?.spec.containers.find(({ name }) => name === "agent")?.image;
  };

  test.each([
    ["by name", "named", { revisionName: "named-agent-2" }],
    ["by custom version", "versioned", { customVersion: "v1" }],
  ])(
    "a revision that is pinned %s is used when its owner is the SidecarSet, and a foreign one is not",
    async (_, name, revision) => {
      view = clusterView({
        connect: async () => watched(),
        kruiseNamespace: namespace,
        freshnessMs: 0,
        now: () => clock,
        steady: () => clock,
      });
      const stored = await cluster.create(SIDECARSETS, sidecarSet(name, { injectionStrategy: { revision } }));
      const uid = stored.metadata?.uid;
      await cluster.create(CONTROLLER_REVISIONS, revisionOf(name, "agent:1", uid));
      await cluster.create(CONTROLLER_REVISIONS, revisionOf(name, "agent:2", uid));
      expect(await imageOf(name)).toBe("agent:2");
      const key = { namespace, name: `${name}-agent-2` };
      await cluster.delete(CONTROLLER_REVISIONS, key);
      expect(await imageOf(name)).not.toBe("agent:2");
      // A revision with another owner, or without one.
      for (const planted of ["other", undefined]) {
        await cluster.create(CONTROLLER_REVISIONS, revisionOf(name, "agent:2", planted));
        expect(await imageOf(name)).not.toBe("agent:2");
        // The garbage collector may have deleted the revision already.
        await cluster.delete(CONTROLLER_REVISIONS, key).catch(() => undefined);
      }
      await cluster.create(CONTROLLER_REVISIONS, revisionOf(name, "agent:2", uid));
      expect(await imageOf(name)).toBe("agent:2");
    },
  );
});

describe("an API server that does not answer:", () => {
  const request = (object: object, resource: string): AdmissionRequest => ({
    uid: "u",
    operation: "CREATE",
    namespace: "default",
    resource: { group: resource === "pods" ? "" : "apps.kruise.io", version: "v1beta1", resource },
    object,
  });
  const pod = newPod({ name: "p", labels: { app: "set-7" } }, { containers: [{ name: "main", image: "nginx" }] });
  const cut = () => {
    fault = () => new KubeError("nobody listens", { code: 0, reason: "ConnectionRefused" });
  };

  test("pods get sidecars from the last known state for five minutes, with a warning", async () => {
    const admit = podAdmission({ view, kruiseNamespace: namespace, featureGates });
    expect(await admit(request(pod, "pods"))).not.toHaveProperty("warnings");
    cut();
    clock = 300_000;
    expect(await admit(request(pod, "pods"))).toMatchObject({
      kind: "allowed",
      object: { spec: { containers: [{ name: "agent" }, { name: "main" }] } },
      warnings: [
        "decided on an earlier state of SidecarSets, which cannot be read now: nobody listens",
        "decided on an earlier state of the Namespace, which cannot be read now: nobody listens",
      ],
    });
    clock = 300_001;
    await expect(admit(request(pod, "pods"))).rejects.toThrow("nobody listens");
  });

  test("a SidecarSet is not decided when nothing is known", async () => {
    cut();
    const validate = sidecarSetValidation({ view, kruiseNamespace: namespace, featureGates });
    await expect(validate(request(sidecarSet("new"), "sidecarsets"))).rejects.toThrow("nobody listens");
  });
});

test("validation reads the whitelist and the pinned revision only for SidecarSets that use them", async () => {
  const validate = sidecarSetValidation({ view, kruiseNamespace: namespace, featureGates });
  const decide = (spec: object) =>
    validate({
      uid: "u",
      operation: "CREATE",
      resource: { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" },
      object: sidecarSet("new", spec),
    });
  const message = async (spec: object) => {
    const admission = await decide(spec);
    return admission.kind === "denied" ? admission.message : "";
  };
  expect(await message({ injectionStrategy: { revision: { revisionName: "none" } } })).toContain('"none" not found');
  expect(await message({ injectionStrategy: { revision: { revisionName: "a-1" } } })).not.toContain("not found");
  const patchPodMetadata = [{ annotations: { key: "value" }, patchPolicy: "Retain" }];
  expect(await message({ patchPodMetadata })).toContain("whitelist not found");
});
