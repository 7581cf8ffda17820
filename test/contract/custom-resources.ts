/** Cases of custom resources: schema, defaults, pruning, generation, status, versions. */
import { expect } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { type Context, type ContractCase, refused } from "./contract.ts";
import { DEFINITIONS, defineGadgets, type Gadget, type Gadgets, gadget, removeGadgets } from "./gadgets.ts";

interface Definition extends KubernetesObject {
  readonly spec: { readonly versions: readonly object[] };
  readonly status: { readonly storedVersions: readonly string[] };
}

type Run = (context: Context, gadgets: Gadgets) => Promise<void>;

async function makeGadgets(context: Context) {
  const gadgets = await defineGadgets(context);
  return { gadgets, close: () => removeGadgets(context, gadgets) };
}

/** Returns a case with a kind that several cases share: API servers delay the first objects of a new kind for 2 s. */
function withGadgets(sentence: string, run: Run): ContractCase {
  return { sentence, run: async (context) => run(context, (await context.shared(makeGadgets)).gadgets) };
}

function create({ cluster, namespace }: Context, gadgets: Gadgets, spec: object = {}): Promise<Gadget> {
  return cluster.create<Gadget>(gadgets.v1, gadget(gadgets, namespace, spec));
}

function merge({ cluster, namespace }: Context, gadgets: Gadgets, body: object, isStatus = false): Promise<Gadget> {
  const options = isStatus ? { subresource: "status" as const } : {};
  return cluster.patch<Gadget>(gadgets.v1, { namespace, name: "a" }, { type: "merge", body }, options);
}

function pathOf({ namespace }: Context, { group }: Gadgets, version = "v1"): string {
  return `/apis/${group}/${version}/namespaces/${namespace}/gadgets`;
}

interface Invalid {
  readonly spec: object;
  readonly message: string;
  /** the text in Kubernetes 1.31 */
  readonly former?: string;
  readonly cause: { readonly reason: string; readonly field: string };
}

const INVALID: Readonly<Record<string, Invalid>> = {
  "a value of another type": {
    spec: { size: "big" },
    message: 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
    cause: { reason: "FieldValueTypeInvalid", field: "spec.size" },
  },
  "a value outside of its enum": {
    spec: { mode: "medium" },
    message: 'spec.mode: Unsupported value: "medium": supported values: "fast", "slow"',
    cause: { reason: "FieldValueNotSupported", field: "spec.mode" },
  },
  "a required field that is missing": {
    spec: { parts: [{ count: 2 }] },
    message: "spec.parts[0].name: Required value",
    cause: { reason: "FieldValueRequired", field: "spec.parts[0].name" },
  },
  "a value below its minimum": {
    spec: { size: -1 },
    message: "spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0",
    cause: { reason: "FieldValueInvalid", field: "spec.size" },
  },
  "a value above its maximum": {
    spec: { size: 10 },
    message: "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9",
    cause: { reason: "FieldValueInvalid", field: "spec.size" },
  },
  "a text that does not match its pattern": {
    spec: { code: "A1" },
    message: `spec.code: Invalid value: "A1": spec.code in body should match '^[a-z]+$'`,
    cause: { reason: "FieldValueInvalid", field: "spec.code" },
  },
  "a text that is too long": {
    spec: { code: "abcdef" },
    message: "spec.code: Too long: may not be more than 5 bytes",
    former: "spec.code: Too long: may not be longer than 5",
    cause: { reason: "FieldValueTooLong", field: "spec.code" },
  },
  "a list that is too long": {
    spec: { parts: ["a", "b", "c", "d"].map((name) => ({ name })) },
    message: "spec.parts: Too many: 4: must have at most 3 items",
    cause: { reason: "FieldValueTooMany", field: "spec.parts" },
  },
  "an int-or-string that is a boolean": {
    spec: { budget: true },
    message: 'spec.budget: Invalid value: "boolean": spec.budget in body must be of type integer,string: "boolean"',
    cause: { reason: "FieldValueTypeInvalid", field: "spec.budget" },
  },
  "an object in place of a list": {
    spec: { parts: {} },
    message: 'spec.parts: Invalid value: "object": spec.parts in body must be of type array: "object"',
    cause: { reason: "FieldValueTypeInvalid", field: "spec.parts" },
  },
  "a map with a value of another type": {
    spec: { labels: { a: 1 } },
    message: 'spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer"',
    cause: { reason: "FieldValueTypeInvalid", field: "spec.labels.a" },
  },
};

