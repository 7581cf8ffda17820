/** A hot-upgrade sidecar in a new pod: a working container and an idle one. */
import type { Container, EnvVar } from "../../api/kubernetes.ts";
import {
  SIDECARSET_VERSION_ALT_ENV,
  SIDECARSET_VERSION_ENV,
  VERSION_ALT_ANNOTATION_PREFIX,
  VERSION_ANNOTATION_PREFIX,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../api/names.ts";
import type { SidecarContainer } from "../../api/sidecarset.ts";
import { sortedGoJson } from "../../go/json/go-json.ts";
import { isJsonObject } from "../../go/json/json-object.ts";
import { jsonProblem } from "../../go/json/json-problem.ts";
import { Refusal } from "../admission/admission.ts";
import { slotNames } from "../pod/sidecar-containers.ts";
import type { Annotations } from "./record-injection.ts";

function fromAnnotation(name: string, annotation: string): EnvVar {
  return { name, valueFrom: { fieldRef: { fieldPath: `metadata.annotations['${annotation}']` } } };
}

function slot(container: Container, name: string, image: string | undefined): Container {
  const { image: _, ...rest } = container;
  const versions = [
    fromAnnotation(SIDECARSET_VERSION_ENV, `${VERSION_ANNOTATION_PREFIX}${name}`),
    fromAnnotation(SIDECARSET_VERSION_ALT_ENV, `${VERSION_ALT_ANNOTATION_PREFIX}${name}`),
  ];
  return { ...rest, name, ...(image ? { image } : {}), env: [...(container.env ?? []), ...versions] };
}

/** NAME-1 runs the image, NAME-2 the empty one. `container`: the container without hot upgrade. */
export function hotUpgradePair(
  container: Container,
  { upgradeStrategy }: SidecarContainer,
): readonly [Container, Container] {
  const [working, idle] = slotNames(container.name);
  return [slot(container, working, container.image), slot(container, idle, upgradeStrategy?.hotUpgradeEmptyImage)];
}

/** Undefined when the annotation is JSON's null. Compat: entries that are no string count as "". */
function workingContainers(text: string | undefined): ReadonlyMap<string, string> | undefined {
  if (!text || jsonProblem(text) !== undefined) return new Map();
  const value: unknown = JSON.parse(text);
  if (value === null) return undefined;
  if (!isJsonObject(value)) return new Map();
  return new Map(Object.entries(value).map(([name, slotName]) => [name, typeof slotName === "string" ? slotName : ""]));
}

function versionAnnotations(sidecar: string): Annotations {
  const [working, idle] = slotNames(sidecar);
  return {
    [`${VERSION_ANNOTATION_PREFIX}${working}`]: "1",
    [`${VERSION_ALT_ANNOTATION_PREFIX}${working}`]: "0",
    [`${VERSION_ANNOTATION_PREFIX}${idle}`]: "0",
    [`${VERSION_ALT_ANNOTATION_PREFIX}${idle}`]: "1",
  };
}

/** The annotations that pairs of these sidecars need. A pod without hot-upgrade sidecars gets none. */
export function hotUpgradeAnnotations(sidecars: readonly string[], annotations: Annotations): Annotations | Refusal {
  const text = annotations[WORKING_HOT_UPGRADE_ANNOTATION];
  const existing = workingContainers(text);
  if (existing === undefined) return new Refusal(`annotations[${WORKING_HOT_UPGRADE_ANNOTATION}] is null, not a map`);
  const working = new Map([...existing, ...sidecars.map((name) => [name, slotNames(name)[0]] as const)]);
  const versions = sidecars.flatMap((name) => Object.entries(versionAnnotations(name)));
  return {
    ...Object.fromEntries(versions),
    [WORKING_HOT_UPGRADE_ANNOTATION]: sortedGoJson(Object.fromEntries(working)),
  };
}
