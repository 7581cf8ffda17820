/** The differences between kinds when an object is written. */

import { matchesLabels } from "../http/query.ts";
import {
  type ApiObject,
  asList,
  asObject,
  asText,
  at,
  childOf,
  isEqual,
  isObject,
  type JsonObject,
  objectsIn,
  setDefault,
  textAt,
  textMap,
  textsIn,
} from "../storage/json.ts";
import { type FieldError, forbiddenField, invalid, notSupported, required } from "../storage/status-error.ts";
import type { Kind } from "./kind.ts";
import { defaultPodSpec, POD_STRATEGY, podSpecErrors } from "./pod-strategy.ts";

/** Deployments, ReplicaSets and StatefulSets: defaults and the selector that must match the template. */
function defaultTemplate(workload: ApiObject): void {
  const spec = childOf(workload, "spec");
  setDefault(spec, "replicas", 1);
  const template = childOf(spec, "template");
  defaultPodSpec(childOf(template, "spec"));
  childOf(template, "metadata");
  if (!isObject(workload["status"])) workload["status"] = {};
}

function templateErrors(workload: ApiObject): readonly FieldError[] {
  const spec = asObject(workload["spec"]);
  const labels = textMap(at(spec, "template", "metadata", "labels"));
  const errors: FieldError[] = [];
  if (!isObject(spec["selector"])) errors.push(required("spec.selector"));
  if (!isObject(spec["selector"]) || !matchesLabels(spec["selector"], labels)) {
    errors.push(invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"));
  }
  const replicas = Number(spec["replicas"]);
  if (replicas < 0) errors.push(invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
  return [...errors, ...podSpecErrors(asObject(at(spec, "template", "spec")), "spec.template.spec")];
}

function selectorErrors(next: ApiObject, previous: ApiObject): readonly FieldError[] {
  const selector = at(next, "spec", "selector");
  return isEqual(selector, at(previous, "spec", "selector"))
    ? []
    : [invalid("spec.selector", selector, "field is immutable")];
}

const COMMON = { default: defaultTemplate, validate: templateErrors, validateUpdate: selectorErrors };

const REPLICA_SET_STRATEGY = COMMON;

const DEPLOYMENT_STRATEGY = {
  ...COMMON,
  default(deployment: ApiObject): void {
    defaultTemplate(deployment);
    const spec = childOf(deployment, "spec");
    setDefault(spec, "revisionHistoryLimit", 10);
    setDefault(spec, "progressDeadlineSeconds", 600);
    const strategy = childOf(spec, "strategy");
    setDefault(strategy, "type", "RollingUpdate");
    if (strategy["type"] === "RollingUpdate") {
      const rolling = childOf(strategy, "rollingUpdate");
      setDefault(rolling, "maxUnavailable", "25%");
      setDefault(rolling, "maxSurge", "25%");
    }
  },
};

const STATEFUL_SET_STRATEGY = {
  ...COMMON,
  default(set: ApiObject): void {
    defaultTemplate(set);
    const spec = childOf(set, "spec");
    setDefault(spec, "podManagementPolicy", "OrderedReady");
    setDefault(spec, "revisionHistoryLimit", 10);
    setDefault(spec, "updateStrategy", { type: "RollingUpdate", rollingUpdate: { partition: 0 } });
    setDefault(spec, "persistentVolumeClaimRetentionPolicy", { whenDeleted: "Retain", whenScaled: "Retain" });
  },
};

/** CustomResourceDefinitions: defaults, required fields, and the conditions that make them served. */
function versionErrors(crd: ApiObject): readonly FieldError[] {
  const versions = objectsIn(at(crd, "spec", "versions"));
  const stored = versions.filter((version) => version["storage"] === true);
  const schemas = versions.flatMap((version, index) => {
    const hasSchema = at(version, "schema", "openAPIV3Schema") !== undefined;
    return hasSchema ? [] : [required(`spec.versions[${index}].schema.openAPIV3Schema`, "schemas are required")];
  });
  const one = "must have exactly one version marked as storage version";
  return stored.length === 1 ? schemas : [...schemas, invalid("spec.versions", stored.length, one)];
}

function nameErrors(crd: ApiObject): readonly FieldError[] {
  const wanted = `${textAt(crd, "spec", "names", "plural")}.${textAt(crd, "spec", "group")}`;
  const why = `must be spec.names.plural+"."+spec.group`;
  const name = crd.metadata.name;
  return name === wanted ? [] : [invalid("metadata.name", name, why)];
}

function storageVersion(crd: ApiObject): string {
  const stored = objectsIn(at(crd, "spec", "versions")).find((version) => version["storage"] === true);
  return asText(stored?.["name"]);
}

/** Errors of stored versions: objects may still be stored in a version. */
function storedVersionErrors(crd: ApiObject): readonly FieldError[] {
  const names = objectsIn(at(crd, "spec", "versions")).map((version) => version["name"]);
  const why = (name: string) =>
    `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`;
  return textsIn(at(crd, "status", "storedVersions")).flatMap((name, index) =>
    names.includes(name) ? [] : [invalid(`status.storedVersions[${index}]`, name, why(name))],
  );
}

/** Errors of a conversion, with field names of the API server's own type. */
function conversionErrors(crd: ApiObject): readonly FieldError[] {
  const conversion = asObject(at(crd, "spec", "conversion"));
  const webhook = asObject(conversion["webhook"]);
  if (conversion["strategy"] === "Webhook") return [];
  const given = [
    ...(webhook["clientConfig"] === undefined ? [] : ["webhookClientConfig"]),
    ...(webhook["conversionReviewVersions"] === undefined ? [] : ["conversionReviewVersions"]),
  ];
  const why = "should not be set when strategy is not set to Webhook";
  return given.map((field) => forbiddenField(`spec.conversion.${field}`, why));
}

const CRD_STRATEGY = {
  default(crd: ApiObject): void {
    const spec = childOf(crd, "spec");
    setDefault(spec, "conversion", { strategy: "None" });
    const names = childOf(spec, "names");
    setDefault(names, "singular", asText(names["kind"]).toLowerCase());
    setDefault(names, "listKind", `${asText(names["kind"])}List`);
  },
  prepareCreate(crd: ApiObject): void {
    const spec = asObject(crd["spec"]);
    const conditions = [
      { type: "NamesAccepted", status: "True", reason: "NoConflicts", message: "no conflicts found" },
      {
        type: "Established",
        status: "True",
        reason: "InitialNamesAccepted",
        message: "the initial names have been accepted",
      },
    ];
    const lastTransitionTime = crd.metadata.creationTimestamp;
    crd["status"] = {
      conditions: conditions.map((condition) => ({ ...condition, lastTransitionTime })),
      acceptedNames: spec["names"],
      storedVersions: [storageVersion(crd)],
    };
  },
  prepareUpdate(crd: ApiObject): void {
    const status = childOf(crd, "status");
    const stored = textsIn(status["storedVersions"]);
    const now = storageVersion(crd);
    if (!stored.includes(now)) status["storedVersions"] = [...stored, now];
  },
  validate: (crd: ApiObject): readonly FieldError[] => [
    ...nameErrors(crd),
    ...versionErrors(crd),
    ...storedVersionErrors(crd),
    ...conversionErrors(crd),
  ],
  validateUpdate: (next: ApiObject, previous: ApiObject): readonly FieldError[] =>
    ["group", "scope"].flatMap((field) => {
      const value = at(next, "spec", field);
      const isSame = isEqual(value, at(previous, "spec", field));
      return isSame ? [] : [invalid(`spec.${field}`, value, "field is immutable")];
    }),
};

/** Webhook configurations: defaults, and required fields. */
const VERSIONS = ["v1", "v1beta1"];

function defaultWebhook(webhook: JsonObject, isMutating: boolean): void {
  setDefault(webhook, "failurePolicy", "Fail");
  setDefault(webhook, "matchPolicy", "Equivalent");
  setDefault(webhook, "namespaceSelector", {});
  setDefault(webhook, "objectSelector", {});
  setDefault(webhook, "timeoutSeconds", 10);
  if (isMutating) setDefault(webhook, "reinvocationPolicy", "Never");
  for (const rule of objectsIn(webhook["rules"])) setDefault(rule, "scope", "*");
  const service = childOf(webhook, "clientConfig")["service"];
  if (isObject(service)) setDefault(service, "port", 443);
}

function clientErrors(config: JsonObject, path: string): readonly FieldError[] {
  if (config["service"] !== undefined) return [];
  const url = asText(config["url"]);
  if (url === "") return [required(path, "exactly one of url or service is required")];
  return url.startsWith("https://")
    ? []
    : [
        invalid(
          `${path}.url`,
          url.split(":")[0],
          `'https' is the only allowed URL scheme; desired format: https://host[/path]`,
        ),
      ];
}

function webhookErrors(webhook: JsonObject, path: string): readonly FieldError[] {
  const name = asText(webhook["name"]);
  const effects = webhook["sideEffects"];
  const versions = asList(webhook["admissionReviewVersions"]);
  const timeout = Number(webhook["timeoutSeconds"]);
  const errors: FieldError[] = [];
  if (name.split(".").length < 3) {
    errors.push(invalid(`${path}.name`, name, "should be a domain with at least three segments separated by dots"));
  }
  if (effects === undefined) errors.push(required(`${path}.sideEffects`, "must specify one of None, NoneOnDryRun"));
  else if (effects !== "None" && effects !== "NoneOnDryRun") {
    errors.push(notSupported(`${path}.sideEffects`, effects, ["None", "NoneOnDryRun"]));
  }
  if (timeout < 1 || timeout > 30) {
    errors.push(invalid(`${path}.timeoutSeconds`, timeout, "the timeout value must be between 1 and 30 seconds"));
  }
  errors.push(...clientErrors(asObject(webhook["clientConfig"]), `${path}.clientConfig`));
  if (versions.length === 0) {
    errors.push(required(`${path}.admissionReviewVersions`, `must specify one of ${VERSIONS.join(", ")}`));
  }
  return errors;
}

const WEBHOOK_STRATEGY = {
  default(configuration: ApiObject): void {
    const isMutating = configuration.kind === "MutatingWebhookConfiguration";
    for (const webhook of objectsIn(configuration["webhooks"])) defaultWebhook(webhook, isMutating);
  },
  validate: (configuration: ApiObject): readonly FieldError[] =>
    objectsIn(configuration["webhooks"]).flatMap((webhook, index) => webhookErrors(webhook, `webhooks[${index}]`)),
};

/** Namespaces: the label with the name, the finalizer, and the phase. */
const NAME_LABEL = "kubernetes.io/metadata.name";

const NAMESPACE_STRATEGY = {
  default(namespace: ApiObject): void {
    const name = namespace.metadata.name;
    if (name !== undefined && name !== "") {
      namespace.metadata.labels = { ...namespace.metadata.labels, [NAME_LABEL]: name };
    }
  },
  prepareCreate(namespace: ApiObject): void {
    namespace["spec"] = { ...asObject(namespace["spec"]), finalizers: ["kubernetes"] };
    namespace["status"] = { phase: "Active" };
  },
};

/** ConfigMaps, Secrets and ControllerRevisions: kinds that only hold data. Some of it can never change. */
const FIXED = "field is immutable when `immutable` is set";

function dataErrors(next: ApiObject, previous: ApiObject): readonly FieldError[] {
  if (previous["immutable"] !== true) return [];
  const fields = ["data", "binaryData"].filter((field) => !isEqual(next[field] ?? {}, previous[field] ?? {}));
  const flag = next["immutable"] === true ? [] : ["immutable"];
  return [...flag, ...fields].map((field) => forbiddenField(field, FIXED));
}

function keyErrors(object: ApiObject): readonly FieldError[] {
  const why =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
  return Object.keys(asObject(object["data"])).flatMap((key) =>
    /^[-._a-zA-Z0-9]+$/.test(key) ? [] : [invalid(`data[${key}]`, key, why)],
  );
}

const CONFIG_STRATEGY = { validate: keyErrors, validateUpdate: dataErrors };

const SECRET_STRATEGY = {
  default(secret: ApiObject): void {
    const plain = Object.entries(textMap(secret["stringData"])).map(([key, text]) => {
      return [key, Buffer.from(text).toString("base64")] as const;
    });
    delete secret["stringData"];
    if (plain.length > 0) secret["data"] = { ...asObject(secret["data"]), ...Object.fromEntries(plain) };
    if (secret["type"] === undefined) secret["type"] = "Opaque";
  },
  validate: keyErrors,
  validateUpdate: dataErrors,
};

const REVISION_STRATEGY = {
  default(revision: ApiObject): void {
    if (revision["revision"] === undefined) revision["revision"] = 0;
  },
  validate(revision: ApiObject): readonly FieldError[] {
    const number = Number(revision["revision"]);
    const low = "must be greater than or equal to 0";
    return [
      ...(revision["data"] === undefined ? [required("data", "data is mandatory")] : []),
      ...(number < 0 ? [invalid("revision", number, low)] : []),
    ];
  },
  validateUpdate: (next: ApiObject, previous: ApiObject): readonly FieldError[] =>
    isEqual(next["data"], previous["data"]) ? [] : [invalid("data", next["data"], "field is immutable")],
};

export interface Strategy {
  /** Fills in defaults; changes the object. */
  default(object: ApiObject): void;
  /** Prepares a new object for validation; it changes the object. */
  prepareCreate(object: ApiObject): void;
  /** Prepares a change of the object itself for validation; it changes the object. */
  prepareUpdate(object: ApiObject): void;
  validate(object: ApiObject): readonly FieldError[];
  validateUpdate(next: ApiObject, previous: ApiObject): readonly FieldError[];
  /** Errors of a write to /status. */
  validateStatus(next: ApiObject, previous: ApiObject): readonly FieldError[];
}

const PLAIN: Strategy = {
  default: () => undefined,
  prepareCreate: () => undefined,
  prepareUpdate: () => undefined,
  validate: () => [],
  validateUpdate: () => [],
  validateStatus: () => [],
};

const STRATEGIES: Readonly<Record<string, Partial<Strategy>>> = {
  "/pods": POD_STRATEGY,
  "/namespaces": NAMESPACE_STRATEGY,
  "/configmaps": CONFIG_STRATEGY,
  "/secrets": SECRET_STRATEGY,
  "apps/deployments": DEPLOYMENT_STRATEGY,
  "apps/replicasets": REPLICA_SET_STRATEGY,
  "apps/statefulsets": STATEFUL_SET_STRATEGY,
  "apps/controllerrevisions": REVISION_STRATEGY,
  "admissionregistration.k8s.io/mutatingwebhookconfigurations": WEBHOOK_STRATEGY,
  "admissionregistration.k8s.io/validatingwebhookconfigurations": WEBHOOK_STRATEGY,
  "apiextensions.k8s.io/customresourcedefinitions": CRD_STRATEGY,
};

export function strategyOf(kind: Kind): Strategy {
  return { ...PLAIN, ...STRATEGIES[kind.collection] };
}
