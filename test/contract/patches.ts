/** Cases of the three patch types and of preconditions in patches. */
import { expect } from "vitest";
import { CONFIG_MAPS, type JsonPatchOperation, PODS } from "../../shared/kube/port.ts";
import {
  type ConfigMap,
  type Context,
  type ContractCase,
  createMap,
  createPod,
  refused,
  type TestPod,
  versionOf,
} from "./contract.ts";

function json({ cluster, namespace }: Context, ...operations: readonly JsonPatchOperation[]): Promise<ConfigMap> {
  return cluster.patch<ConfigMap>(CONFIG_MAPS, { namespace, name: "a" }, { type: "json", operations });
}

function merge({ cluster, namespace }: Context, body: unknown): Promise<ConfigMap> {
  return cluster.patch<ConfigMap>(CONFIG_MAPS, { namespace, name: "a" }, { type: "merge", body });
}

function strategic({ cluster, namespace }: Context, body: unknown): Promise<TestPod> {
  return cluster.patch<TestPod>(PODS, { namespace, name: "p" }, { type: "strategic", body });
}

function rawPatch({ raw, namespace }: Context, type: string, body: unknown) {
  const path = `/api/v1/namespaces/${namespace}/configmaps/a`;
  return raw({ method: "PATCH", path, body, headers: { "content-type": `application/${type}` } });
}

const REFUSED = "the server rejected our request due to an error in our request";

