/** Cases of create, get, replace and delete. */
import { expect } from "vitest";
import { CONFIG_MAPS, CONTROLLER_REVISIONS, NAMESPACES } from "../../shared/kube/port.ts";
import {
  type ConfigMap,
  type Context,
  type ContractCase,
  createMap,
  createPod,
  refused,
  versionOf,
} from "./contract.ts";

const UID = "00000000-0000-0000-0000-000000000000";

function get({ cluster, namespace }: Context, name: string): Promise<ConfigMap> {
  return cluster.get<ConfigMap>(CONFIG_MAPS, { namespace, name });
}

function put({ raw, namespace }: Context, name: string, body: object) {
  return raw({ method: "PUT", path: `/api/v1/namespaces/${namespace}/configmaps/${name}`, body });
}

function post({ raw, namespace }: Context, body: unknown, headers: Record<string, string> = {}) {
  return raw({ method: "POST", path: `/api/v1/namespaces/${namespace}/configmaps`, body, headers });
}

export const CREATE_CASES: readonly ContractCase[] = [
  {
    sentence: "a created object has kind, uid, resourceVersion and creationTimestamp",
    async run(context) {
      const created = await createMap(context, "a", { data: { k: "v" } });
      expect(created).toMatchObject({ apiVersion: "v1", kind: "ConfigMap", data: { k: "v" } });
      expect(created.metadata?.uid).toMatch(/^[0-9a-f-]{36}$/);
      expect(created.metadata?.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(await get(context, "a")).toEqual(created);
    },
  },
  {
    sentence: "generateName gives a name with five additional characters",
    async run(context) {
      const created = await createMap(context, "", { metadata: { name: undefined, generateName: "web-" } });
      expect(created.metadata?.name).toMatch(/^web-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
      expect(created.metadata?.generateName).toBe("web-");
    },
  },
  {
    sentence: "a create with an existing name is refused with 409 AlreadyExists",
    async run(context) {
      await createMap(context, "a");
      await refused(createMap(context, "a"), {
        code: 409,
        reason: "AlreadyExists",
        message: 'configmaps "a" already exists',
      });
    },
  },
  {
    sentence: "a create in a namespace that does not exist is refused with 404",
    async run(context) {
      const nowhere = { ...context, namespace: "nowhere" };
      await refused(createMap(nowhere, "a"), {
        code: 404,
        reason: "NotFound",
        message: 'namespaces "nowhere" not found',
      });
    },
  },
  {
    sentence: "an object without a name is refused with 422",
    async run(context) {
      const message = "metadata.name: Required value: name or generateName is required";
      await refused(createMap(context, "", { metadata: { name: undefined } }), {
        code: 422,
        reason: "Invalid",
        message,
      });
    },
  },
  {
    sentence: "a name that is not a DNS subdomain is refused with 422",
    async run(context) {
      const answer = await post(context, { metadata: { name: "Web_1" } });
      expect(answer.code).toBe(422);
      expect(answer.body).toMatchObject({ reason: "Invalid", details: { name: "Web_1", kind: "ConfigMap" } });
      expect(answer.body).toMatchObject({
        details: { causes: [{ reason: "FieldValueInvalid", field: "metadata.name" }] },
      });
      expect(answer.text).toContain('Invalid value: \\"Web_1\\": a lowercase RFC 1123 subdomain must consist of');
    },
  },
  {
    sentence: "a label that is not a string is refused with 400",
    async run(context) {
      const answer = await post(context, { metadata: { name: "a", labels: { n: 1 } } });
      expect(answer).toMatchObject({ code: 400, body: { reason: "BadRequest" } });
      expect(answer.text).toContain(
        "cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
      );
    },
  },
  {
    sentence: "a label value with a space is refused with 422",
    async run(context) {
      const created = createMap(context, "a", { metadata: { labels: { tier: "a b" } } });
      await refused(created, {
        code: 422,
        message: /metadata\.labels: Invalid value: "a b": a valid label must be an empty/,
      });
    },
  },
  {
    sentence: "annotations of more than 256 KiB are refused with 422",
    async run(context) {
      const created = createMap(context, "a", { metadata: { annotations: { big: "x".repeat(262_200) } } });
      await refused(created, { code: 422, message: /metadata\.annotations: Too long/ });
    },
  },
  {
    sentence: "a body of another kind is refused with 400",
    async run(context) {
      const answer = await post(context, { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } });
      expect(answer.body).toMatchObject({ code: 400, reason: "BadRequest" });
    },
  },
  {
    sentence: "a body of another API version is refused with 400",
    async run(context) {
      const answer = await post(context, { apiVersion: "v2", kind: "ConfigMap", metadata: { name: "a" } });
      expect(answer.body).toMatchObject({ code: 400, reason: "BadRequest" });
    },
  },
  {
    sentence: "a body of another namespace is refused with 400",
    async run(context) {
      const answer = await post(context, { metadata: { name: "a", namespace: "other" } });
      const message = "the namespace of the provided object does not match the namespace sent on the request";
      expect(answer.body).toMatchObject({ code: 400, reason: "BadRequest", message });
    },
  },
  {
    sentence: "a body that is not JSON is refused with 400",
    async run(context) {
      expect(await post(context, "{")).toMatchObject({ code: 400, body: { kind: "Status", reason: "BadRequest" } });
    },
  },
  {
    sentence: "a body of an unknown media type is refused with 415",
    async run(context) {
      const answer = await post(context, "name=a", { "content-type": "application/x-www-form-urlencoded" });
      expect(answer).toMatchObject({ code: 415, body: { reason: "UnsupportedMediaType" } });
    },
  },
  {
    sentence: "a create accepts a YAML body",
    async run(context) {
      const answer = await post(context, "metadata:\n  name: a\ndata: {k: v}\n", {
        "content-type": "application/yaml",
      });
      expect(answer).toMatchObject({ code: 201, body: { data: { k: "v" } } });
    },
  },
  {
    sentence: "a dry run of a create returns the object and stores nothing",
    async run(context) {
      const { cluster, namespace } = context;
      const object = { metadata: { name: "a", namespace }, data: { k: "v" } } as ConfigMap;
      const created = await cluster.create(CONFIG_MAPS, object, { dryRun: true });
      expect(created.metadata?.uid).toBeDefined();
      await refused(get(context, "a"), { code: 404 });
    },
  },
  {
    sentence: "a dry run of a create with an existing name is refused with 409",
    async run(context) {
      await createMap(context, "a");
      const object = { metadata: { name: "a", namespace: context.namespace } };
      await refused(context.cluster.create(CONFIG_MAPS, object, { dryRun: true }), {
        code: 409,
        reason: "AlreadyExists",
      });
    },
  },
  {
    sentence: "a new namespace has its name as a label",
    async run({ cluster, namespace }) {
      const read = await cluster.get(NAMESPACES, { name: namespace });
      expect(read).toMatchObject({ metadata: { labels: { "kubernetes.io/metadata.name": namespace } } });
      expect(read).toMatchObject({ status: { phase: "Active" } });
    },
  },
];

export const READ_CASES: readonly ContractCase[] = [
  {
    sentence: "a read of a missing object is answered with 404, its name and its plural",
    async run(context) {
      const answer = await context.raw({ path: `/api/v1/namespaces/${context.namespace}/configmaps/gone` });
      expect(answer.body).toEqual({
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        message: 'configmaps "gone" not found',
        reason: "NotFound",
        details: { name: "gone", kind: "configmaps" },
        code: 404,
      });
    },
  },
  {
    sentence: "a read of a missing object of a named group is answered with 404, its plural and its group",
    async run({ cluster, namespace }) {
      const message = 'controllerrevisions.apps "gone" not found';
      await refused(cluster.get(CONTROLLER_REVISIONS, { namespace, name: "gone" }), { code: 404, message });
    },
  },
  {
    sentence: "an unknown resource of a known version is answered with 404",
    async run({ raw }) {
      const answer = await raw({ path: "/api/v1/gadgets" });
      const message = "the server could not find the requested resource";
      expect(answer).toMatchObject({ code: 404, body: { reason: "NotFound", message, details: {} } });
    },
  },
  {
    sentence: "an unknown group is answered with 404 in plain text",
    async run({ raw }) {
      expect(await raw({ path: "/apis/nothing.example.com/v1/gadgets" })).toMatchObject({
        code: 404,
        text: "404 page not found\n",
      });
    },
  },
  {
    sentence: "a method that a path does not support is answered with 405",
    async run({ raw, namespace }) {
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      const answer = await raw({ method: "PUT", path, body: {} });
      const message = "the server does not allow this method on the requested resource";
      expect(answer).toMatchObject({ code: 405, body: { reason: "MethodNotAllowed", message } });
    },
  },
  {
    sentence: "a client without a token is answered with 401 or 403",
    async run({ raw }) {
      const answer = await raw({ path: "/api/v1/namespaces", token: "" });
      expect([401, 403]).toContain(answer.code);
    },
  },
  {
    sentence: "a client with a wrong token is answered with 401 Unauthorized",
    async run({ raw }) {
      const answer = await raw({ path: "/api/v1/namespaces", token: "wrong" });
      expect(answer).toMatchObject({ code: 401, body: { reason: "Unauthorized", message: "Unauthorized" } });
    },
  },
  {
    sentence: "a client that accepts only images is answered with 406",
    async run({ raw }) {
      const answer = await raw({ path: "/api/v1/namespaces", headers: { accept: "image/png" } });
      expect(answer).toMatchObject({ code: 406, body: { reason: "NotAcceptable" } });
    },
  },
  {
    sentence: "a PartialObjectMetadata contains only the metadata",
    async run(context) {
      const created = await createMap(context, "a", { data: { k: "v" } });
      const accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
      const path = `/api/v1/namespaces/${context.namespace}/configmaps/a`;
      const kind = { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1" };
      const answer = await context.raw({ path, headers: { accept } });
      expect(answer.body).toEqual({ ...kind, metadata: created.metadata });
      // Kubernetes 1.38 knows this parameter; other versions ignore it.
      const dropping = { path, headers: { accept: `${accept};drop=metadata.managedFields` } };
      expect(await context.raw(dropping)).toMatchObject({ code: 200, body: { ...kind, metadata: { name: "a" } } });
      const place = { path: path.replace(/\/a$/, ""), method: "POST", headers: dropping.headers };
      const made = await context.raw({
        ...place,
        body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "b" } },
      });
      expect(made).toMatchObject({ code: 201, body: { ...kind, metadata: { name: "b" } } });
    },
  },
  {
    sentence: "a Table has a row with a cell for every column",
    async run(context) {
      await createMap(context, "a", { data: { k: "v" } });
      const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
      const path = `/api/v1/namespaces/${context.namespace}/configmaps/a`;
      const { body } = await context.raw({ path, headers: { accept } });
      expect(body).toMatchObject({
        kind: "Table",
        columnDefinitions: [{ name: "Name" }, { name: "Data" }, { name: "Age" }],
        rows: [{ cells: ["a", 1, expect.stringMatching(/^\d+s$/)], object: { kind: "PartialObjectMetadata" } }],
      });
    },
  },
];

