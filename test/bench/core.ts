/**
 * Measures the work of one admission without reading and writing its JSON, and how this work and a rollout's plan grow.
 */

import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { admitPod, type PodAdmissionView, revisionsWanted } from "../../shared/core/injection/admit-pod.ts";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { decide } from "../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { admissionResponse, diff } from "../../shared/webhook/review/response.ts";
import { readAdmissionReview } from "../../shared/webhook/review/review.ts";
import { UNTOUCHED } from "../support/rollout-fixture.ts";
import { NAMESPACE, reviewBody, rolloutPods, sidecarSetRequest, sidecarSets, sidecarSetsToScan } from "./fixture.ts";
import { growthExponent, type Measured, measure, median, type Subject } from "./measure.ts";

const FEW = [1, 10, 200] as const;
const MANY = 50_000;

interface Compared extends Measured {
  readonly sidecarSets: number;
  readonly timesFloor: number;
  readonly bestTimesFloor: number;
}

export interface CoreFigures {
  readonly bodyBytes: number;
  readonly patchBytes: number;
  /** time of JSON.parse of the review and JSON.stringify of the answer */
  readonly floor: Measured;
  /** admission and patch on top of the floor, by number of SidecarSets, of which one matches */
  readonly admissions: readonly Compared[];
  /** time from the body's text to the answer's, with the floor */
  readonly request: Compared;
  /** growth exponent over 1, 10 and 200 SidecarSets */
  readonly admissionExponent: number;
  readonly bestAdmissionExponent: number;
  /** growth exponent over 1 to 50,000 SidecarSets, from the best rounds */
  readonly bestLongExponent: number;
  /** growth exponent for selectors that no index can look up */
  readonly bestScanExponent: number;
  readonly mutateSidecarSetMicroseconds: number;
  readonly indexMilliseconds: number;
  readonly decideMilliseconds: readonly {
    readonly pods: number;
    readonly milliseconds: number;
    readonly best: number;
  }[];
  readonly decideExponent: number;
  readonly bestDecideExponent: number;
}

const CONTEXT = { now: "2026-01-01T00:00:00Z", random: () => 0.5, kruiseNamespace: "kruise-system", gates: {} };

function patchFor(request: AdmissionRequest, view: PodAdmissionView): readonly unknown[] {
  const admitted = admitPod(request, view, CONTEXT);
  if (admitted.kind === "denied" || admitted.object === undefined) throw new Error("nothing was injected");
  return diff(request.object, admitted.object);
}

function requestOf(body: string): AdmissionRequest {
  return (JSON.parse(body) as { readonly request: AdmissionRequest }).request;
}

function viewOf(all: readonly SidecarSet[]) {
  return { index: indexSidecarSets(all), namespace: NAMESPACE, revisions: [] };
}

function admission(body: string, all: readonly SidecarSet[], calls = 300): Subject {
  const view = viewOf(all);
  const request = requestOf(body);
  const run = () => patchFor(request, view);
  return { name: `admission, ${all.length} SidecarSets`, run, calls };
}

/** Returns the webhook's work between the body's text and the answer's. */
export function wholeRequest(body: string, all: readonly SidecarSet[]): Subject {
  const view = viewOf(all);
  const run = () => {
    const { apiVersion, request } = readAdmissionReview(body);
    if (revisionsWanted(request, view.index, view.namespace).length > 0) throw new Error("a revision is wanted");
    const response = admissionResponse(request, admitPod(request, view, CONTEXT));
    return JSON.stringify({ apiVersion, kind: "AdmissionReview", response });
  };
  return { name: `request, ${all.length} SidecarSets`, run, calls: 300 };
}

function answer(patch: readonly unknown[]) {
  const encoded = Buffer.from(JSON.stringify(patch)).toString("base64");
  const response = { uid: "705ab4f5", allowed: true, patchType: "JSONPatch", patch: encoded };
  return { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response };
}

function timesOf(rounds: number, run: () => unknown): readonly number[] {
  return Array.from({ length: rounds }, () => {
    const begin = performance.now();
    run();
    return performance.now() - begin;
  });
}

function decisions(rounds: number) {
  const [sidecarSet] = sidecarSets(1);
  if (sidecarSet === undefined) throw new Error("no SidecarSet");
  const context = { now: CONTEXT.now, kruiseNamespace: CONTEXT.kruiseNamespace, settings: DEFAULT_ROLLOUT_SETTINGS };
  return [1_000, 10_000].map((count) => {
    const pods = rolloutPods(count, sidecarSet);
    const observation = { sidecarSet, pods, revisions: [], ...UNTOUCHED };
    const { summary } = decide(observation, context);
    if (summary.waiting !== count) throw new Error(`${summary.waiting} of ${count} pods wait`);
    const times = timesOf(rounds, () => decide(observation, context));
    return { pods: count, milliseconds: median(times), best: Math.min(...times) };
  });
}

function compared(figure: Measured, sidecarSetCount: number, floor: Measured): Compared {
  const timesFloor = figure.microseconds / floor.microseconds;
  return { ...figure, sidecarSets: sidecarSetCount, timesFloor, bestTimesFloor: figure.best / floor.best };
}

function exponents(admissions: readonly Compared[], [one, many]: readonly [one: Measured, many: Measured]) {
  const few = admissions.slice(0, FEW.length);
  const best = (figures: readonly Compared[]) =>
    growthExponent(figures.map((figure) => [figure.sidecarSets, figure.best]));
  return {
    admissionExponent: growthExponent(few.map((figure) => [figure.sidecarSets, figure.microseconds])),
    bestAdmissionExponent: best(few),
    bestLongExponent: best(admissions),
    bestScanExponent: growthExponent([
      [1, one.best],
      [MANY, many.best],
    ]),
  };
}

export function measureCore(rounds: number): CoreFigures {
  const body = reviewBody();
  const counts = [...FEW, MANY];
  const patch = patchFor(requestOf(body), viewOf(sidecarSets(1)));
  const reply = answer(patch);
  const request = sidecarSetRequest("new", "web");
  const [floor, mutation, whole, scanOne, scanMany, ...measured] = measure(
    [
      { name: "floor", run: () => [JSON.parse(body), JSON.stringify(reply)], calls: 300 },
      { name: "mutateSidecarSet", run: () => mutateSidecarSet(request), calls: 100 },
      wholeRequest(body, sidecarSets(200)),
      admission(body, sidecarSetsToScan(1)),
      admission(body, sidecarSetsToScan(MANY), 1),
      ...counts.map((count) => admission(body, sidecarSets(count))),
    ],
    rounds,
  );
  if (!(floor && mutation && whole && scanOne && scanMany)) throw new Error("nothing was measured");
  const admissions = measured.map((figure, index) => compared(figure, counts[index] ?? 0, floor));
  const decided = decisions(5);
  const many = sidecarSets(MANY);
  return {
    bodyBytes: body.length,
    patchBytes: JSON.stringify(patch).length,
    floor,
    admissions,
    request: compared(whole, 200, floor),
    ...exponents(admissions, [scanOne, scanMany]),
    mutateSidecarSetMicroseconds: mutation.microseconds,
    indexMilliseconds: median(timesOf(5, () => indexSidecarSets(many))),
    decideMilliseconds: decided,
    decideExponent: growthExponent(decided.map(({ pods, milliseconds }) => [pods, milliseconds])),
    bestDecideExponent: growthExponent(decided.map(({ pods, best }) => [pods, best])),
  };
}
