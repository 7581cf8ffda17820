/** Tells the rollout about admissions, so that it need not wait for its schedule. No decision depends on it. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { Pod } from "../../api/kubernetes.ts";
import { HASH_ANNOTATION, INJECTED_LIST_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { needsLaunchStep } from "../../core/launch-priority/plan-launch.ts";
import { launchNews, podNews, type Work } from "../../core/rollout/queue/work.ts";
import type { Log } from "../../log.ts";
import type { Admit } from "../review/app.ts";
import { within } from "../server/http.ts";
import { clusterView, type ViewOptions } from "../view/cluster-view.ts";

/** Hands work over to the rollout. */
export type Send = (work: readonly Work[]) => Promise<void>;

export interface HintOptions {
  readonly send: Send;
  readonly log: Log;
  /** epoch milliseconds */
  readonly now: () => number;
  /** Names of the existing SidecarSets, at most a few seconds old; absent: each name in a pod is sent. */
  readonly sidecarSetNames?: () => Promise<ReadonlySet<string>>;
}

export interface Hints {
  /** The same decision, with a hint about what it allows. */
  readonly ofSidecarSets: (admit: Admit) => Admit;
  /** Reviews every write of a pod's status, and always allows it. */
  readonly ofPods: Admit;
}

/** Limit of the time for which a request waits for the hint. */
const PATIENCE_MS = 300;
/** The names that an injected list may have: anybody who may write pods may write one. */
const SIDECARSET_NAME = /^[a-z0-9A-Z-]{1,63}$/;
const MAX_NAMES = 20;
/** Limit of messages about a namespace's pods in half a second: one pod with the most names, or several. */
const MAX_OF_NAMESPACE = 20;
/** Limit of SidecarSets whose last news are remembered. */
const MAX_SENT = 1_000;

export function hints({ send, log, now, sidecarSetNames }: HintOptions): Hints {
  const isNew = newsOnly();
  const isWithinShare = namespaceShares();
  const hint = async (work: readonly Work[]) => {
    if (work.length === 0) return;
    try {
      await within(PATIENCE_MS, () => send(work));
    } catch (error) {
      log.warn("no hint was given, the next tick does without", { error });
    }
  };
  return {
    ofSidecarSets: (admit) => async (request) => {
      const admission = await admit(request);
      if (admission.kind === "allowed") await hint(changeOf(request));
      return admission;
    },
    ofPods: async (request) => {
      try {
        const work = await existing(newsOf(request, now()), sidecarSetNames);
        await hint(work.filter((one) => isNew(one, () => isWithinShare(one, request.namespace))));
      } catch (error) {
        log.warn("no hint was given, the next tick does without", { error });
      }
      return { kind: "allowed" };
    },
  };
}

/** A pod's author may write any name into its list, and each would be a message and a pass of its own. */
async function existing(work: readonly Work[], names: HintOptions["sidecarSetNames"]): Promise<readonly Work[]> {
  if (names === undefined || work.every(({ kind }) => kind !== "pods")) return work;
  const there = await within(PATIENCE_MS, names);
  return work.filter(({ kind, sidecarSet }) => kind !== "pods" || there.has(sidecarSet));
}

/** Returns false once a namespace has used up its share of a half second. */
function namespaceShares(): (work: Work, namespace: string | undefined) => boolean {
  let slot = Number.NaN;
  const used = new Map<string, number>();
  return (work, namespace = "") => {
    if (work.kind !== "pods") return true;
    if (work.slot !== slot) used.clear();
    slot = work.slot;
    const count = (used.get(namespace) ?? 0) + 1;
    used.set(namespace, count);
    return count <= MAX_OF_NAMESPACE;
  };
}

/** The work for a SidecarSet that is created or gets another hash or spec: this includes the end of a pause. */
function changeOf({ uid, operation, dryRun, object, oldObject }: AdmissionRequest): readonly Work[] {
  if (dryRun || (operation !== "CREATE" && operation !== "UPDATE")) return [];
  const { metadata } = object ?? {};
  const isSame = hashOf(object) === hashOf(oldObject) && specText(object) === specText(oldObject);
  if (!metadata?.name || (operation === "UPDATE" && isSame)) return [];
  const { name: sidecarSet, generation = 0 } = metadata;
  return [{ kind: "change", sidecarSet, hash: hashOf(object), generation, request: uid }];
}

type MaybeObject = AdmissionRequest["object"];

function hashOf(object: MaybeObject): string {
  return object?.metadata?.annotations?.[HASH_ANNOTATION] ?? "";
}

function specText(object: MaybeObject): string {
  return JSON.stringify((object as SidecarSet | null | undefined)?.spec ?? null);
}

function newsOf({ dryRun, object }: AdmissionRequest, at: number): readonly Work[] {
  if (dryRun || !object) return [];
  const list: unknown = object.metadata?.annotations?.[INJECTED_LIST_ANNOTATION];
  const named = typeof list === "string" ? list.split(",").filter((name) => SIDECARSET_NAME.test(name)) : [];
  const ofSets = [...new Set(named)].slice(0, MAX_NAMES).map((name) => podNews(name, at));
  return isLaunching(object) ? [launchNews(at), ...ofSets] : ofSets;
}

/** A request's object is whatever was sent. */
function isLaunching(object: NonNullable<MaybeObject>): boolean {
  const { spec } = object as Partial<Pod>;
  return Array.isArray(spec?.containers) && needsLaunchStep(object as Pod, undefined);
}

/** Many pods become ready at the same time; the queue would take only the first, so the others are not sent. */
function newsOnly(): (work: Work, maySend: () => boolean) => boolean {
  const sent = new Map<string, number>();
  return (work, maySend) => {
    if (work.kind !== "pods" && work.kind !== "launch") return true;
    // A namespace over its limit does not use up the message for another namespace.
    if (sent.get(work.sidecarSet) === work.slot || !maySend()) return false;
    sent.delete(work.sidecarSet);
    sent.set(work.sidecarSet, work.slot);
    const [oldest] = sent.keys();
    if (oldest !== undefined && sent.size > MAX_SENT) sent.delete(oldest);
    return true;
  };
}

// Names of the existing SidecarSets, for decisions that tolerate a delay of a few seconds.

/** A new SidecarSet has a hint of its own, so its name may be missing here for this time. */
const AGE_MS = 10_000;

export function recentNames(options: ViewOptions): () => Promise<ReadonlySet<string>> {
  const view = clusterView({ ...options, freshnessMs: AGE_MS });
  return async () => {
    const { value } = await view.listSidecarSets();
    return new Set(value.sidecarSets.map(({ metadata }) => metadata?.name ?? ""));
  };
}