export const JSON_PATCH_CASES: readonly ContractCase[] = [
  {
    sentence: "the operations of a JSON patch apply in order",
    async run(context) {
      await createMap(context, "a", { data: { k: "v", old: "x" } });
      const patched = await json(
        context,
        { op: "test", path: "/data/k", value: "v" },
        { op: "replace", path: "/data/k", value: "w" },
        { op: "add", path: "/data/new", value: "n" },
        { op: "remove", path: "/data/old" },
      );
      expect(patched.data).toEqual({ k: "w", new: "n" });
    },
  },
  {
    sentence: "~1 in the path of a JSON patch means a slash",
    async run(context) {
      await createMap(context, "a", { metadata: { annotations: { "a.io/b": "1" } } });
      const patched = await json(context, { op: "replace", path: "/metadata/annotations/a.io~1b", value: "2" });
      expect(patched.metadata?.annotations).toEqual({ "a.io/b": "2" });
    },
  },
  {
    sentence: "a JSON patch with a failed test is refused with 422 and writes nothing",
    async run(context) {
      const before = await createMap(context, "a", { data: { k: "v" } });
      const patch = json(
        context,
        { op: "add", path: "/data/new", value: "n" },
        { op: "test", path: "/data/k", value: "other" },
      );
      await refused(patch, { code: 422, reason: "Invalid", message: REFUSED });
      expect(await context.cluster.get(CONFIG_MAPS, { namespace: context.namespace, name: "a" })).toEqual(before);
    },
  },
  {
    sentence: "a JSON patch that tests the current uid and resourceVersion is applied",
    async run(context) {
      const { metadata } = await createMap(context, "a");
      const patched = await json(
        context,
        { op: "test", path: "/metadata/uid", value: metadata?.uid },
        { op: "test", path: "/metadata/resourceVersion", value: metadata?.resourceVersion },
        { op: "add", path: "/data", value: { k: "v" } },
      );
      expect(patched.data).toEqual({ k: "v" });
    },
  },
  {
    sentence: "a JSON patch that tests an old resourceVersion is refused with 422",
    async run(context) {
      const before = await createMap(context, "a");
      await merge(context, { data: { k: "v" } });
      const test = { op: "test", path: "/metadata/resourceVersion", value: versionOf(before) } as const;
      await refused(json(context, test), { code: 422, reason: "Invalid" });
    },
  },
  {
    sentence: "only one of three JSON patches that test the same resourceVersion is applied",
    async run(context) {
      const test = {
        op: "test",
        path: "/metadata/resourceVersion",
        value: versionOf(await createMap(context, "a")),
      } as const;
      const write = (value: string) => json(context, test, { op: "add", path: "/data", value: { k: value } });
      const outcomes = await Promise.allSettled([write("1"), write("2"), write("3")]);
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    },
  },
  {
    sentence: "a JSON patch that removes a missing key is refused with 422",
    async run(context) {
      await createMap(context, "a");
      await refused(json(context, { op: "remove", path: "/data/k" }), { code: 422, message: REFUSED });
    },
  },
  {
    sentence: "a JSON patch that replaces a missing key adds the key",
    async run(context) {
      await createMap(context, "a", { data: { k: "v" } });
      const patched = await json(context, { op: "replace", path: "/data/x", value: "y" });
      expect(patched.data).toEqual({ k: "v", x: "y" });
    },
  },
  {
    sentence: "a JSON patch that replaces a missing list element is refused with 422",
    async run(context) {
      await createMap(context, "a", { metadata: { finalizers: ["example.com/a"] } });
      const replace = { op: "replace", path: "/metadata/finalizers/1", value: "example.com/b" } as const;
      await refused(json(context, replace), { code: 422, message: REFUSED });
      await merge(context, { metadata: { finalizers: null } });
    },
  },
  {
    sentence: "a JSON patch that adds a key to a missing object is refused with 422",
    async run(context) {
      await createMap(context, "a");
      await refused(json(context, { op: "add", path: "/data/k", value: "v" }), { code: 422, message: REFUSED });
    },
  },
  {
    sentence: "a JSON patch that is not a list is refused with 400",
    async run(context) {
      await createMap(context, "a");
      expect(await rawPatch(context, "json-patch+json", { op: "remove" })).toMatchObject({ code: 400 });
    },
  },
  {
    sentence: "a dry run of a JSON patch returns the patched object and stores nothing",
    async run(context) {
      const { cluster, namespace } = context;
      const before = await createMap(context, "a");
      const operations = [{ op: "add", path: "/data", value: { k: "v" } }] as const;
      const key = { namespace, name: "a" };
      const patched = await cluster.patch<ConfigMap>(CONFIG_MAPS, key, { type: "json", operations }, { dryRun: true });
      expect(patched.data).toEqual({ k: "v" });
      expect(await cluster.get(CONFIG_MAPS, key)).toEqual(before);
    },
  },
  {
    sentence: "a JSON patch of a missing object is answered with 404",
    async run(context) {
      await refused(json(context, { op: "add", path: "/data", value: {} }), { code: 404, reason: "NotFound" });
    },
  },
  {
    sentence: "a JSON patch can be answered with only the metadata",
    async run(context) {
      const { cluster, namespace } = context;
      await createMap(context, "a");
      const operations = [{ op: "add", path: "/data", value: { k: "v" } }] as const;
      const key = { namespace, name: "a" };
      const answer = await cluster.patch(CONFIG_MAPS, key, { type: "json", operations }, { answer: "metadata" });
      expect(answer).not.toHaveProperty("data");
      expect(answer.metadata?.name).toBe("a");
    },
  },
];

