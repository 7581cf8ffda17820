/** Defines a custom resource for the contract: Gadget, in two versions, with a schema that uses every feature. */
import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { Resource } from "../../shared/kube/port.ts";
import type { Context } from "./contract.ts";

export const DEFINITIONS: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};

export interface Gadget extends KubernetesObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

const PART = {
  type: "object",
  required: ["name"],
  properties: { name: { type: "string" }, count: { type: "integer", default: 1 } },
  "x-kubernetes-preserve-unknown-fields": true,
};

const SCHEMA = {
  type: "object",
  required: ["spec"],
  properties: {
    spec: {
      type: "object",
      required: ["mode"],
      properties: {
        mode: { type: "string", enum: ["fast", "slow"] },
        size: { type: "integer", minimum: 0, maximum: 9, default: 3 },
        code: { type: "string", pattern: "^[a-z]+$", maxLength: 5 },
        budget: { "x-kubernetes-int-or-string": true },
        parts: { type: "array", maxItems: 3, items: PART },
        labels: { type: "object", additionalProperties: { type: "string" } },
        free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        nested: { type: "object", properties: { flag: { type: "boolean", default: true } } },
      },
    },
    status: { type: "object", properties: { seen: { type: "integer" } } },
  },
};

const COLUMNS = [
  { name: "Mode", type: "string", jsonPath: ".spec.mode" },
  { name: "Size", type: "integer", jsonPath: ".spec.size" },
  { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
];

function version(name: string, storage: boolean) {
  const schema = { openAPIV3Schema: SCHEMA };
  return { name, served: true, storage, schema, subresources: { status: {} }, additionalPrinterColumns: COLUMNS };
}

/** A kind with its own API group for each case, so that cases do not affect each other. */
export interface Gadgets {
  readonly v1: Resource;
  readonly v1beta1: Resource;
  readonly kind: string;
  readonly group: string;
}

/** Defines the kind and waits until it is served. `conversion`: the field of the CRD's spec. */
export async function defineGadgets(
  { cluster }: Pick<Context, "cluster">,
  conversion: object = { strategy: "None" },
): Promise<Gadgets> {
  const group = `g${randomBytes(4).toString("hex")}.example.com`;
  const names = { plural: "gadgets", singular: "gadget", kind: "Gadget", listKind: "GadgetList", shortNames: ["gd"] };
  const versions = [version("v1", true), version("v1beta1", false)];
  const spec = { group, names, scope: "Namespaced", versions, conversion };
  await cluster.create(DEFINITIONS, { metadata: { name: `gadgets.${group}` }, spec } as object);
  const v1: Resource = { group, version: "v1", plural: "gadgets", namespaced: true };
  const v1beta1 = { ...v1, version: "v1beta1" };
  const isServed = () =>
    cluster.list(v1beta1, {}).then(
      () => true,
      () => false,
    );
  await expect.poll(isServed).toBe(true);
  return { v1, v1beta1, kind: "Gadget", group };
}

export async function removeGadgets({ cluster }: Pick<Context, "cluster">, { group }: Gadgets): Promise<void> {
  await cluster.delete(DEFINITIONS, { name: `gadgets.${group}` });
}

export function gadget(gadgets: Gadgets, namespace: string, spec: object, version = "v1"): Gadget {
  return {
    apiVersion: `${gadgets.group}/${version}`,
    kind: "Gadget",
    metadata: { name: "a", namespace },
    spec: { mode: "fast", ...spec },
  };
}