export const SCHEMA_CASES: readonly ContractCase[] = [
  withGadgets("defaults fill existing objects and do not create missing objects", async (context, gadgets) => {
    const created = await create(context, gadgets, { parts: [{ name: "x" }] });
    expect(created.spec).toEqual({ mode: "fast", size: 3, parts: [{ name: "x", count: 1 }] });
    const other = await merge(context, gadgets, { spec: { nested: {} } });
    expect(other.spec?.["nested"]).toEqual({ flag: true });
  }),
  withGadgets("unknown fields are dropped unless the schema preserves them", async (context, gadgets) => {
    const created = await create(context, gadgets, {
      extra: 1,
      nested: { flag: false, extra: 1 },
      free: { extra: 1 },
      parts: [{ name: "x", extra: 1 }],
    });
    expect(created.spec).toEqual({
      mode: "fast",
      size: 3,
      nested: { flag: false },
      free: { extra: 1 },
      parts: [{ name: "x", count: 1, extra: 1 }],
    });
  }),
  withGadgets("an unknown field gives a warning", async (context, gadgets) => {
    const body = gadget(gadgets, context.namespace, { extra: 1 });
    const answer = await context.raw({ method: "POST", path: pathOf(context, gadgets), body });
    expect(answer.code).toBe(201);
    expect(String(answer.headers["warning"])).toContain('299 - "unknown field \\"spec.extra\\""');
  }),
  withGadgets("an unknown field is refused with 400 when fieldValidation is Strict", async (context, gadgets) => {
    const body = gadget(gadgets, context.namespace, { extra: 1 });
    const path = `${pathOf(context, gadgets)}?fieldValidation=Strict`;
    const answer = await context.raw({ method: "POST", path, body });
    expect(answer).toMatchObject({ code: 400, body: { reason: "BadRequest" } });
    expect(answer.text).toContain('strict decoding error: unknown field \\"spec.extra\\"');
  }),
  withGadgets("an int-or-string field accepts a number and a string", async (context, gadgets) => {
    expect((await create(context, gadgets, { budget: "25%" })).spec?.["budget"]).toBe("25%");
    expect((await merge(context, gadgets, { spec: { budget: 2 } })).spec?.["budget"]).toBe(2);
  }),
  withGadgets("a missing spec is refused with 422", async (context, gadgets) => {
    const body = { ...gadget(gadgets, context.namespace, {}), spec: undefined };
    const answer = await context.raw({ method: "POST", path: pathOf(context, gadgets), body });
    expect(answer).toMatchObject({ code: 422, body: { details: { causes: [{ field: "spec" }] } } });
  }),
  ...Object.entries(INVALID).map(([what, { spec, message, former = message, cause }]) =>
    withGadgets(`${what} is refused with 422`, async (context, gadgets) => {
      const body = gadget(gadgets, context.namespace, spec);
      const answer = await context.raw({ method: "POST", path: pathOf(context, gadgets), body });
      const text = `Gadget.${gadgets.group} "a" is invalid: ${context.minor < 32 ? former : message}`;
      const details = { name: "a", group: gadgets.group, kind: "Gadget", causes: [cause] };
      expect(answer.body).toMatchObject({ code: 422, reason: "Invalid", message: text, details });
    }),
  ),
];

