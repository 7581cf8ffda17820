/** Decides whether a container's environment may be declared as it is. */
import type { EnvFromSource, EnvVarSource } from "../../../api/container.ts";
import type { EnvVar } from "../../../api/kubernetes.ts";
import { type FieldError, invalid, invalidEach, required } from "../../../go/field-error.ts";
import { configKeyErrors, dnsLabelErrors, dnsSubdomainErrors, envNameErrors } from "../../../go/label-name.ts";
import { validateFieldReference, validateResourceReference } from "./field-reference.ts";
import { validateNoBacksteps } from "./path.ts";

const FIELDS = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];
const MORE_THAN_ONE = "may not have more than one field specified at a time";

function validateKey(
  { name = "", key = "" }: { readonly name?: string; readonly key?: string },
  field: string,
): readonly FieldError[] {
  return [
    ...invalidEach(`${field}.name`, name, dnsSubdomainErrors(name)),
    ...(key === "" ? [required(`${field}.key`)] : invalidEach(`${field}.key`, key, configKeyErrors(key))),
  ];
}

function validateSources(source: EnvVarSource, field: string): readonly (readonly FieldError[])[] {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = source;
  const found: (readonly FieldError[])[] = [];
  if (fieldRef != null) found.push(validateFieldReference(fieldRef, `${field}.fieldRef`, FIELDS));
  if (resourceFieldRef != null) {
    found.push(validateResourceReference(resourceFieldRef, `${field}.resourceFieldRef`, false));
  }
  if (configMapKeyRef != null) found.push(validateKey(configMapKeyRef, `${field}.configMapKeyRef`));
  if (secretKeyRef != null) found.push(validateKey(secretKeyRef, `${field}.secretKeyRef`));
  if (fileKeyRef != null) found.push(validateFileKey(fileKeyRef, `${field}.fileKeyRef`));
  return found;
}

/** Source: Kubernetes 1.34, validateFileKeySelector. */
function validateFileKey(file: NonNullable<EnvVarSource["fileKeyRef"]>, field: string): readonly FieldError[] {
  const { key = "", volumeName = "", path = "" } = file;
  return [
    ...(key === "" ? [required(`${field}.key`)] : invalidEach(`${field}.key`, key, relaxedEnvNameErrors(key))),
    ...(volumeName === ""
      ? [required(`${field}.volumeName`)]
      : invalidEach(`${field}.volumeName`, volumeName, dnsLabelErrors(volumeName))),
    ...(path === "" ? [required(`${field}.path`)] : validateNoBacksteps(path, `${field}.path`)),
  ];
}

/** Any printable ASCII but the sign that ends a name. */
function relaxedEnvNameErrors(name: string): readonly string[] {
  return /^[ -<>-~]+$/.test(name)
    ? []
    : ["a valid environment variable name must consist only of printable ASCII characters other than '='"];
}

/**
 * As Kubernetes has them from 1.32 on; OpenKruise refuses more. Compat: the sentence is OpenKruise's (vector container-rule-06).
 */
function variableNameErrors(name: string): readonly string[] {
  return relaxedEnvNameErrors(name).length === 0 ? [] : envNameErrors(name);
}

function countProblem(count: number, value: string): string | undefined {
  if (count === 0) {
    return "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
  }
  if (value !== "") return "may not be specified when `value` is not empty";
  return count > 1 ? MORE_THAN_ONE : undefined;
}

function validateValueFrom({ value = "", valueFrom }: EnvVar, field: string): readonly FieldError[] {
  if (valueFrom == null) return [];
  const sources = validateSources(valueFrom, field);
  const problem = countProblem(sources.length, value);
  return problem === undefined ? sources.flat() : [...sources.flat(), invalid(field, "", problem)];
}

export function validateEnv(env: readonly EnvVar[] | undefined, field: string): readonly FieldError[] {
  return (env ?? []).flatMap((variable, index) => {
    const { name = "" } = variable;
    const member = `${field}[${index}].name`;
    return [
      ...(name === "" ? [required(member)] : invalidEach(member, name, variableNameErrors(name))),
      ...validateValueFrom(variable, `${field}[${index}].valueFrom`),
    ];
  });
}

/** `prefix-` is taken for the start of a name, so a dash may end it. */
function sourceNameErrors(name: string): readonly string[] {
  return dnsSubdomainErrors(name.length > 1 && name.endsWith("-") ? `${name.slice(0, -2)}a` : name);
}

function validateSourceName(name: string, field: string): readonly FieldError[] {
  return name === "" ? [required(field)] : invalidEach(field, name, sourceNameErrors(name));
}

function validateEnvFromSource(
  { prefix = "", configMapRef, secretRef }: EnvFromSource,
  field: string,
  listField: string,
): readonly FieldError[] {
  const count = Number(configMapRef != null) + Number(secretRef != null);
  return [
    ...(prefix === "" ? [] : invalidEach(`${field}.prefix`, prefix, variableNameErrors(prefix))),
    ...(configMapRef == null ? [] : validateSourceName(configMapRef.name ?? "", `${field}.configMapRef.name`)),
    ...(secretRef == null ? [] : validateSourceName(secretRef.name ?? "", `${field}.secretRef.name`)),
    ...(count === 0 ? [invalid(listField, "", "must specify one of: `configMapRef` or `secretRef`")] : []),
    ...(count > 1 ? [invalid(listField, "", MORE_THAN_ONE)] : []),
  ];
}

export function validateEnvFrom(sources: readonly EnvFromSource[] | undefined, field: string): readonly FieldError[] {
  return (sources ?? []).flatMap((source, index) => validateEnvFromSource(source, `${field}[${index}]`, field));
}
