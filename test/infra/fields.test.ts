/** Tests that the CRD of SidecarSets lists the fields of the Go types that decode and print SidecarSets. */
import { expect, it } from "vitest";
import type { GoType } from "../../shared/go/types/go-type.ts";
import { SIDECAR_SET, SIDECAR_SET_V1ALPHA1 } from "../../shared/go/types/sidecarset.ts";
import type { Schema } from "../../shared/install/crd/schema.ts";
import { sidecarSetCrd } from "../../shared/install/crd/sidecarset-crd.ts";

interface Version {
  readonly name: string;
  readonly schema: { readonly openAPIV3Schema: Schema };
}

const { versions } = sidecarSetCrd({ url: "https://127.0.0.1:1" }).spec as unknown as {
  readonly versions: readonly Version[];
};
const TYPES: Readonly<Record<string, GoType>> = { v1beta1: SIDECAR_SET, v1alpha1: SIDECAR_SET_V1ALPHA1 };

/** Returns paths of fields that only one of the two has, and how many were compared. */
function differences(type: GoType, schema: Schema, path: string): { readonly found: string[]; readonly seen: number } {
  if (type.kind === "list" && schema.items) return differences(type.of, schema.items, `${path}[]`);
  const { properties } = schema;
  if (type.kind !== "struct" || properties === undefined) return { found: [], seen: 0 };
  const isOpen = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const parts = Object.entries(properties).map(([name, part]) => {
    const field = type.fields.get(name);
    return field === undefined
      ? { found: [`${path}.${name} is not in the Go type`], seen: 1 }
      : differences(field.type, part, `${path}.${name}`);
  });
  const missing = isOpen ? [] : [...type.fields.keys()].filter((name) => !Object.hasOwn(properties, name));
  return {
    found: [...missing.map((name) => `${path}.${name} is not in the schema`), ...parts.flatMap(({ found }) => found)],
    seen: parts.reduce((sum, { seen }) => sum + seen, type.fields.size),
  };
}

it.each(versions.map((version) => [version.name, version] as const))(
  "the schema of SidecarSets in %s has the fields of the Go type",
  (name, { schema }) => {
    const { found, seen } = differences(TYPES[name] as GoType, schema.openAPIV3Schema, "SidecarSet");
    expect(found).toEqual([]);
    expect(seen).toBeGreaterThan(60);
  },
);
