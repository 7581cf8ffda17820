/** Arguments of the library's calls. They are checked before any work, so that a mistake gives one sentence. */
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { minorVersion } from "../../shared/core/sidecarset/validate/newer-fields.ts";
import { isJsonObject } from "../../shared/go/json/json-object.ts";
import { decodeGo } from "../../shared/go/types/decode-go.ts";
import {
  always,
  BOOLEAN,
  each,
  type GoType,
  INT32,
  INT64,
  list,
  map,
  optional,
  pointer,
  RAW,
  STRING,
  struct,
} from "../../shared/go/types/go-type.ts";
import { LABEL_SELECTOR, OBJECT_META } from "../../shared/go/types/meta.ts";
import { POD_TEMPLATE_SPEC } from "../../shared/go/types/pod.ts";
import { nearest } from "../../shared/go/unseen.ts";

/** Go types of the library's inputs beside SidecarSets and pods, with the fields that the library reads. */
const STATUSES = list(
  struct({
    ...each("name image imageID", always(STRING)),
    ...each("ready started", optional(BOOLEAN)),
    restartCount: optional(INT32),
    ...each(
      "state lastState",
      optional(map(struct({ ...each("reason message", optional(STRING)), exitCode: optional(INT32) }))),
    ),
  }),
);

const POD_STATUS = struct({
  ...each("phase startTime reason message", optional(STRING)),
  conditions: optional(list(struct(each("type status reason message lastTransitionTime", optional(STRING))))),
  ...each("containerStatuses initContainerStatuses", optional(STATUSES)),
});

const NAMESPACE = struct({ metadata: always(OBJECT_META) });
const REVISION = struct({ metadata: always(OBJECT_META), revision: always(INT64), data: optional(RAW) });

const CLIENT_CONFIG = struct({
  url: optional(STRING),
  service: pointer(struct({ ...each("namespace name path", optional(STRING)), port: optional(INT32) })),
  caBundle: optional(STRING),
});

const TEXTS = optional(list(STRING));

/** MutatingWebhookConfiguration and ValidatingWebhookConfiguration. */
const CONFIGURATION = struct({
  metadata: always(OBJECT_META),
  webhooks: optional(
    list(
      struct({
        ...each("name failurePolicy matchPolicy sideEffects reinvocationPolicy", optional(STRING)),
        clientConfig: optional(CLIENT_CONFIG),
        rules: optional(list(struct(each("operations apiGroups apiVersions resources", TEXTS)))),
        ...each("namespaceSelector objectSelector", pointer(LABEL_SELECTOR)),
        matchConditions: optional(list(struct(each("name expression", always(STRING))))),
        timeoutSeconds: optional(INT32),
      }),
    ),
  ),
});

const REGISTRATION = struct({
  ...each("name failurePolicy", optional(STRING)),
  ...each("namespaceSelector objectSelector", pointer(LABEL_SELECTOR)),
});

/** CustomResourceDefinition. */
const DEFINITION_TYPE = struct({
  metadata: always(OBJECT_META),
  spec: optional(
    struct({
      versions: optional(
        list(
          struct({ name: always(STRING), ...each("served storage", optional(BOOLEAN)), schema: optional(map(RAW)) }),
        ),
      ),
      conversion: optional(
        struct({ strategy: optional(STRING), webhook: optional(struct({ clientConfig: optional(CLIENT_CONFIG) })) }),
      ),
    }),
  ),
  status: optional(struct({ storedVersions: TEXTS })),
});

/** The fault of a value, as text behind its name; undefined: none. */
type Problem = (value: unknown) => string | undefined;