export const MERGE_PATCH_CASES: readonly ContractCase[] = [
  {
    sentence: "a merge patch merges objects and removes keys with null",
    async run(context) {
      await createMap(context, "a", { data: { k: "v", old: "x" } });
      expect((await merge(context, { data: { old: null, new: "n" } })).data).toEqual({ k: "v", new: "n" });
    },
  },
  {
    sentence: "a merge patch replaces lists",
    async run(context) {
      await createMap(context, "a", { metadata: { finalizers: ["example.com/a"] } });
      const patched = await merge(context, { metadata: { finalizers: ["example.com/b"] } });
      expect(patched.metadata?.finalizers).toEqual(["example.com/b"]);
      await merge(context, { metadata: { finalizers: null } });
    },
  },
  {
    sentence: "a merge patch with an old resourceVersion is refused with 409 Conflict",
    async run(context) {
      const before = await createMap(context, "a");
      await merge(context, { data: { k: "v" } });
      const late = merge(context, { metadata: { resourceVersion: versionOf(before) }, data: { k: "w" } });
      await refused(late, { code: 409, reason: "Conflict", message: /the object has been modified/ });
    },
  },
  {
    sentence: "a merge patch with another uid is refused with 422 and writes nothing",
    async run(context) {
      const before = await createMap(context, "a");
      const uid = "00000000-0000-0000-0000-000000000000";
      const patched = await rawPatch(context, "merge-patch+json", { metadata: { uid }, data: { k: "v" } });
      expect(patched).toMatchObject({ code: 422, body: { reason: "Invalid" } });
      expect(patched.text).toContain("metadata.uid: Invalid value: ");
      expect(await context.cluster.get(CONFIG_MAPS, { namespace: context.namespace, name: "a" })).toEqual(before);
    },
  },
  {
    sentence: "a merge patch with another name is refused with 400",
    async run(context) {
      await createMap(context, "a");
      const patched = await rawPatch(context, "merge-patch+json", { metadata: { name: "b" } });
      const message = "the name of the object (b) does not match the name on the URL (a)";
      expect(patched).toMatchObject({ code: 400, body: { reason: "BadRequest", message } });
    },
  },
  {
    sentence: "a merge patch without changes keeps the resourceVersion",
    async run(context) {
      const before = await createMap(context, "a", { data: { k: "v" } });
      expect(await merge(context, { data: { k: "v" } })).toEqual(before);
    },
  },
  {
    sentence: "a merge patch with a number as an annotation is refused with 422",
    async run(context) {
      await createMap(context, "a");
      const answer = await rawPatch(context, "merge-patch+json", { metadata: { annotations: { n: 1 } } });
      expect(answer).toMatchObject({ code: 422, body: { reason: "Invalid" } });
      expect(answer.text).toContain(
        "cannot unmarshal number into Go struct field ObjectMeta.metadata.annotations of type string",
      );
    },
  },
  {
    sentence: "a merge patch that is not an object is refused with 400",
    async run(context) {
      await createMap(context, "a");
      expect(await rawPatch(context, "merge-patch+json", [])).toMatchObject({ code: 400 });
    },
  },
  {
    sentence: "an unknown patch type is refused with 415",
    async run(context) {
      await createMap(context, "a");
      const answer = await rawPatch(context, "json", {});
      expect(answer).toMatchObject({ code: 415, body: { reason: "UnsupportedMediaType" } });
    },
  },
];

const TWO = {
  containers: [
    { name: "main", image: "nginx:1.25" },
    { name: "side", image: "side:1" },
  ],
};

function toleration(key: string) {
  return { key, operator: "Exists", effect: "NoSchedule" };
}