export const REPLACE_CASES: readonly ContractCase[] = [
  {
    sentence: "a replaced object keeps its uid and creationTimestamp and gets a new resourceVersion",
    async run(context) {
      const before = await createMap(context, "a", { data: { k: "v" } });
      const answer = await put(context, "a", { metadata: { name: "a" }, data: { k: "w" } });
      const { uid, creationTimestamp } = before.metadata ?? {};
      expect(answer).toMatchObject({ code: 200, body: { metadata: { uid, creationTimestamp }, data: { k: "w" } } });
      expect(versionOf(answer.body as ConfigMap)).not.toBe(versionOf(before));
    },
  },
  {
    sentence: "a replacement with an old resourceVersion is refused with 409 Conflict",
    async run(context) {
      const before = await createMap(context, "a");
      await put(context, "a", { metadata: { name: "a" }, data: { k: "v" } });
      const answer = await put(context, "a", { ...before, data: { k: "w" } });
      const message =
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again';
      expect(answer).toMatchObject({ code: 409, body: { reason: "Conflict", message } });
    },
  },
  {
    sentence: "a replacement with another uid is refused with 409 Conflict",
    async run(context) {
      await createMap(context, "a");
      const answer = await put(context, "a", { metadata: { name: "a", uid: UID } });
      expect(answer).toMatchObject({ code: 409, body: { reason: "Conflict" } });
      expect(answer.text).toContain(`Precondition failed: UID in precondition: ${UID}, UID in object meta: `);
    },
  },
  {
    sentence: "a replacement with another name is refused with 400",
    async run(context) {
      await createMap(context, "a");
      const answer = await put(context, "a", { metadata: { name: "b" } });
      const message = "the name of the object (b) does not match the name on the URL (a)";
      expect(answer).toMatchObject({ code: 400, body: { reason: "BadRequest", message } });
    },
  },
  {
    sentence: "a replacement of a missing object is answered with 404",
    async run(context) {
      expect(await put(context, "a", { metadata: { name: "a" } })).toMatchObject({ code: 404 });
    },
  },
  {
    sentence: "a replacement that changes nothing keeps the resourceVersion",
    async run(context) {
      const before = await createMap(context, "a", { data: { k: "v" } });
      expect((await put(context, "a", before)).body).toEqual(before);
    },
  },
  {
    sentence: "a change of an immutable ConfigMap is refused with 422",
    async run(context) {
      const body = { metadata: { name: "a", namespace: context.namespace }, immutable: true, data: { k: "v" } };
      await context.cluster.create(CONFIG_MAPS, body as ConfigMap);
      const answer = await put(context, "a", { ...body, data: { k: "w" } });
      expect(answer).toMatchObject({ code: 422, body: { reason: "Invalid" } });
      expect(answer.text).toContain("data: Forbidden: field is immutable when `immutable` is set");
    },
  },
  {
    sentence: "a change of a ControllerRevision's data is refused with 422",
    async run({ cluster, namespace }) {
      const revision = { metadata: { name: "r", namespace }, revision: 1, data: { spec: { a: null, b: 1 } } };
      const created = await cluster.create(CONTROLLER_REVISIONS, revision);
      expect(created).toMatchObject({ data: { spec: { a: null, b: 1 } } });
      const operations = [{ op: "replace" as const, path: "/data/spec/b", value: 2 }];
      const patched = cluster.patch(CONTROLLER_REVISIONS, { namespace, name: "r" }, { type: "json", operations });
      await refused(patched, { code: 422, message: /data: .*field is immutable/ });
    },
  },
];

