/** Tells whether pods can move from one revision of their template to another in place, and the changes for that. */

import type { ControllerRevision, Quantity, ResourceRequirements } from "../../../api/kubernetes.ts";
import type { ContainerDetails } from "../../../api/pod-parts.ts";
import { diffJson, type JsonChange } from "../../../go/json/json-diff.ts";
import { isJsonObject, type JsonObject } from "../../../go/json/json-object.ts";
import { fieldQuantity, formatQuantity, type ParsedQuantity, parseQuantity } from "../../../go/quantity/quantity.ts";
import { addQuantities, compareQuantities } from "../../../go/quantity/quantity-arithmetic.ts";
import { planMetadata } from "./metadata.ts";
import type { PodTemplate, UpdateSpec } from "./update-spec.ts";

export interface CalculateOptions {
  readonly gracePeriodSeconds: number;
  /** containers that read a changed label or annotation into their environment are restarted */
  readonly isEnvFromMetadataUpdated: boolean;
  /** resources may change in place */
  readonly isVerticalScalingAllowed: boolean;
}

type Images = Readonly<Record<string, string>>;
type Resources = Readonly<Record<string, ResourceRequirements>>;

/** Undefined: only a new pod can follow. Source: OpenKruise pkg/util/inplaceupdate. */
export function calculateSpec(
  before: ControllerRevision,
  after: ControllerRevision,
  options: CalculateOptions,
): UpdateSpec | undefined {
  const changes = diffJson(before.data, after.data).map(({ path, ...change }) => ({
    ...change,
    path: inTemplate(path),
  }));
  const inSpec = changes.filter(({ path }) => path[0] === "spec");
  const inMetadata = changes.filter(({ path }) => path[0] === "metadata" && path.length > 1);
  if (inSpec.length + inMetadata.length < changes.length) return undefined;
  const [oldTemplate, newTemplate] = [templateOf(before.data), templateOf(after.data)];
  const parts = specParts(inSpec, oldTemplate, options);
  const metadata = planMetadata(oldTemplate, newTemplate, inMetadata, options.isEnvFromMetadataUpdated);
  if (!parts || !metadata) return undefined;
  const hasResources = Object.keys(parts.containerResources).length > 0;
  if (hasResources && qosClassIn(oldTemplate) !== qosClassIn(newTemplate)) return undefined;
  return {
    revision: after.metadata?.name ?? "",
    ...parts,
    ...metadata,
    graceSeconds: options.gracePeriodSeconds,
    verticalUpdateOnly:
      hasResources && Object.keys(parts.containerImages).length === 0 && !metadata.updateEnvFromMetadata,
  };
}

function inTemplate(path: readonly string[]): readonly string[] {
  return path[0] === "spec" && path[1] === "template" ? path.slice(2) : path;
}

interface SpecParts {
  readonly containerImages: Images;
  readonly containerResources: Resources;
}

/** Undefined as soon as anything else than images and, where allowed, resources changes. */
function specParts(
  changes: readonly JsonChange[],
  template: PodTemplate,
  { isVerticalScalingAllowed }: CalculateOptions,
): SpecParts | undefined {
  const images = new Map<string, string>();
  const resources = new Map<string, ResourceRequirements>();
  for (const change of changes) {
    const target = targetOf(change, template);
    if (target?.kind === "image") images.set(target.container, target.image);
    else if (target?.kind === "resource" && isVerticalScalingAllowed) {
      resources.set(target.container, withResource(resources.get(target.container), target));
    } else return undefined;
  }
  return { containerImages: Object.fromEntries(images), containerResources: Object.fromEntries(resources) };
}

type Target =
  | { readonly kind: "image"; readonly container: string; readonly image: string }
  | {
      readonly kind: "resource";
      readonly container: string;
      readonly list: "limits" | "requests";
      readonly resource: string;
      readonly quantity: string;
    };

