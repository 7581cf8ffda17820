/** Cases of admission webhooks: requests to them, effects of their answers, and failures. */
import { expect } from "vitest";
import { CONFIG_MAPS, PODS } from "../../shared/kube/port.ts";
import { CONFIG_MAP_RULE, hookName, withWebhooks } from "./admission-setup.ts";
import { type ConfigMap, type ContractCase, createMap, createPod, refused } from "./contract.ts";
import { patching } from "./webhook-server.ts";

const ADD_DATA = patching({ op: "add", path: "/data", value: { added: "yes" } });
const MUTATE = { type: "mutating", path: "/mutate" } as const;
const VALIDATE = { type: "validating", path: "/validate" } as const;

export const ADMISSION_CASES: readonly ContractCase[] = [
  withWebhooks("the API server stores the patch of a mutating webhook", async ({ server, install, ...context }) => {
    server.answer("/mutate", () => ADD_DATA);
    await install(MUTATE);
    expect((await createMap(context, "a")).data).toEqual({ added: "yes" });
  }),
  withWebhooks("the review of a create has the expected fields", async ({ server, install, ...context }) => {
    const { namespace } = context;
    await install(MUTATE);
    await createMap(context, "a", { data: { k: "v" } });
    const kind = { group: "", version: "v1", kind: "ConfigMap" };
    const resource = { group: "", version: "v1", resource: "configmaps" };
    expect(server.requests("/mutate")).toMatchObject([
      {
        uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        kind,
        resource,
        requestKind: kind,
        requestResource: resource,
        name: "a",
        namespace,
        operation: "CREATE",
        userInfo: { username: expect.any(String), groups: expect.arrayContaining(["system:authenticated"]) },
        object: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace }, data: { k: "v" } },
        oldObject: null,
        dryRun: false,
        options: { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" },
      },
    ]);
    expect(server.requests("/mutate")[0]?.object?.metadata?.resourceVersion).toBeUndefined();
  }),
  withWebhooks(
    "the review of a patch has the old object, the new object and UpdateOptions",
    async ({ server, install, ...context }) => {
      const { cluster, namespace } = context;
      await createMap(context, "a", { data: { k: "v" } });
      await install(VALIDATE);
      await cluster.patch(CONFIG_MAPS, { namespace, name: "a" }, { type: "merge", body: { data: { k: "w" } } });
      expect(server.requests("/validate")).toMatchObject([
        {
          operation: "UPDATE",
          object: { data: { k: "w" } },
          oldObject: { kind: "ConfigMap", data: { k: "v" } },
          options: { kind: "UpdateOptions" },
        },
      ]);
    },
  ),
  withWebhooks("the review of a delete has only the old object", async ({ server, install, ...context }) => {
    const { cluster, namespace } = context;
    await createMap(context, "a", { data: { k: "v" } });
    await install({ ...VALIDATE, webhook: { rules: [{ ...CONFIG_MAP_RULE, operations: ["DELETE"] }] } });
    server.answer("/validate", () => ({ allowed: false, status: { message: "kept" } }));
    await refused(cluster.delete(CONFIG_MAPS, { namespace, name: "a" }), {
      code: 400,
      message: /denied the request: kept$/,
    });
    expect(server.requests("/validate")).toMatchObject([
      { operation: "DELETE", object: null, oldObject: { data: { k: "v" } }, options: { kind: "DeleteOptions" } },
    ]);
  }),
  withWebhooks(
    "a pod gets its defaults before admission and again after it",
    async ({ server, install, ...context }) => {
      const rules = [{ ...CONFIG_MAP_RULE, resources: ["pods"] }];
      server.answer("/mutate", () =>
        patching({ op: "add", path: "/spec/containers/-", value: { name: "side", image: "side:1" } }),
      );
      await install({ ...MUTATE, webhook: { rules } });
      const created = await createPod(context, "p");
      const sent = server.requests("/mutate")[0]?.object;
      expect(sent).toMatchObject({
        spec: { restartPolicy: "Always", containers: [{ imagePullPolicy: "IfNotPresent" }] },
      });
      const [main, side] = created.spec.containers;
      expect(side).toMatchObject({ imagePullPolicy: "IfNotPresent", terminationMessagePath: "/dev/termination-log" });
      expect(side?.["volumeMounts"]).toEqual(main?.["volumeMounts"]);
    },
  ),
  withWebhooks(
    "a mutating webhook gets an object without its generated name, and a validating webhook gets the name",
    async (admission) => {
      const { server, install, ...context } = admission;
      await install(MUTATE, VALIDATE);
      const created = await createMap(context, "", { metadata: { name: undefined, generateName: "a-" } });
      expect(server.requests("/mutate")[0]?.object?.metadata).not.toHaveProperty("name");
      expect(server.requests("/validate")[0]?.object?.metadata?.name).toBe(created.metadata?.name);
    },
  ),
  withWebhooks(
    "API servers call mutating webhooks in the order of their configurations' names",
    async ({ server, install, ...context }) => {
      server.answer("/first", () => patching({ op: "add", path: "/data", value: { order: "1" } }));
      server.answer("/second", ({ object }) => {
        const { data } = object as ConfigMap;
        return patching({ op: "replace", path: "/data/order", value: `${data?.["order"]}2` });
      });
      await install({ type: "mutating", path: "/first" }, { type: "mutating", path: "/second" });
      expect((await createMap(context, "a")).data).toEqual({ order: "12" });
    },
  ),
  withWebhooks(
    "a validating webhook gets the object with the patches of mutating webhooks",
    async ({ server, install, ...context }) => {
      server.answer("/mutate", () => ADD_DATA);
      await install(MUTATE, VALIDATE);
      const { metadata } = await createMap(context, "a");
      expect(server.requests("/validate")).toMatchObject([
        { object: { data: { added: "yes" }, metadata: { uid: metadata?.uid } } },
      ]);
    },
  ),
  withWebhooks(
    "a denied request fails with the webhook's code, reason and message",
    async ({ server, install, ...context }) => {
      const status = { code: 403, reason: "Forbidden", message: "not today" };
      server.answer("/validate", () => ({ allowed: false, status }));
      await install(VALIDATE);
      const message = `admission webhook "${hookName("/validate")}" denied the request: not today`;
      await refused(createMap(context, "a"), { code: 403, reason: "Forbidden", message });
    },
  ),
  withWebhooks(
    "a denial without a message is reported as a denial without explanation",
    async ({ server, install, ...context }) => {
      server.answer("/mutate", () => ({ allowed: false }));
      await install(MUTATE);
      const message = `admission webhook "${hookName("/mutate")}" denied the request without explanation`;
      await refused(createMap(context, "a"), { code: 400, message });
    },
  ),
  withWebhooks("the client gets the warnings of a webhook", async ({ server, install, raw, namespace }) => {
    server.answer("/mutate", () => ({ allowed: true, warnings: ["mind the gap"] }));
    await install(MUTATE);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const { headers } = await raw({ method: "POST", path, body: { metadata: { name: "a" } } });
    expect(headers["warning"]).toBe('299 - "mind the gap"');
  }),
  withWebhooks("the review of a dry run has dryRun: true", async ({ server, install, cluster, namespace }) => {
    await install(MUTATE);
    await cluster.create(CONFIG_MAPS, { metadata: { name: "a", namespace } }, { dryRun: true });
    expect(server.requests("/mutate")).toMatchObject([{ dryRun: true }]);
  }),
  withWebhooks(
    "an API server calls a webhook only for the resources, operations and subresources of its rules",
    async (admission) => {
      const { server, install, ...context } = admission;
      const rules = [{ operations: ["UPDATE"], apiGroups: [""], apiVersions: ["*"], resources: ["pods/status"] }];
      await install({ ...VALIDATE, webhook: { rules } });
      const { cluster, namespace } = context;
      await createPod(context, "p");
      const key = { namespace, name: "p" };
      await cluster.patch(PODS, key, { type: "merge", body: { metadata: { labels: { a: "b" } } } });
      expect(server.requests("/validate")).toHaveLength(0);
      const body = { status: { message: "x" } };
      await cluster.patch(PODS, key, { type: "merge", body }, { subresource: "status" });
      expect(server.requests("/validate")).toMatchObject([{ subResource: "status", operation: "UPDATE" }]);
    },
  ),
  withWebhooks(
    "an API server calls a webhook with an objectSelector only for objects with these labels",
    async ({ server, install, ...context }) => {
      await install({ ...MUTATE, webhook: { objectSelector: { matchLabels: { inject: "yes" } } } });
      await createMap(context, "a");
      expect(server.requests("/mutate")).toHaveLength(0);
      await createMap(context, "b", { metadata: { labels: { inject: "yes" } } });
      expect(server.requests("/mutate")).toHaveLength(1);
    },
  ),
  withWebhooks(
    "an API server does not call a webhook for a namespace that the namespaceSelector excludes",
    async ({ server, install, ...context }) => {
      const matchExpressions = [
        {
          key: "kubernetes.io/metadata.name",
          operator: "NotIn",
          values: [context.namespace, "default", "kube-system"],
        },
        { key: "contract", operator: "Exists" },
      ];
      await install({ ...MUTATE, webhook: { namespaceSelector: { matchExpressions } } });
      await createMap(context, "a");
      expect(server.requests("/mutate")).toHaveLength(0);
    },
  ),
  withWebhooks(
    "a webhook's patch that makes the object invalid is refused with 422",
    async ({ server, install, ...context }) => {
      server.answer("/mutate", () => patching({ op: "add", path: "/metadata/labels", value: { a: "b c" } }));
      await install(MUTATE);
      await refused(createMap(context, "a"), { code: 422, message: /metadata\.labels: Invalid value: "b c"/ });
    },
  ),
  withWebhooks(
    "an API server calls a webhook only if all matchConditions are true",
    async ({ server, install, ...context }) => {
      const conditions = [
        { name: "named", expression: `request.name != "b" && request.operation == "CREATE"` },
        {
          name: "wanted",
          expression: `(has(object.metadata.labels) && "inject" in object.metadata.labels && object.metadata.labels["inject"] in ["yes", "it's"]) || (has(object.data) && object.data.exists(k, k.startsWith("in")))`,
        },
      ];
      await install({ ...MUTATE, webhook: { matchConditions: conditions } });
      const asked = async (name: string, object: Partial<ConfigMap>) => {
        const before = server.requests("/mutate").length;
        await createMap(context, name, object);
        return server.requests("/mutate").length - before;
      };
      expect(await asked("a", {})).toBe(0);
      expect(await asked("c", { metadata: { labels: { inject: "no" } } })).toBe(0);
      expect(await asked("b", { metadata: { labels: { inject: "yes" } } })).toBe(0);
      expect(await asked("d", { metadata: { labels: { inject: "yes" } } })).toBe(1);
      expect(await asked("e", { data: { inside: "" } })).toBe(1);
    },
  ),
  withWebhooks(
    "a matchCondition that fails skips the webhook or refuses the request, by failurePolicy",
    async ({ server, install, ...context }) => {
      const matchConditions = [{ name: "fails", expression: `object.metadata.labels["absent"] == "x"` }];
      await install({ ...MUTATE, webhook: { matchConditions, failurePolicy: "Ignore" } });
      await createMap(context, "a");
      expect(server.requests("/mutate")).toHaveLength(0);
      await install({ ...VALIDATE, webhook: { matchConditions } });
      await refused(createMap(context, "b"), { code: 403, message: /configmaps "b" is forbidden: / });
    },
  ),
];
