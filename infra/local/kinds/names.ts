/** Valid names, labels and annotations, and generated names. */

import { createHash } from "node:crypto";
import { type ApiObject, textMap } from "../storage/json.ts";
import { type FieldError, invalid, required, tooLong } from "../storage/status-error.ts";

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE = `(${QUALIFIED})?`;
const MOST_ANNOTATION_BYTES = 256 * 1024;

const LABEL_TEXT = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`;
const SUBDOMAIN_TEXT = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${SUBDOMAIN}')`;
const QUALIFIED_TEXT = `name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${QUALIFIED}')`;
const VALUE_TEXT = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(${QUALIFIED})?')`;

const whole = new Map([LABEL, SUBDOMAIN, QUALIFIED, VALUE].map((pattern) => [pattern, new RegExp(`^(?:${pattern})$`)]));

function isWhole(pattern: string, text: string): boolean {
  return whole.get(pattern)?.test(text) === true;
}

/** Errors of an RFC 1123 label, as for namespaces, containers and volumes. */
export function labelNameErrors(name: string, field: string): readonly FieldError[] {
  if (!isWhole(LABEL, name)) return [invalid(field, name, LABEL_TEXT)];
  return name.length > 63 ? [invalid(field, name, "must be no more than 63 characters")] : [];
}

function subdomainErrors(name: string, field: string): readonly FieldError[] {
  if (!isWhole(SUBDOMAIN, name)) return [invalid(field, name, SUBDOMAIN_TEXT)];
  return name.length > 253 ? [invalid(field, name, "must be no more than 253 characters")] : [];
}

function qualifiedKeyErrors(key: string, field: string): readonly FieldError[] {
  const [name = "", prefix] = key.split("/").reverse();
  const prefixErrors = prefix === undefined ? [] : subdomainErrors(prefix, field);
  return isWhole(QUALIFIED, name) && name.length <= 63 ? prefixErrors : [invalid(field, key, QUALIFIED_TEXT)];
}

/** Errors of labels, in metadata.labels and elsewhere. */
function labelErrors(labels: unknown, field: string): readonly FieldError[] {
  return Object.entries(textMap(labels)).flatMap(([key, value]) => {
    const isGood = isWhole(VALUE, value) && value.length <= 63;
    return [...qualifiedKeyErrors(key, field), ...(isGood ? [] : [invalid(field, value, VALUE_TEXT)])];
  });
}

function annotationErrors(annotations: unknown, field: string): readonly FieldError[] {
  const entries = Object.entries(textMap(annotations));
  const bytes = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
  const keys = entries.flatMap(([key]) => qualifiedKeyErrors(key.toLowerCase(), field));
  return bytes > MOST_ANNOTATION_BYTES ? [...keys, tooLong(field, MOST_ANNOTATION_BYTES)] : keys;
}

/** Kinds whose names may have more characters than a DNS subdomain. */
const PATH_NAMES: ReadonlySet<string> = new Set(["roles", "rolebindings", "clusterroles", "clusterrolebindings"]);

function labelObjectErrors(name: string): readonly FieldError[] {
  if (name.includes(".")) return [invalid("metadata.name", name, "must not contain dots")];
  return labelNameErrors(name, "metadata.name");
}

function nameErrors(object: ApiObject, plural: string): readonly FieldError[] {
  const name = object.metadata.name ?? "";
  if (name === "") return [required("metadata.name", "name or generateName is required")];
  if (PATH_NAMES.has(plural)) return [];
  return plural === "namespaces" || plural === "services"
    ? labelObjectErrors(name)
    : subdomainErrors(name, "metadata.name");
}

export function metadataErrors(object: ApiObject, plural: string): readonly FieldError[] {
  return [
    ...nameErrors(object, plural),
    ...labelErrors(object.metadata.labels, "metadata.labels"),
    ...annotationErrors(object.metadata.annotations, "metadata.annotations"),
  ];
}

export const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

/** Five characters, as k8s.io/apimachinery/pkg/util/rand makes them. */
export function randomSuffix(random: () => number, length = 5): string {
  return Array.from({ length }, () => ALPHABET[Math.floor(random() * ALPHABET.length)]).join("");
}

/** A name with the prefix, which is cut so that five random characters still fit a label. */
export function generatedName(prefix: string, random: () => number): string {
  return `${prefix.slice(0, 58)}${randomSuffix(random)}`;
}

/** A version 4 UUID. */
export function randomUid(random: () => number): string {
  const digit = (among: string) => among[Math.floor(random() * among.length)] ?? "";
  return "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx".replaceAll(/[xy]/g, (at) =>
    digit(at === "x" ? "0123456789abcdef" : "89ab"),
  );
}

// The hash of a pod template, for names of ReplicaSets and revision labels.

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
  return Object.fromEntries(entries.map(([key, field]) => [key, sorted(field)]));
}

/** Ten characters, which are equal for equal templates. */
export function templateHash(template: unknown): string {
  const digest = createHash("sha256")
    .update(JSON.stringify(sorted(template)))
    .digest();
  return [...digest.subarray(0, 10)].map((byte) => ALPHABET[byte % ALPHABET.length]).join("");
}
