/** The parts that structural schemas are put together from. */

/** apiextensions.k8s.io/v1 JSONSchemaProps, reduced to the used fields. */
export interface Schema {
  readonly description?: string;
  readonly type?: "object" | "array" | "string" | "integer" | "boolean";
  readonly format?: "int32" | "int64" | "date-time";
  readonly minimum?: number;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly default?: string | readonly [] | Readonly<Record<string, never>>;
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly "x-kubernetes-int-or-string"?: true;
  readonly "x-kubernetes-preserve-unknown-fields"?: true;
  readonly "x-kubernetes-map-type"?: "atomic";
  readonly "x-kubernetes-list-type"?: "atomic" | "map";
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
}

export const text: Schema = { type: "string" };
export const flag: Schema = { type: "boolean" };
export const int32: Schema = { type: "integer", format: "int32" };
export const int64: Schema = { type: "integer", format: "int64" };
export const dateTime: Schema = { type: "string", format: "date-time" };
export const intOrString: Schema = {
  anyOf: [{ type: "integer" }, { type: "string" }],
  "x-kubernetes-int-or-string": true,
};

export function object(properties: Readonly<Record<string, Schema>>, ...required: readonly string[]): Schema {
  return { type: "object", properties, ...(required.length > 0 ? { required } : {}) };
}

export function listOf(items: Schema): Schema {
  return { type: "array", items };
}

export function mapOf(values: Schema): Schema {
  return { type: "object", additionalProperties: values };
}

/** A schema whose whole map has one owner: server-side apply replaces it and never merges. */
export function atomic(schema: Schema): Schema {
  return { ...schema, "x-kubernetes-map-type": "atomic" };
}

/** A schema with the minimum 0. */
export function natural(schema: Schema): Schema {
  return { ...schema, minimum: 0 };
}

/** Keeps unlisted fields: the schema does not repeat Kubernetes' own. */
export function open(schema: Schema): Schema {
  return { ...schema, "x-kubernetes-preserve-unknown-fields": true };
}

export function described(description: string, schema: Schema): Schema {
  return { description, ...schema };
}

const atomicTexts: Schema = { ...listOf(text), "x-kubernetes-list-type": "atomic" };

/** metav1.LabelSelector */
export const labelSelector: Schema = atomic(
  object({
    matchExpressions: {
      ...listOf(object({ key: text, operator: text, values: atomicTexts }, "key", "operator")),
      "x-kubernetes-list-type": "atomic",
    },
    matchLabels: mapOf(text),
  }),
);
