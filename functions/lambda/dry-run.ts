/**
 * Lambda that shows what a pass would do now, and the next steps of one SidecarSet: {"sidecarSet"?: "name", "cluster"?:
 * "name"}. It needs no right to write.
 */
import { dnsSubdomainErrors } from "../../shared/go/label-name.ts";
import { type RolloutContext, serveDryRun } from "./rollout.ts";
import type { DryRunEvent } from "./rollout-clusters.ts";

/** The fields that the event may have, each with its check. */
const FIELDS: Readonly<Record<keyof DryRunEvent, (value: unknown) => boolean>> = {
  sidecarSet: isObjectName,
  cluster: (value) => typeof value === "string",
  readyAfterSeconds: (value) => typeof value === "number" && value >= 0 && value <= 86_400,
};

/**
 * Returns the report: `planned` of each SidecarSet lists the actions, and `plan` of the requested SidecarSet lists the
 * next steps. Other fields, such as messages of a queue, are ignored, because this function makes no pass.
 * @throws Error for a field of the wrong type
 */
export function handler(event: DryRunEvent, context: RolloutContext) {
  return serveDryRun(readEvent(event), context);
}

function readEvent(event: unknown): DryRunEvent {
  const given = Object.entries(typeof event === "object" && event !== null ? event : {});
  const read: Record<string, unknown> = {};
  for (const [field, value] of given) {
    if (!Object.hasOwn(FIELDS, field) || value === undefined) continue;
    if (!FIELDS[field as keyof DryRunEvent](value)) throw new Error(`${field} of the event is not valid`);
    read[field] = value;
  }
  return read;
}

/** True for names that are valid in a request's path. */
function isObjectName(value: unknown): boolean {
  return typeof value === "string" && dnsSubdomainErrors(value).length === 0;
}