export const STRATEGIC_PATCH_CASES: readonly ContractCase[] = [
  {
    sentence: "a strategic merge patch merges containers by name",
    async run(context) {
      await createPod(context, "p", { spec: TWO });
      const patched = await strategic(context, { spec: { containers: [{ name: "side", image: "side:2" }] } });
      expect(patched.spec.containers.map(({ name, image }) => [name, image])).toEqual([
        ["main", "nginx:1.25"],
        ["side", "side:2"],
      ]);
    },
  },
  {
    sentence: "a strategic merge patch replaces lists without a merge key",
    async run(context) {
      await createPod(context, "p", { spec: { ...TWO, tolerations: [toleration("a")] } });
      const tolerations = (await context.cluster.get<TestPod>(PODS, { namespace: context.namespace, name: "p" })).spec[
        "tolerations"
      ];
      const wanted = [...(tolerations as object[]), toleration("b")];
      const patched = await strategic(context, { spec: { tolerations: wanted } });
      expect(patched.spec["tolerations"]).toEqual(wanted);
    },
  },
  {
    sentence: "a strategic merge patch adds finalizers",
    async run(context) {
      await createPod(context, "p", { metadata: { finalizers: ["example.com/a"] } });
      const patched = await strategic(context, { metadata: { finalizers: ["example.com/b"] } });
      expect(patched.metadata?.finalizers?.toSorted()).toEqual(["example.com/a", "example.com/b"]);
    },
  },
  {
    sentence: "$deleteFromPrimitiveList removes a finalizer",
    async run(context) {
      await createPod(context, "p", { metadata: { finalizers: ["example.com/a", "example.com/b"] } });
      const patched = await strategic(context, {
        metadata: { "$deleteFromPrimitiveList/finalizers": ["example.com/a"] },
      });
      expect(patched.metadata?.finalizers).toEqual(["example.com/b"]);
    },
  },
  {
    sentence: "$patch: delete removes the ownerReference with the same uid",
    async run(context) {
      const one = { apiVersion: "v1", kind: "Namespace", name: context.namespace, uid: "1" };
      const owner = await context.cluster.get(
        { group: "", version: "v1", plural: "namespaces", namespaced: false },
        { name: context.namespace },
      );
      const uid = owner.metadata?.uid ?? "";
      await createPod(context, "p", { metadata: { ownerReferences: [{ ...one, uid }] } });
      const patched = await strategic(context, { metadata: { ownerReferences: [{ $patch: "delete", uid }] } });
      expect(patched.metadata?.ownerReferences).toBeUndefined();
    },
  },
  {
    sentence: "a strategic merge patch merges conditions by type and puts a new condition first",
    async run(context) {
      const { cluster, namespace } = context;
      await createPod(context, "p");
      const set = (type: string, status: string) => {
        const body = { status: { conditions: [{ type, status, lastProbeTime: null, lastTransitionTime: null }] } };
        const key = { namespace, name: "p" };
        return cluster.patch<TestPod>(PODS, key, { type: "strategic", body }, { subresource: "status" });
      };
      await set("example.com/a", "True");
      await set("example.com/b", "True");
      const patched = await set("example.com/a", "False");
      expect(patched.status?.["conditions"]).toMatchObject([
        { type: "example.com/b", status: "True" },
        { type: "example.com/a", status: "False" },
      ]);
    },
  },
  {
    sentence: "$retainKeys keeps only the named keys",
    async run(context) {
      const { cluster, namespace } = context;
      const DEPLOYMENTS = { group: "apps", version: "v1", plural: "deployments", namespaced: true };
      const labels = { app: "web" };
      const spec = { selector: { matchLabels: labels }, replicas: 0, template: { metadata: { labels }, spec: TWO } };
      await cluster.create(DEPLOYMENTS, { metadata: { name: "web", namespace }, spec } as object);
      const body = { spec: { strategy: { $retainKeys: ["type"], type: "Recreate" } } };
      const patched = await cluster.patch(DEPLOYMENTS, { namespace, name: "web" }, { type: "strategic", body });
      expect(patched).toMatchObject({ spec: { strategy: { type: "Recreate" } } });
      expect(patched).not.toHaveProperty("spec.strategy.rollingUpdate");
    },
  },
  {
    sentence: "$patch: replace replaces a whole object",
    async run(context) {
      await createPod(context, "p", { metadata: { labels: { a: "1", b: "2" } } });
      const patched = await strategic(context, { metadata: { labels: { $patch: "replace", c: "3" } } });
      expect(patched.metadata?.labels).toEqual({ c: "3" });
    },
  },
  {
    sentence: "$setElementOrder sets the order of the elements",
    async run(context) {
      const { cluster, namespace } = context;
      const DEPLOYMENTS = { group: "apps", version: "v1", plural: "deployments", namespaced: true };
      const labels = { app: "web" };
      const template = { metadata: { labels }, spec: TWO };
      const spec = { selector: { matchLabels: labels }, replicas: 0, template };
      await cluster.create(DEPLOYMENTS, { metadata: { name: "web", namespace }, spec } as object);
      const order = [{ name: "side" }, { name: "new" }, { name: "main" }];
      const containers = [{ name: "new", image: "new:1" }];
      const body = { spec: { template: { spec: { "$setElementOrder/containers": order, containers } } } };
      const patched = await cluster.patch(DEPLOYMENTS, { namespace, name: "web" }, { type: "strategic", body });
      expect(patched).toMatchObject({
        spec: { template: { spec: { containers: [{ name: "side" }, { name: "new" }, { name: "main" }] } } },
      });
    },
  },
];
