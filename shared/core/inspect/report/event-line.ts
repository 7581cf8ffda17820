/** Decides which Events the page shows, and what of them. */
import type { KubernetesObject } from "../../../api/kubernetes.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";

/** core/v1 Event, as far as it is read here. */
export interface EventObject extends KubernetesObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly count?: number;
  readonly firstTimestamp?: string | null;
  readonly lastTimestamp?: string | null;
  readonly eventTime?: string | null;
  readonly involvedObject?: { readonly kind?: string; readonly namespace?: string; readonly name?: string } | null;
}

export interface EventLine {
  /** RFC3339 */
  readonly at: string;
  readonly isWarning: boolean;
  readonly reason: string;
  readonly message: string;
  /** such as `Pod shop/web-1` */
  readonly about: string;
  readonly count: number;
}

const MAX_LINES = 50;

/** Newest first, the last 50. */
export function eventLines(events: readonly EventObject[]): readonly EventLine[] {
  return events
    .map(({ type, reason = "", message = "", count = 1, involvedObject, ...event }) => ({
      at: event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp ?? event.metadata?.creationTimestamp ?? "",
      isWarning: type === "Warning",
      reason,
      message,
      about: aboutOf(involvedObject ?? {}),
      count,
    }))
    .sort((a, b) => compareUtf8(b.at, a.at))
    .slice(0, MAX_LINES);
}

function aboutOf({ kind = "", namespace, name }: NonNullable<EventObject["involvedObject"]>): string {
  return `${kind} ${[namespace, name].filter(Boolean).join("/")}`.trim();
}
