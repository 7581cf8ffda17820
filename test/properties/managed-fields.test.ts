import fc from "fast-check";
import { expect, test } from "vitest";
import { readAdmissionReview } from "../../shared/webhook/review/review.ts";
import { holds } from "./holds.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Texts that a careless parser could misread. */
const text = fc.oneof(
  fc.constantFrom("]", "]}", ',"managedFields":[', ']},"spec":', '\\"', '{"spec":{}}', "managedFields", "spec"),
  fc.string({ maxLength: 8 }),
);
const key = fc.oneof(fc.constantFrom("spec", "metadata", "managedFields", "a]", 'k:{"name":"web"}'), text);
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 3 },
    text,
    fc.integer(),
    fc.array(tie("json"), { maxLength: 3 }),
    fc.dictionary(key, tie("json"), { maxKeys: 3 }),
  ),
}));

/** Generates objects with some of these fields, in any order. */
function fields(all: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<Fields> {
  const some = fc.record(all, { requiredKeys: [] }) as fc.Arbitrary<Fields>;
  const inOrder = some.map((given) => Object.fromEntries(Object.keys(all).map((name) => [name, given[name]])));
  const anyhow = some.chain((given) =>
    fc.shuffledSubarray(Object.entries(given), { minLength: Object.keys(given).length }).map(Object.fromEntries),
  );
  return fc.oneof({ weight: 3, arbitrary: inOrder }, { weight: 1, arbitrary: anyhow }) as fc.Arbitrary<Fields>;
}

const managedFields = fc.oneof(
  fc.constant([{ manager: "m", fieldsV1: { "f:spec": { 'k:{"name":"a"}': {} } } }]),
  fc.array(json, { maxLength: 2 }),
);
const metadata = fields({ name: text, labels: fc.dictionary(key, text, { maxKeys: 2 }), managedFields });
const template = fields({ metadata, spec: json });
const pod = fields({
  kind: fc.constant("Pod"),
  metadata,
  spec: fields({ ephemeral: template, a: json }),
  status: json,
});
const request = fields({
  userInfo: fields({ extra: fc.dictionary(key, fc.array(text, { maxLength: 2 }), { maxKeys: 2 }) }),
  object: fc.oneof({ weight: 9, arbitrary: pod }, { weight: 1, arbitrary: fc.constant(null) }),
  oldObject: fc.oneof(pod, fc.constant(null)),
  options: json,
});
const resource = fc.constantFrom("pods", "pods", "sidecarsets");

/** Returns every copy of the value with one list of managed fields removed. */
function withoutOne(value: unknown): readonly unknown[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const less = withoutOne(field).map((one) => replaced(value, name, one));
    return name === "managedFields" && Array.isArray(field) ? [removed(value, name), ...less] : less;
  });
}

function replaced(value: object, name: string, field: unknown): unknown {
  if (Array.isArray(value)) return value.with(Number(name), field);
  return Object.fromEntries(Object.entries(value).map(([key, old]) => [key, key === name ? field : old]));
}

function removed(value: object, name: string): object {
  return Object.fromEntries(Object.entries(value).filter(([key]) => key !== name));
}

test("readAdmissionReview returns the result of JSON.parse, without one list of managed fields if it is a pod's", () => {
  const classes = ["cut", "whole", "no pod"];
  holds(fc.tuple(request, resource), classes, ([given, plural], seen) => {
    const about = { uid: "u", operation: "CREATE", resource: { group: "", version: "v1", resource: plural } };
    const review = { kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", request: { ...about, ...given } };
    const body = JSON.stringify(review);
    const parsed = (JSON.parse(body) as { readonly request: Fields }).request;
    const read = JSON.stringify(readAdmissionReview(body).request);
    const isWhole = read === JSON.stringify(parsed);
    if (!isWhole) {
      expect(plural).toBe("pods");
      expect(withoutOne(parsed).map((one) => JSON.stringify(one))).toContain(read);
    }
    seen("cut", !isWhole);
    seen("whole", isWhole);
    seen("no pod", plural !== "pods");
  });
});
