/** What is wrong with a pod spec: the checks of pkg/apis/core/validation that users meet. */
import { asObject, asText, type JsonObject, objectsIn } from "../storage/json.ts";
import { duplicate, type FieldError, forbiddenField, invalid, notSupported, required } from "./field-error.ts";
import { labelNameErrors } from "./names.ts";
import { readQuantity } from "./quantity.ts";

interface Names {
  readonly containers: Set<string>;
  readonly volumes: ReadonlySet<string>;
}

function nameErrors(item: JsonObject, seen: Set<string>, path: string): readonly FieldError[] {
  const name = asText(item["name"]);
  if (name === "") return [required(`${path}.name`)];
  if (seen.has(name)) return [duplicate(`${path}.name`, name)];
  seen.add(name);
  return labelNameErrors(name, `${path}.name`);
}

function imageErrors(image: string, path: string): readonly FieldError[] {
  if (image === "") return [required(`${path}.image`)];
  return image.trim() === image
    ? []
    : [invalid(`${path}.image`, image, "must not have leading or trailing whitespace")];
}

function mountErrors(container: JsonObject, volumes: ReadonlySet<string>, path: string): readonly FieldError[] {
  const paths = new Set<string>();
  return objectsIn(container["volumeMounts"]).flatMap((mount, index) => {
    const place = `${path}.volumeMounts[${index}]`;
    const name = asText(mount["name"]);
    const mountPath = asText(mount["mountPath"]);
    const errors: FieldError[] = [];
    if (name === "") errors.push(required(`${place}.name`));
    else if (!volumes.has(name)) errors.push(notFoundField(`${place}.name`, name));
    if (mountPath === "") errors.push(required(`${place}.mountPath`));
    else if (paths.has(mountPath)) errors.push(invalid(`${place}.mountPath`, mountPath, "must be unique"));
    paths.add(mountPath);
    return errors;
  });
}

function notFoundField(field: string, value: string): FieldError {
  return { field, reason: "FieldValueNotFound", message: `Not found: ${JSON.stringify(value)}` };
}

function environmentErrors(container: JsonObject, path: string): readonly FieldError[] {
  return objectsIn(container["env"]).flatMap((variable, index) =>
    asText(variable["name"]) === "" ? [required(`${path}.env[${index}].name`)] : [],
  );
}

function portErrors(container: JsonObject, path: string): readonly FieldError[] {
  return objectsIn(container["ports"]).flatMap((port, index) => {
    const place = `${path}.ports[${index}].containerPort`;
    const number = port["containerPort"];
    if (typeof number !== "number" || number === 0) return [required(place)];
    return number > 0 && number < 65_536 ? [] : [invalid(place, number, "must be between 1 and 65535, inclusive")];
  });
}

const PULL_POLICIES = ["Always", "IfNotPresent", "Never"];

function restartErrors(container: JsonObject, list: string, path: string): readonly FieldError[] {
  const policy = container["restartPolicy"];
  if (policy === undefined) return [];
  if (list === "containers") return [forbiddenField(`${path}.restartPolicy`, "may not be set for non-init containers")];
  return policy === "Always" ? [] : [notSupported(`${path}.restartPolicy`, policy, ["Always"])];
}

function requestErrors({ resources }: JsonObject, path: string): readonly FieldError[] {
  const { requests, limits } = asObject(resources);
  return Object.entries(asObject(limits)).flatMap(([name, limit]) => {
    const request = asObject(requests)[name];
    const [asked, most] = [readQuantity(request), readQuantity(limit)];
    if (asked === undefined || most === undefined || asked.nano <= most.nano) return [];
    return [invalid(path, request, `must be less than or equal to ${name} limit of ${limit}`)];
  });
}

function containerErrors(container: JsonObject, list: string, path: string, names: Names): readonly FieldError[] {
  const policy = container["imagePullPolicy"];
  const isGood = policy === undefined || PULL_POLICIES.includes(asText(policy));
  return [
    ...nameErrors(container, names.containers, path),
    ...imageErrors(asText(container["image"]), path),
    ...(isGood ? [] : [notSupported(`${path}.imagePullPolicy`, policy, PULL_POLICIES)]),
    ...portErrors(container, path),
    ...environmentErrors(container, path),
    ...mountErrors(container, names.volumes, path),
    ...restartErrors(container, list, path),
    ...requestErrors(container, `${path}.resources.requests`),
  ];
}

const RESTART_POLICIES = ["Always", "OnFailure", "Never"];

/** `path` is where the spec stands: "spec", or "spec.template.spec". */
export function podSpecErrors(spec: JsonObject, path: string): readonly FieldError[] {
  const volumeNames = new Set<string>();
  const volumes = objectsIn(spec["volumes"]).flatMap((volume, index) =>
    nameErrors(volume, volumeNames, `${path}.volumes[${index}]`),
  );
  const names: Names = { containers: new Set(), volumes: volumeNames };
  const containers = objectsIn(spec["containers"]);
  const inList = (list: string): readonly FieldError[] =>
    objectsIn(spec[list]).flatMap((container, index) =>
      containerErrors(container, list, `${path}.${list}[${index}]`, names),
    );
  const policy = spec["restartPolicy"];
  return [
    ...volumes,
    ...(containers.length === 0 ? [required(`${path}.containers`)] : inList("containers")),
    ...inList("initContainers"),
    ...inList("ephemeralContainers"),
    ...(RESTART_POLICIES.includes(asText(policy))
      ? []
      : [notSupported(`${path}.restartPolicy`, policy, RESTART_POLICIES)]),
  ];
}
