/** Events are one collection that two groups serve: core/v1, in which they are stored, and events.k8s.io/v1. */
import type { ApiObject } from "../storage/object.ts";

/** events.k8s.io/v1 name → core/v1 name, where they differ */
const NAMES: Readonly<Record<string, string>> = {
  note: "message",
  regarding: "involvedObject",
  reportingController: "reportingComponent",
  deprecatedSource: "source",
  deprecatedFirstTimestamp: "firstTimestamp",
  deprecatedLastTimestamp: "lastTimestamp",
  deprecatedCount: "count",
};

function renamed(event: ApiObject, names: Readonly<Record<string, string>>): ApiObject {
  const entries = Object.entries(event).map(([key, value]) => [names[key] ?? key, value]);
  return { ...Object.fromEntries(entries), metadata: event.metadata };
}

export function eventToCore(event: ApiObject): ApiObject {
  return renamed(event, NAMES);
}

export function eventFromCore(event: ApiObject): ApiObject {
  return renamed(event, Object.fromEntries(Object.entries(NAMES).map(([name, core]) => [core, name])));
}