/** Names are those of the old template. */
function targetOf({ op, path, value }: JsonChange, { containers }: PodTemplate): Target | undefined {
  const [, list, index, field, ...rest] = path;
  const container = containers[Number(index)]?.name;
  if (op !== "replace" || list !== "containers" || container === undefined) return undefined;
  if (field === "image" && rest.length === 0 && typeof value === "string")
    return { kind: "image", container, image: value };
  return field === "resources" ? resourceTarget(container, rest, value) : undefined;
}

function resourceTarget(container: string, path: readonly string[], value: unknown): Target | undefined {
  const [list, resource = "", ...deeper] = path;
  const quantity = typeof value === "string" || typeof value === "number" ? parseQuantity(value) : undefined;
  if (deeper.length > 0 || !quantity || !["cpu", "memory"].includes(resource)) return undefined;
  if (list !== "limits" && list !== "requests") return undefined;
  return { kind: "resource", container, list, resource, quantity: formatQuantity(quantity) };
}

function withResource(
  before: ResourceRequirements | undefined,
  { list, resource, quantity }: Extract<Target, { kind: "resource" }>,
): ResourceRequirements {
  return { ...before, [list]: { ...before?.[list], [resource]: quantity } };
}

function qosClassIn({ containers, initContainers }: PodTemplate) {
  return qosClassOf([...containers, ...initContainers]);
}

function templateOf(data: unknown): PodTemplate {
  const template = memberOf(memberOf(data, "spec"), "template");
  const { containers, initContainers } = memberOf(template, "spec");
  return {
    metadata: memberOf(template, "metadata") as PodTemplate["metadata"],
    containers: containersOf(containers),
    initContainers: containersOf(initContainers),
  };
}

function containersOf(value: unknown): readonly ContainerDetails[] {
  return Array.isArray(value) ? (value as readonly ContainerDetails[]) : [];
}

function memberOf(value: unknown, key: string): JsonObject {
  const member = isJsonObject(value) ? value[key] : undefined;
  return isJsonObject(member) ? member : {};
}

// A pod's quality of service class, which no change of resources may move.

interface WithResources {
  readonly resources?: ResourceRequirements;
}

type Totals = ReadonlyMap<string, ParsedQuantity>;

const COUNTED = ["cpu", "memory"];

/** Source: Kubernetes pkg/apis/core/v1/helper/qos, ComputePodQOS; resources that are not given are not defaulted. */
export function qosClassOf(containers: readonly WithResources[]): "BestEffort" | "Burstable" | "Guaranteed" {
  const [requests, limits] = [totalOf(containers, "requests"), totalOf(containers, "limits")];
  if (requests.size === 0 && limits.size === 0) return "BestEffort";
  const areLimited = containers.every(({ resources }) =>
    COUNTED.every((resource) => positive(resources?.limits?.[resource])),
  );
  const areSame = [...requests].every(([resource, request]) => {
    const limit = limits.get(resource);
    return limit !== undefined && compareQuantities(limit, request) === 0;
  });
  return areLimited && areSame && limits.size === requests.size ? "Guaranteed" : "Burstable";
}

/** Compat: the sums of all containers must be equal. */
function totalOf(containers: readonly WithResources[], list: "limits" | "requests"): Totals {
  const totals = new Map<string, ParsedQuantity>();
  for (const { resources } of containers) {
    for (const resource of COUNTED) {
      const quantity = positive(resources?.[list]?.[resource]);
      const before = totals.get(resource);
      if (quantity) totals.set(resource, before ? addQuantities(before, quantity) : quantity);
    }
  }
  return totals;
}

function positive(quantity: Quantity | undefined): ParsedQuantity | undefined {
  const parsed = quantity === undefined ? undefined : fieldQuantity(quantity);
  return parsed && parsed.unscaled > 0n ? parsed : undefined;
}

/** True for two ways of writing one quantity. */
export function isSame(a: Quantity | undefined, b: Quantity | undefined): boolean {
  const [left, right] = [a, b].map((quantity) => (quantity === undefined ? undefined : fieldQuantity(quantity)));
  if (!left || !right) return a === b;
  return compareQuantities(left, right) === 0;
}
