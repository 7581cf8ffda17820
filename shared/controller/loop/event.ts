/** Records an Event: one object per subject, reason and message, whose time moves when it happens again. */
import { createHash } from "node:crypto";
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { SIDECARSET_V1BETA1 } from "../../api/names.ts";
import type { Action } from "../../core/actions.ts";
import { shortText } from "../../go/unseen.ts";
import { isKubeError } from "../../kube/error.ts";
import { type Cluster, EVENTS } from "../../kube/port.ts";

type RecordEvent = Extract<Action, { kind: "RecordEvent" }>;

/** Source: client-go tools/record; the component is OpenKruise's, so that the events read the same. */
interface Event extends KubernetesObject {
  readonly involvedObject: RecordEvent["regarding"] & { readonly apiVersion: string };
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly source: { readonly component: string };
  readonly firstTimestamp: string;
  readonly lastTimestamp: string;
  readonly count: number;
}

/** As much as API servers take of an Event of the newer kind. */
const MOST_MESSAGE = 1_023;

/** Events of cluster-scoped objects live in "default". */
export async function recordEvent(cluster: Cluster, action: RecordEvent, now: string): Promise<void> {
  const { regarding, type, reason, message } = action;
  const namespace = regarding.namespace ?? "default";
  const digest = createHash("sha256").update(JSON.stringify([regarding.uid, type, reason, message]));
  const name = `${regarding.name.slice(0, 230)}.${digest.digest("hex").slice(0, 16)}`;
  const event: Event = {
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace, name },
    involvedObject: { ...regarding, apiVersion: regarding.kind === "Pod" ? "v1" : SIDECARSET_V1BETA1 },
    type,
    reason,
    message: shortText(message, MOST_MESSAGE),
    source: { component: `${regarding.kind === "StatefulSet" ? "statefulset" : "sidecarset"}-controller` },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  };
  try {
    await cluster.create(EVENTS, event);
  } catch (error) {
    if (!isKubeError(error, 409)) throw error;
    await cluster.patch(EVENTS, { namespace, name }, { type: "merge", body: { lastTimestamp: now } });
  }
}
