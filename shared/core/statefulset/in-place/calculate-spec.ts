/** Decides whether pods get from one revision of their template to another in place, and by which changes. */
import type { ContainerDetails } from "../../../api/container.ts";
import type { ControllerRevision, ResourceRequirements } from "../../../api/kubernetes.ts";
import { diffJson, type JsonChange } from "../../../go/json/json-diff.ts";
import { isJsonObject, type JsonObject } from "../../../go/json/json-object.ts";
import { formatQuantity, parseQuantity } from "../../../go/quantity/quantity.ts";
import { planMetadata } from "./plan-metadata.ts";
import { qosClassOf } from "./qos-class.ts";
import type { PodTemplate, UpdateSpec } from "./update-spec.ts";

export interface CalculateOptions {
  readonly gracePeriodSeconds: number;
  /** containers that read a changed label or annotation into their environment are restarted for it */
  readonly isEnvFromMetadataUpdated: boolean;
  /** resources may change in place */
  readonly isVerticalScalingAllowed: boolean;
}

type Images = Readonly<Record<string, string>>;
type Resources = Readonly<Record<string, ResourceRequirements>>;

/** Undefined: only a new pod gets there. Source: OpenKruise pkg/util/inplaceupdate. */
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
