/** Cases of custom resources whose versions a webhook converts. */
import { expect } from "vitest";
import { CONFIG_MAP_RULE, withWebhooks } from "./admission-setup.ts";
import { type Context, type ContractCase, refused } from "./contract.ts";
import { defineGadgets, type Gadget, type Gadgets, gadget, removeGadgets } from "./gadgets.ts";
import { patching, type SentRequest, startWebhookServer, type WebhookServer } from "./webhook-server.ts";

/** Converts objects, and writes into spec.code the version that it converted to. */
function converted({ desiredAPIVersion = "", objects = [] }: SentRequest) {
  const code = desiredAPIVersion.endsWith("/v1") ? "one" : "beta";
  const convertedObjects = objects.map((object) => {
    const { spec } = object as Gadget;
    return { ...object, apiVersion: desiredAPIVersion, spec: { ...spec, code } };
  });
  return { convertedObjects, result: { status: "Success" } };
}

function conversionBy(server: WebhookServer): object {
  const clientConfig = { url: server.url("/convert"), caBundle: server.caBundle };
  return { strategy: "Webhook", webhook: { clientConfig, conversionReviewVersions: ["v1"] } };
}

type Run = (context: Context, gadgets: Gadgets, server: WebhookServer) => Promise<void>;

async function makeConversion(context: Context) {
  const server = await startWebhookServer(context.webhookHost);
  const gadgets = await defineGadgets(context, conversionBy(server));
  const close = async () => {
    await removeGadgets(context, gadgets);
    await server.close();
  };
  return { server, gadgets, close };
}

function withConversion(sentence: string, run: Run): ContractCase {
  return {
    sentence,
    async run(context) {
      const { server, gadgets } = await context.shared(makeConversion);
      server.answer("/convert", converted);
      await run(context, gadgets, server);
    },
  };
}

export const CONVERSION_CASES: readonly ContractCase[] = [
  withConversion(
    "a read in another version returns the object that the conversion webhook returns",
    async (context, gadgets, server) => {
      const { cluster, namespace } = context;
      const created = await cluster.create<Gadget>(gadgets.v1, gadget(gadgets, namespace, { code: "abc" }));
      expect(created.spec?.["code"]).toBe("abc");
      const read = await cluster.get<Gadget>(gadgets.v1beta1, { namespace, name: "a" });
      expect(read).toMatchObject({ apiVersion: `${gadgets.group}/v1beta1`, spec: { mode: "fast", code: "beta" } });
      expect(read.metadata).toEqual(created.metadata);
      expect(server.requests("/convert").at(-1)).toMatchObject({
        desiredAPIVersion: `${gadgets.group}/v1beta1`,
        objects: [{ apiVersion: `${gadgets.group}/v1`, spec: { code: "abc" } }],
      });
    },
  ),
  withConversion("the API server stores an object in the storage version", async (context, gadgets) => {
    const { cluster, namespace } = context;
    const object = gadget(gadgets, namespace, { code: "abc" }, "v1beta1");
    const created = await cluster.create<Gadget>(gadgets.v1beta1, object);
    expect(created.apiVersion).toBe(`${gadgets.group}/v1beta1`);
    const stored = await cluster.get<Gadget>(gadgets.v1, { namespace, name: "a" });
    expect(stored.spec).toMatchObject({ code: "one" });
  }),
  withConversion("lists and watches return converted objects", async (context, gadgets) => {
    const { cluster, namespace } = context;
    await cluster.create<Gadget>(gadgets.v1, gadget(gadgets, namespace, {}));
    const { items } = await cluster.list<Gadget>(gadgets.v1beta1, { namespace });
    expect(items).toMatchObject([{ spec: { code: "beta" } }]);
    for await (const event of cluster.watch<Gadget>(gadgets.v1beta1, {
      namespace,
      resourceVersion: "0",
      timeoutSeconds: 300,
    })) {
      expect(event).toMatchObject({ type: "ADDED", object: { spec: { code: "beta" } } });
      break;
    }
  }),
  withConversion(
    "a failed conversion is answered with 500 and the webhook's message",
    async (context, gadgets, server) => {
      const { cluster, namespace } = context;
      await cluster.create<Gadget>(gadgets.v1, gadget(gadgets, namespace, {}));
      server.answer("/convert", () => ({ convertedObjects: [], result: { status: "Failure", message: "not today" } }));
      const read = cluster.get(gadgets.v1beta1, { namespace, name: "a" });
      await refused(read, { code: 500, message: /conversion webhook for .*Kind=Gadget failed: not today/ });
    },
  ),
  withWebhooks(
    "an admission webhook for one version gets objects of other versions converted to its version",
    async (admission) => {
      const { server, install, ...context } = admission;
      const { server: converter, gadgets } = await context.shared(makeConversion);
      converter.answer("/convert", converted);
      server.answer("/mutate", () => patching({ op: "replace", path: "/spec/mode", value: "slow" }));
      const rule = { ...CONFIG_MAP_RULE, apiGroups: [gadgets.group], resources: ["gadgets"] };
      await install({ type: "mutating", path: "/mutate", webhook: { rules: [rule] } });
      const { cluster, namespace } = context;
      const object = gadget(gadgets, namespace, {}, "v1beta1");
      const created = await cluster.create<Gadget>(gadgets.v1beta1, object);
      expect(created).toMatchObject({ apiVersion: `${gadgets.group}/v1beta1`, spec: { mode: "slow", code: "beta" } });
      expect(server.requests("/mutate")).toMatchObject([
        {
          kind: { version: "v1" },
          resource: { version: "v1" },
          requestKind: { version: "v1beta1" },
          requestResource: { version: "v1beta1" },
          object: { apiVersion: `${gadgets.group}/v1`, spec: { code: "one" } },
        },
      ]);
    },
  ),
];