export const DELETE_CASES: readonly ContractCase[] = [
  {
    sentence: "a read and a delete of a deleted object are answered with 404",
    async run(context) {
      const { cluster, namespace } = context;
      await createMap(context, "a");
      await cluster.delete(CONFIG_MAPS, { namespace, name: "a" });
      await refused(get(context, "a"), { code: 404 });
      await refused(cluster.delete(CONFIG_MAPS, { namespace, name: "a" }), { code: 404, reason: "NotFound" });
    },
  },
  {
    sentence: "a delete is answered with Success and the object's name and uid",
    async run(context) {
      const created = await createMap(context, "a");
      const path = `/api/v1/namespaces/${context.namespace}/configmaps/a`;
      const answer = await context.raw({ method: "DELETE", path });
      const details = { name: "a", kind: "configmaps", uid: created.metadata?.uid };
      expect(answer.body).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details });
    },
  },
  {
    sentence: "a delete with another uid is refused with 409 and deletes nothing",
    async run(context) {
      const { cluster, namespace } = context;
      const created = await createMap(context, "a");
      const other = cluster.delete(CONFIG_MAPS, { namespace, name: "a" }, { uid: UID });
      await refused(other, { code: 409, reason: "Conflict", message: /UID in (the )?precondition/ });
      expect(await get(context, "a")).toEqual(created);
      await cluster.delete(CONFIG_MAPS, { namespace, name: "a" }, { uid: created.metadata?.uid ?? "" });
    },
  },
  {
    sentence: "a delete with an old resourceVersion is refused with 409",
    async run(context) {
      const { cluster, namespace } = context;
      const created = await createMap(context, "a");
      await put(context, "a", { metadata: { name: "a" }, data: { k: "v" } });
      const key = { namespace, name: "a" };
      const late = cluster.delete(CONFIG_MAPS, key, { resourceVersion: versionOf(created) });
      await refused(late, { code: 409, reason: "Conflict" });
    },
  },
  {
    sentence: "a create of an object with a resourceVersion is answered with 500",
    async run(context) {
      const answer = await post(context, { metadata: { name: "a", resourceVersion: "5" } });
      const message = "resourceVersion should not be set on objects to be created";
      expect(answer).toMatchObject({ code: 500, body: { message } });
    },
  },
  {
    sentence: "a delete with DeleteOptions ignores the query parameter dryRun",
    async run(context) {
      const path = `/api/v1/namespaces/${context.namespace}/configmaps/a`;
      const options = { kind: "DeleteOptions", apiVersion: "v1" };
      await createMap(context, "a");
      await context.raw({ method: "DELETE", path, body: { ...options, dryRun: ["All"] } });
      await context.raw({ method: "DELETE", path: `${path}?dryRun=All` });
      expect((await get(context, "a")).metadata?.name).toBe("a");
      await context.raw({ method: "DELETE", path: `${path}?dryRun=All`, body: options });
      await refused(get(context, "a"), { code: 404 });
    },
  },
  {
    sentence: "a dry run of a delete deletes nothing",
    async run(context) {
      const { cluster, namespace } = context;
      const created = await createMap(context, "a");
      await cluster.delete(CONFIG_MAPS, { namespace, name: "a" }, { dryRun: true });
      expect(await get(context, "a")).toEqual(created);
    },
  },
  {
    sentence: "a deleted object with a finalizer stays until the finalizer is removed",
    async run(context) {
      const { cluster, namespace } = context;
      const key = { namespace, name: "a" };
      await createMap(context, "a", { metadata: { finalizers: ["example.com/wait"] } });
      await cluster.delete(CONFIG_MAPS, key);
      expect((await get(context, "a")).metadata?.deletionTimestamp).toBeDefined();
      await cluster.patch(CONFIG_MAPS, key, { type: "merge", body: { metadata: { finalizers: null } } });
      await refused(get(context, "a"), { code: 404 });
    },
  },
  {
    sentence: "a new finalizer on an object that is being deleted is refused",
    async run(context) {
      const { cluster, namespace } = context;
      const key = { namespace, name: "a" };
      await createMap(context, "a", { metadata: { finalizers: ["example.com/wait"] } });
      await cluster.delete(CONFIG_MAPS, key);
      const finalizers = ["example.com/wait", "example.com/more"];
      const added = cluster.patch(CONFIG_MAPS, key, { type: "merge", body: { metadata: { finalizers } } });
      await refused(added, { code: 422, message: /no new finalizers can be added if the object is being deleted/ });
    },
  },
  {
    sentence: "deletecollection deletes only the objects that its selector matches",
    async run(context) {
      await createMap(context, "a", { metadata: { labels: { tier: "x" } } });
      await createMap(context, "b");
      const path = `/api/v1/namespaces/${context.namespace}/configmaps?labelSelector=tier%3Dx`;
      expect(await context.raw({ method: "DELETE", path })).toMatchObject({ code: 200 });
      await refused(get(context, "a"), { code: 404 });
      expect((await get(context, "b")).metadata?.name).toBe("b");
    },
  },
  {
    sentence: "a pod without a node is deleted at once",
    async run(context) {
      await createPod(context, "p");
      const path = `/api/v1/namespaces/${context.namespace}/pods/p`;
      const answer = await context.raw({ method: "DELETE", path });
      expect(answer).toMatchObject({ code: 200, body: { kind: "Pod", metadata: { name: "p" } } });
      expect(await context.raw({ path })).toMatchObject({ code: 404 });
    },
  },
  {
    sentence: "an object is deleted after its owner",
    needs: "collectsGarbage",
    async run(context) {
      const owner = await createMap(context, "owner");
      const { name = "", uid = "" } = owner.metadata ?? {};
      const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name, uid }];
      await createMap(context, "owned", { metadata: { ownerReferences } });
      await context.cluster.delete(CONFIG_MAPS, { namespace: context.namespace, name: "owner" });
      await expect
        .poll(() =>
          get(context, "owned").then(
            () => "there",
            () => "gone",
          ),
        )
        .toBe("gone");
    },
  },
  {
    sentence: "the deletion of a namespace deletes its objects",
    needs: "collectsGarbage",
    async run(context) {
      await createMap(context, "a");
      await context.cluster.delete(NAMESPACES, { name: context.namespace });
      const read = () => context.cluster.get(NAMESPACES, { name: context.namespace });
      await expect
        .poll(() =>
          read().then(
            () => "there",
            () => "gone",
          ),
        )
        .toBe("gone");
      await refused(get(context, "a"), { code: 404 });
    },
  },
];
