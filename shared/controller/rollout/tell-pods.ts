/** Records an Event on each pod whose sidecars changed in place, in parallel to the rounds: no pod waits for it. */
import { VALUE_ANNOTATION_SUFFIX } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { shortText } from "../../go/unseen.ts";
import { mapLimited } from "../loop/concurrency-limit.ts";
import { act } from "./act.ts";
import type { Context } from "./observe.ts";
import type { PatchPod } from "./pod-patch.ts";

const WRITES_AT_ONCE = 4;
/** Events that would be written this close to the end of the pass are left out. */
const RESERVE_MS = 2_000;
const MOST_MESSAGE = 1_000;

/** of each rollout: resolves when its Events are written */
const telling = new WeakMap<Context, Promise<void>>();

/** Starts writing after the Events of earlier batches. `patches`: successful ones. */
export function tellPods(context: Context, sidecarSet: SidecarSet, patches: readonly PatchPod[]): void {
  const upgrades = patches.filter(({ purpose, images }) => purpose === "upgrade" && images.length > 0);
  if (upgrades.length === 0) return;
  const { beside = (work) => work() } = context;
  const tell = async () => {
    await telling.get(context);
    await mapLimited(upgrades, WRITES_AT_ONCE, (patch) => tellPod(context, sidecarSet, patch));
  };
  telling.set(context, beside(tell));
}

/** Resolves when every Event is written, was refused, or is left out. */
export async function podsAreTold(context: Context): Promise<void> {
  await telling.get(context);
}

async function tellPod(context: Context, sidecarSet: SidecarSet, patch: PatchPod): Promise<void> {
  if (context.clock.now() >= context.endsAtMs - RESERVE_MS) return;
  const { namespace, name, uid } = patch.pod;
  const set = sidecarSet.metadata?.name ?? "";
  const message = shortText(`SidecarSet ${set} updates in place: ${changesOf(set, patch)}`, MOST_MESSAGE);
  const regarding = { kind: "Pod", namespace, name, uid } as const;
  const event = { kind: "RecordEvent", regarding, type: "Normal", reason: "SidecarUpdated", message } as const;
  await act(event, { ...context, sidecarSet }).catch(() => undefined);
}

/** Values change with another spelling of the image, so the variables are named too: `agent to docker.io/agent:1; new values of agent.LEVEL`. */
function changesOf(sidecarSet: string, { images, annotations }: PatchPod): string {
  const prefix = `${sidecarSet}${VALUE_ANNOTATION_SUFFIX}/`;
  const variables = Object.keys(annotations).filter((key) => key.startsWith(prefix));
  const values = variables.map((key) => key.slice(prefix.length)).join(", ");
  const changes = images.map(({ container, to }) => `${container} to ${to}`).join(", ");
  return values === "" ? changes : `${changes}; new values of ${values}`;
}
