/** As much OpenAPI v3 as kubectl needs to validate on the server: that writes take fieldValidation. */
import { createHash } from "node:crypto";
import { apiVersionOf, type Kind } from "../kinds/kind.ts";
import type { Registry } from "../kinds/registry.ts";
import type { JsonObject } from "../storage/json.ts";

function rootOf(group: string, version: string): string {
  return group === "" ? `api/${version}` : `apis/${group}/${version}`;
}

const PARAMETERS = ["dryRun", "fieldManager", "fieldValidation"].map((name) => {
  return { name, in: "query", schema: { type: "string", uniqueItems: true } };
});

function operation(kind: Kind, action: string): JsonObject {
  const { group, version } = kind;
  const type = { group, version, kind: kind.kind };
  return {
    parameters: PARAMETERS,
    responses: { 200: { description: "OK" } },
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": type,
  };
}

function pathsOf(kind: Kind): readonly (readonly [string, JsonObject])[] {
  const root = `/${rootOf(kind.group, kind.version)}`;
  const collection = kind.namespaced ? `${root}/namespaces/{namespace}/${kind.plural}` : `${root}/${kind.plural}`;
  return [
    [collection, { post: operation(kind, "post") }],
    [`${collection}/{name}`, { patch: operation(kind, "patch"), put: operation(kind, "put") }],
  ];
}

function schemaOf(kind: Kind): JsonObject {
  const { group, version } = kind;
  const schema = kind.custom?.schema ?? { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return { ...schema, "x-kubernetes-group-version-kind": [{ group, version, kind: kind.kind }] };
}

function kindsByVersion(registry: Registry): ReadonlyMap<string, readonly Kind[]> {
  return Map.groupBy(registry.served(), (kind) => rootOf(kind.group, kind.version));
}

/** The document of one group and version, `root` as in "apis/apps/v1"; undefined when it is not served. */
export function openApiDocument(registry: Registry, root: string): JsonObject | undefined {
  const kinds = kindsByVersion(registry).get(root);
  if (kinds === undefined) return undefined;
  const schemas = kinds.map((kind) => [`${apiVersionOf(kind).replaceAll("/", ".")}.${kind.kind}`, schemaOf(kind)]);
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: "v1.32.0" },
    paths: Object.fromEntries(kinds.flatMap(pathsOf)),
    components: { schemas: Object.fromEntries(schemas) },
  };
}

export function openApiIndex(registry: Registry): JsonObject {
  const entries = [...kindsByVersion(registry)].map(([root, kinds]) => {
    const hash = createHash("sha256").update(JSON.stringify(kinds)).digest("hex").toUpperCase();
    return [root, { serverRelativeURL: `/openapi/v3/${root}?hash=${hash}` }];
  });
  return { paths: Object.fromEntries(entries) };
}