export interface Argument {
  readonly problem: Problem;
  readonly isOptional?: true;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => isJsonObject(value);

/** Go's message about the value. Before it come checks that no Go type makes, such as presence. */
function fits(type: GoType, value: unknown, kind: string): string | undefined {
  if (!isRecord(value)) return `is not a ${kind}: ${shown(value)}`;
  const decoded = decodeGo(type, value);
  return decoded.kind === "Decoded" ? undefined : `is not a ${kind}: ${decoded.message}`;
}

const podProblem: Problem = (value) => {
  const problem = fits(POD_TEMPLATE_SPEC, value, "Pod") ?? fits(struct({ status: pointer(POD_STATUS) }), value, "Pod");
  if (problem !== undefined) return problem;
  const { spec, status, metadata } = value as PodLike;
  if (metadata?.name === undefined) return "is not a Pod: it has no metadata.name";
  if (spec?.containers === undefined) return "is not a Pod: it has no spec.containers";
  const areNamed = (list: Named | null | undefined) => (list ?? []).every((one) => typeof one?.name === "string");
  if (!areNamed(spec.containers) || !areNamed(spec.initContainers)) return "is not a Pod: a container has no name";
  if (areNamed(status?.containerStatuses) && areNamed(status?.initContainerStatuses)) return undefined;
  return "is not a Pod: the status of a container has no name";
};

type Named = readonly ({ readonly name?: unknown } | null)[];

interface PodLike {
  readonly metadata?: { readonly name?: string };
  readonly spec?: { readonly containers?: Named; readonly initContainers?: Named };
  readonly status?: { readonly containerStatuses?: Named; readonly initContainerStatuses?: Named };
}

const objectProblem: Problem = (value) => fits(NAMESPACE, value, "Kubernetes object");

const eachOf =
  (problem: Problem, kind: string): Problem =>
  (value) => {
    if (!Array.isArray(value)) return `is not a list of ${kind}`;
    const found = value.flatMap((one, index) => {
      const wrong = problem(one);
      return wrong === undefined ? [] : [`[${index}] ${wrong}`];
    });
    return found[0];
  };

const flags =
  (known: readonly string[]): Problem =>
  (value) => {
    if (!isRecord(value)) return `is not an object of feature gates: ${shown(value)}`;
    const unknown = Object.keys(value).find((name) => !known.includes(name));
    if (unknown !== undefined) return `has no gate ${unknown}${meant(unknown, known)}`;
    const odd = Object.entries(value).find(([, one]) => one !== undefined && typeof one !== "boolean");
    return odd && `.${odd[0]} is neither true nor false: ${shown(odd[1])}`;
  };

const whole =
  (least: number): Problem =>
  (value) =>
    Number.isSafeInteger(value) && Number(value) >= least
      ? undefined
      : `is not a whole number from ${least} on: ${shown(value)}`;

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;
const time: Problem = (value) =>
  typeof value === "string" && TIME.test(value) && !Number.isNaN(Date.parse(value))
    ? undefined
    : `is not a time such as 2026-01-02T03:04:05Z: ${shown(value)}`;

const kubelets: Problem = (value) =>
  value instanceof Map && [...value].every((pair) => pair.every((one) => typeof one === "string"))
    ? undefined
    : `is not a Map of nodes and the versions of their kubelets: ${shown(value)}`;

const labelsByName: Problem = (value) =>
  value instanceof Map && [...value].every(([name, labels]) => typeof name === "string" && isTexts(labels))
    ? undefined
    : `is not a Map of namespaces and their labels: ${shown(value)}`;

function isTexts(value: unknown): boolean {
  return isRecord(value) && Object.values(value).every((one) => typeof one === "string");
}

const BUDGETS: readonly unknown[] = ["PodDisruptionBudget", "PodUnavailableBudget"];
const budgetProblem: Problem = (value) => {
  const problem = objectProblem(value);
  if (problem !== undefined) return problem;
  const { kind, spec } = value as { readonly kind?: unknown; readonly spec?: unknown };
  if (!BUDGETS.includes(kind)) return `is neither a PodDisruptionBudget nor a PodUnavailableBudget: ${shown(kind)}`;
  return spec === undefined || isRecord(spec) ? undefined : `.spec is not an object: ${shown(spec)}`;
};

const text: Problem = (value) => (typeof value === "string" ? undefined : `is not a text: ${shown(value)}`);

export const POD: Argument = { problem: podProblem };
export const PODS: Argument = { problem: eachOf(podProblem, "Pods") };
export const OBJECT: Argument = { problem: objectProblem };
export const OBJECTS: Argument = { problem: eachOf(objectProblem, "Kubernetes objects") };
/** The argument for manifests. Mistakes inside a manifest become findings. */
export const MANIFESTS: Argument = {
  problem: eachOf((one) => (isRecord(one) ? undefined : `is not an object: ${shown(one)}`), "Kubernetes objects"),
};
export const REVISIONS: Argument = {
  problem: eachOf((value) => fits(REVISION, value, "ControllerRevision"), "ControllerRevisions"),
  isOptional: true,
};
export const NAMESPACE_OBJECT: Argument = { problem: (value) => fits(NAMESPACE, value, "Namespace"), isOptional: true };
export const NOW: Argument = { problem: time };
export const COUNT: Argument = { problem: whole(0), isOptional: true };
export const STEPS: Argument = { problem: whole(1), isOptional: true };
export const CONFIGURATIONS: Argument = {
  problem: eachOf((value) => fits(CONFIGURATION, value, "webhook configuration"), "webhook configurations"),
};
export const DEFINITION: Argument = { problem: (value) => fits(DEFINITION_TYPE, value, "CustomResourceDefinition") };
export const REGISTRATIONS: Argument = {
  problem: eachOf((value) => fits(REGISTRATION, value, "registration"), "registrations"),
  isOptional: true,
};
export const VERSION: Argument = {
  problem: (value) =>
    typeof value === "string" && minorVersion(value) !== undefined
      ? undefined
      : `is no version of Kubernetes such as 1.34: ${shown(value)}`,
  isOptional: true,
};
export const TEXT: Argument = { problem: text, isOptional: true };
export const FUNCTION: Argument = {
  problem: (value) => (typeof value === "function" ? undefined : `is not a function: ${shown(value)}`),
  isOptional: true,
};
/** The arguments of `PassInput`. */
export const PASS = {
  featureGates: { problem: flags(Object.keys(DEFAULT_ROLLOUT_SETTINGS)), isOptional: true },
  kubelets: { problem: kubelets, isOptional: true },
  isResizeServed: {
    problem: (value) => (typeof value === "boolean" ? undefined : `is neither true nor false: ${shown(value)}`),
    isOptional: true,
  },
  namespaceLabels: { problem: labelsByName, isOptional: true },
  disruptionBudgets: { problem: eachOf(budgetProblem, "disruption budgets"), isOptional: true },
} as const satisfies Readonly<Record<string, Argument>>;

export function gates(...names: readonly string[]): Argument {
  return { problem: flags([...Object.keys(DEFAULT_ROLLOUT_SETTINGS), ...names]), isOptional: true };
}

export function oneOf(...words: readonly string[]): Argument {
  const problem: Problem = (value) =>
    words.includes(value as string) ? undefined : `is none of ${words.join(", ")}: ${shown(value)}`;
  return { problem, isOptional: true };
}

export function optionally({ problem }: Argument): Argument {
  return { problem, isOptional: true };
}

/**
 * @param call the function's name, with which each message begins
 * @returns the given arguments without null members: as in Go, null means absent
 * @throws TypeError that says in one sentence which argument is wrong, and what it should be
 */
export function readArguments<T extends object>(
  call: string,
  input: T,
  known: { readonly [K in keyof Required<T>]: Argument },
): T {
  const all: readonly (readonly [string, Argument])[] = Object.entries(known);
  const needed = all.flatMap(([name, { isOptional }]) => (isOptional ? [] : [name]));
  if (!isRecord(input)) throw new TypeError(`${call}: give it one object: ${call}({ ${needed.join(", ")} })`);
  const names = all.map(([name]) => name);
  const unknown = Object.keys(input).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new TypeError(`${call}: there is no argument ${unknown}${meant(unknown, names)}`);
  const read = all.flatMap(([name, argument]) => {
    const { value, wrong } = readOne((input as Readonly<Record<string, unknown>>)[name], argument);
    if (wrong !== undefined) throw new TypeError(`${call}: ${name}${/^[.[ ]/.test(wrong) ? "" : " "}${wrong}`);
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(read) as T;
}

/** Depth limit. No Kubernetes object is nested deeper, but an object that contains itself is. */
const MAX_DEPTH = 100;

/**
 * The value without null members, because null counts as absent, as in Go.
 * @throws the problem, as text behind the argument's name
 */
function withoutNulls(value: unknown, place = "", depth = 0): unknown {
  if (typeof value !== "object" || value === null || value instanceof Map) return value;
  if (depth > MAX_DEPTH) throw new Nested(` nests deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value))
    return value.map((one, index) => {
      if (one === null) throw new Nested(`${place}[${index}] is null`);
      return withoutNulls(one, `${place}[${index}]`, depth + 1);
    });
  const kept = Object.entries(value).filter(([, one]) => one !== null);
  return Object.fromEntries(kept.map(([name, one]) => [name, withoutNulls(one, `${place}.${name}`, depth + 1)]));
}

class Nested extends Error {}

/** The argument's value, or its fault. */
function readOne(given: unknown, argument: Argument): { readonly value?: unknown; readonly wrong?: string } {
  try {
    const value = withoutNulls(given);
    const wrong = wrongWith(value, argument);
    return wrong === undefined ? { value } : { wrong };
  } catch (cause) {
    if (cause instanceof Nested) return { wrong: cause.message };
    throw cause;
  }
}

function wrongWith(value: unknown, { problem, isOptional }: Argument): string | undefined {
  if (value !== undefined) return problem(value);
  return isOptional ? undefined : "is missing";
}

function meant(word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  return near === undefined ? "" : `, perhaps ${near}`;
}

function shown(value: unknown): string {
  if (value === undefined || typeof value === "function" || typeof value === "symbol") return typeof value;
  const printed = JSON.stringify(value, (_, one) => (typeof one === "bigint" ? String(one) : one)) ?? typeof value;
  return printed.length > 60 ? `${printed.slice(0, 59)}…` : printed;
}

/** Runs a read, and adds `name` to its errors. */
export function within<T>(call: string, name: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof TypeError) throw new TypeError(`${call}: ${name}: ${cause.message}`, { cause });
    throw cause;
  }
}
