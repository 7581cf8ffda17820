/** Describes a rollout by the API server's own record of writes, and not by the passes' report. */

import type { WriteStream } from "node:tty";
import type { Container, Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, INJECTED_LIST_ANNOTATION, IS_INJECTED_ENV } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { withSpecImages } from "../../shared/core/pod/image-alias.ts";
import { parseUpgradeRecords } from "../../shared/core/pod/pod-records.ts";
import { maxUnavailableOf } from "../../shared/core/rollout/select/budget.ts";
import type { RecordedWrite } from "../local/storage/store.ts";

export interface PodCounts {
  readonly pods: number;
  readonly injected: number;
  readonly updated: number;
  readonly updatedReady: number;
  readonly ready: number;
  readonly unavailable: number;
}

export interface RolloutRecord {
  /** number of pods, summed over all SidecarSets */
  readonly maxUnavailable: number;
  /** the most pods that were unavailable at once, after any single write */
  readonly maxUnavailableObserved: number;
  readonly appContainerRestarts: number;
}

export const isInjectedContainer = ({ env }: Container) => env?.some(({ name }) => name === IS_INJECTED_ENV) === true;

const injectedBy = (pod: Pod): readonly string[] =>
  (pod.metadata?.annotations?.[INJECTED_LIST_ANNOTATION] ?? "").split(",").filter((name) => name !== "");

function isReady(pod: Pod): boolean {
  return pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
}

/** True if it is not ready, or will restart a container because the spec has another image than the running one. */
function isUnavailable(seen: Pod): boolean {
  const pod = withSpecImages(seen);
  const running = new Map(pod.status?.containerStatuses?.map(({ name, image }) => [name, image]));
  return !isReady(pod) || pod.spec.containers.some(({ name, image }) => running.get(name) !== image);
}

function isUpdated(pod: Pod, hashes: ReadonlyMap<string, string>): boolean {
  const names = injectedBy(pod);
  const { records } = parseUpgradeRecords(pod.metadata?.annotations?.[HASH_ANNOTATION]);
  return names.length > 0 && names.every((name) => records[name]?.hash === hashes.get(name));
}

/** Numbers of pods by state. A pod without sidecars counts in `pods` alone. */
export function countPods(pods: readonly Pod[], sidecarSets: readonly SidecarSet[]): PodCounts {
  const hashes = new Map(
    sidecarSets.map(({ metadata }) => [metadata?.name ?? "", metadata?.annotations?.[HASH_ANNOTATION] ?? ""]),
  );
  const injected = pods.filter((pod) => injectedBy(pod).length > 0);
  const updated = injected.filter((pod) => isUpdated(pod, hashes));
  return {
    pods: pods.length,
    injected: injected.length,
    updated: updated.length,
    updatedReady: updated.filter((pod) => !isUnavailable(pod)).length,
    ready: pods.filter(isReady).length,
    unavailable: injected.filter(isUnavailable).length,
  };
}

/** The budgets of all SidecarSets together, as a number of pods. */
export function maxUnavailableSum(sidecarSets: readonly SidecarSet[], pods: readonly Pod[]): number {
  const matched = (name: string) => pods.filter((pod) => injectedBy(pod).includes(name)).length;
  return sidecarSets
    .map((set) => maxUnavailableOf(set.spec.updateStrategy, matched(set.metadata?.name ?? "")))
    .reduce((sum, each) => sum + each, 0);
}

function appRestarts(pod: Pod): number {
  const sidecars = new Set(pod.spec.containers.filter(isInjectedContainer).map(({ name }) => name));
  return (pod.status?.containerStatuses ?? [])
    .filter(({ name }) => !sidecars.has(name))
    .reduce((sum, { restartCount = 0 }) => sum + restartCount, 0);
}

/**
 * Replays every write of a pod and looks at all of them after each.
 * @param since sequence number of the last write before the rollout; earlier writes set the scene, they are not judged
 */