export const CUSTOM_CASES: readonly ContractCase[] = [
  withGadgets("the generation increases only with changes of the spec", async (context, gadgets) => {
    expect((await create(context, gadgets)).metadata?.generation).toBe(1);
    expect((await merge(context, gadgets, { metadata: { labels: { a: "b" } } })).metadata?.generation).toBe(1);
    expect((await merge(context, gadgets, { status: { seen: 1 } }, true)).metadata?.generation).toBe(1);
    expect((await merge(context, gadgets, { spec: { mode: "slow" } })).metadata?.generation).toBe(2);
    expect((await merge(context, gadgets, { spec: { mode: "slow" } })).metadata?.generation).toBe(2);
  }),
  withGadgets("a write of a custom resource ignores the status", async (context, gadgets) => {
    const created = await context.cluster.create<Gadget>(gadgets.v1, {
      ...gadget(gadgets, context.namespace, {}),
      status: { seen: 1 },
    });
    expect(created.status).toBeUndefined();
    expect((await merge(context, gadgets, { status: { seen: 2 } })).status).toBeUndefined();
  }),
  withGadgets("a write of the status subresource ignores the spec and the labels", async (context, gadgets) => {
    await create(context, gadgets);
    const body = { metadata: { labels: { a: "b" } }, spec: { mode: "slow" }, status: { seen: 2 } };
    const written = await merge(context, gadgets, body, true);
    expect(written).toMatchObject({ spec: { mode: "fast" }, status: { seen: 2 } });
    expect(written.metadata?.labels).toBeUndefined();
  }),
  withGadgets("a status field with a wrong type is refused with 422", async (context, gadgets) => {
    await create(context, gadgets);
    const written = merge(context, gadgets, { status: { seen: "twice" } }, true);
    await refused(written, { code: 422, message: /status\.seen: Invalid value: "string"/ });
  }),
  withGadgets("a replacement without a resourceVersion is refused with 422", async (context, gadgets) => {
    await create(context, gadgets);
    const body = gadget(gadgets, context.namespace, { mode: "slow" });
    const answer = await context.raw({ method: "PUT", path: `${pathOf(context, gadgets)}/a`, body });
    expect(answer).toMatchObject({ code: 422, body: { reason: "Invalid" } });
    // Kubernetes 1.31 writes 0x0.
    expect(answer.text).toMatch(/metadata\.resourceVersion: Invalid value: 0(x0)?: must be specified for an update/);
  }),
  withGadgets("a strategic merge patch of a custom resource is refused with 415", async (context, gadgets) => {
    const { cluster, namespace } = context;
    await create(context, gadgets);
    const patched = cluster.patch(gadgets.v1, { namespace, name: "a" }, { type: "strategic", body: {} });
    await refused(patched, { code: 415, reason: "UnsupportedMediaType", message: /application\/merge-patch\+json/ });
  }),
  withGadgets("a custom resource can be read and listed in every served version", async (context, gadgets) => {
    const { cluster, namespace } = context;
    const created = await create(context, gadgets);
    const read = await cluster.get<Gadget>(gadgets.v1beta1, { namespace, name: "a" });
    expect(read).toEqual({ ...created, apiVersion: `${gadgets.group}/v1beta1` });
    const { items } = await cluster.list<Gadget>(gadgets.v1beta1, { namespace });
    expect(items).toEqual([read]);
  }),
  withGadgets("a watch returns objects in the requested version", async (context, gadgets) => {
    const { cluster, namespace } = context;
    const created = await create(context, gadgets);
    await merge(context, gadgets, { spec: { mode: "slow" } });
    const options = { namespace, resourceVersion: created.metadata?.resourceVersion ?? "", timeoutSeconds: 300 };
    for await (const event of cluster.watch<Gadget>(gadgets.v1beta1, options)) {
      expect(event).toMatchObject({ type: "MODIFIED", object: { apiVersion: `${gadgets.group}/v1beta1` } });
      expect(event.object.spec?.["mode"]).toBe("slow");
      break;
    }
  }),
  withGadgets("a body whose version differs from the URL's version is refused with 400", async (context, gadgets) => {
    const body = gadget(gadgets, context.namespace, {}, "v1beta1");
    const answer = await context.raw({ method: "POST", path: pathOf(context, gadgets), body });
    expect(answer).toMatchObject({ code: 400, body: { reason: "BadRequest" } });
  }),
  withGadgets("a version that is not served is answered with 404", async (context, gadgets) => {
    expect(await context.raw({ path: pathOf(context, gadgets, "v2") })).toMatchObject({ code: 404 });
  }),
  withGadgets("a Table of custom resources has the printer columns", async (context, gadgets) => {
    await create(context, gadgets);
    const headers = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
    const { body } = await context.raw({ path: pathOf(context, gadgets), headers });
    expect(body).toMatchObject({
      columnDefinitions: [{ name: "Name" }, { name: "Mode" }, { name: "Size", type: "integer" }, { name: "Age" }],
      rows: [{ cells: ["a", "fast", 3, expect.any(String)] }],
    });
  }),
  withGadgets("discovery lists the kind, its versions and its short name", async ({ raw }, gadgets) => {
    const group = await raw({ path: `/apis/${gadgets.group}` });
    const v1 = { groupVersion: `${gadgets.group}/v1`, version: "v1" };
    expect(group.body).toMatchObject({ kind: "APIGroup", preferredVersion: v1 });
    const list = await raw({ path: `/apis/${gadgets.group}/v1` });
    const named = { name: "gadgets", singularName: "gadget", kind: "Gadget", namespaced: true, shortNames: ["gd"] };
    expect(list.body).toMatchObject({ resources: [named, { name: "gadgets/status", kind: "Gadget" }] });
  }),
  {
    sentence: "a CRD version cannot be removed while status.storedVersions lists it",
    async run(context) {
      const gadgets = await defineGadgets(context);
      const key = { name: `gadgets.${gadgets.group}` };
      const { cluster } = context;
      const { spec } = await cluster.get<Definition>(DEFINITIONS, key);
      const [v1, v1beta1] = spec.versions;
      await create(context, gadgets);
      const store = (...versions: readonly object[]) =>
        cluster.patch<Definition>(DEFINITIONS, key, { type: "merge", body: { spec: { versions } } });
      const both = await store({ ...v1, storage: false }, { ...v1beta1, storage: true });
      expect(both.status.storedVersions).toEqual(["v1", "v1beta1"]);
      await refused(store({ ...v1beta1, storage: true }), {
        code: 422,
        // Kubernetes 1.31 gives the second message.
        message: /status\.storedVersions\[0\]: Invalid value: "v1": (missing from|must appear in) spec\.versions/,
      });
      // The object is stored again in the other version. Otherwise neither it nor its definition could be deleted.
      await merge(context, gadgets, { spec: { mode: "slow" } });
      const body = { status: { storedVersions: ["v1beta1"] } };
      await cluster.patch(DEFINITIONS, key, { type: "merge", body }, { subresource: "status" });
      expect((await store({ ...v1beta1, storage: true })).spec.versions).toHaveLength(1);
      await removeGadgets(context, gadgets);
    },
  },
  {
    sentence: "a CRD with conversion strategy None must not have a webhook",
    async run(context) {
      const webhook = { clientConfig: { url: "https://127.0.0.1:1" }, conversionReviewVersions: ["v1"] };
      const gadgets = await defineGadgets(context, { strategy: "Webhook", webhook });
      const convert = (conversion: object) =>
        context.cluster.patch(
          DEFINITIONS,
          { name: `gadgets.${gadgets.group}` },
          { type: "merge", body: { spec: { conversion } } },
        );
      await refused(convert({ strategy: "None" }), {
        code: 422,
        message:
          /spec\.conversion\.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook/,
      });
      await convert({ strategy: "None", webhook: null });
      await removeGadgets(context, gadgets);
    },
  },
  {
    sentence: "the deletion of a CRD deletes its objects",
    async run(context) {
      const gadgets = await defineGadgets(context);
      await create(context, gadgets);
      await removeGadgets(context, gadgets);
      const code = async () => (await context.raw({ path: pathOf(context, gadgets) })).code;
      await expect.poll(code).toBe(404);
    },
  },
];