export function replay(
  writes: readonly Pick<RecordedWrite, "sequence" | "group" | "resource" | "object" | "isRemoved">[],
  since: number,
  sidecarSets: readonly SidecarSet[],
): RolloutRecord {
  const pods = new Map<string, Pod>();
  const unavailable = new Set<string>();
  const restarts = new Map<string, number>();
  let maxUnavailableObserved = 0;
  for (const write of writes.filter(({ group, resource }) => group === "" && resource === "pods")) {
    const pod = write.object as unknown as Pod;
    const uid = pod.metadata?.uid ?? "";
    restarts.set(uid, appRestarts(pod));
    pods.set(uid, pod);
    if (write.isRemoved) pods.delete(uid);
    if (!write.isRemoved && injectedBy(pod).length > 0 && isUnavailable(pod)) unavailable.add(uid);
    else unavailable.delete(uid);
    if (write.sequence > since) maxUnavailableObserved = Math.max(maxUnavailableObserved, unavailable.size);
  }
  return {
    maxUnavailable: maxUnavailableSum(sidecarSets, [...pods.values()]),
    maxUnavailableObserved,
    appContainerRestarts: [...restarts.values()].reduce((sum, each) => sum + each, 0),
  };
}

// Shows a rollout while it runs: bars on a terminal, one plain line per change when piped.

interface Progress {
  readonly pods: number;
  readonly updated: number;
  readonly ready: number;
  readonly unavailable: number;
  readonly maxUnavailable: number;
}

export interface ProgressView {
  /** Redraws, or prints a line if anything changed. */
  show(progress: Progress): void;
  /** A line that stays. */
  note(text: string): void;
  /** Leaves the last state standing. */
  done(): void;
}

type Output = Pick<WriteStream, "write"> & { readonly isTTY?: boolean; readonly columns?: number };

const LABEL_WIDTH = 12;
const FIGURES_WIDTH = 16;

function bar(label: string, value: number, total: number, columns: number): string {
  const width = Math.max(5, Math.min(40, columns - LABEL_WIDTH - FIGURES_WIDTH));
  const full = total === 0 ? 0 : Math.round((width * value) / total);
  return `${label.padEnd(LABEL_WIDTH)}${"█".repeat(full)}${"░".repeat(width - full)} ${value}/${total}`;
}

function terminalView(out: Output): ProgressView {
  let drawn = 0;
  const erase = () => {
    if (drawn > 0) out.write(`\x1b[${drawn}A\x1b[0J`);
    drawn = 0;
  };
  let last: Progress | undefined;
  const draw = () => {
    if (last === undefined) return;
    const columns = out.columns ?? 80;
    const lines = [
      bar("updated", last.updated, last.pods, columns),
      bar("ready", last.ready, last.pods, columns),
      bar("unavailable", last.unavailable, last.maxUnavailable, columns),
    ];
    out.write(`${lines.join("\n")}\n`);
    drawn = lines.length;
  };
  return {
    show(progress) {
      erase();
      last = progress;
      draw();
    },
    note(text) {
      erase();
      out.write(`${text}\n`);
      draw();
    },
    done() {
      drawn = 0;
      last = undefined;
    },
  };
}

function plainView(out: Output): ProgressView {
  let last = "";
  return {
    show({ pods, updated, ready, unavailable, maxUnavailable }) {
      const line = `  updated ${updated}/${pods}, ready ${ready}/${pods}, unavailable ${unavailable} of at most ${maxUnavailable}\n`;
      if (line !== last) out.write(line);
      last = line;
    },
    note(text) {
      out.write(`${text}\n`);
    },
    done() {
      last = "";
    },
  };
}

/** @param out a terminal gets bars that redraw in place, anything else plain lines */
export function progressView(out: Output): ProgressView {
  return out.isTTY === true ? terminalView(out) : plainView(out);
}
