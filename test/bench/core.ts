/** What one admission costs beyond reading and writing its JSON, and how that and a rollout's plan grow. */
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import { admitPod } from "../../shared/core/admit-pod.ts";
import { mutateSidecarSet } from "../../shared/core/admit-sidecarset.ts";
import { decide } from "../../shared/core/decide.ts";
import { indexSidecarSets } from "../../shared/core/match/sidecarset-index.ts";
import { diff } from "../../shared/webhook/json-patch.ts";
import { NAMESPACE, reviewBody, rolloutPods, sidecarSetRequest, sidecarSets } from "./fixture.ts";
import { growthExponent, type Measured, measure, median, type Subject } from "./measure.ts";

const FEW = [1, 10, 200] as const;
const MANY = 50_000;

export interface CoreFigures {
  readonly bodyBytes: number;
  readonly patchBytes: number;
  /** JSON.parse of the review and JSON.stringify of the answer */
  readonly floorMicroseconds: number;
  /** admission and patch, by number of SidecarSets of which one matches; on top of the floor */
  readonly admissions: readonly (Measured & {
    readonly sidecarSets: number;
    readonly timesFloor: number;
    readonly bestTimesFloor: number;
  })[];
  /** over 1, 10 and 200 SidecarSets */
  readonly admissionExponent: number;
  readonly bestAdmissionExponent: number;
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

function admission(body: string, count: number) {
  const view = { index: indexSidecarSets(sidecarSets(count)), namespace: NAMESPACE, revisions: [] };
  const { request } = JSON.parse(body) as { readonly request: AdmissionRequest };
  const run = () => {
    const admitted = admitPod(request, view, CONTEXT);
    if (admitted.kind === "denied" || admitted.object === undefined) throw new Error("nothing was injected");
    return diff(request.object, admitted.object);
  };
  return { name: `admission, ${count} SidecarSets`, run, calls: 300 };
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
  const context = { now: CONTEXT.now, kruiseNamespace: CONTEXT.kruiseNamespace };
  return [1_000, 10_000].map((count) => {
    const pods = rolloutPods(count, sidecarSet);
    const observation = { sidecarSet, pods, revisions: [], taken: [], reserved: new Set<string>() };
    const { summary } = decide(observation, context);
    if (summary.waiting !== count) throw new Error(`${summary.waiting} of ${count} pods wait`);
    const times = timesOf(rounds, () => decide(observation, context));
    return { pods: count, milliseconds: median(times), best: Math.min(...times) };
  });
}

export function measureCore(rounds: number): CoreFigures {
  const body = reviewBody();
  const admissions = [...FEW, MANY].map((count) => ({ count, subject: admission(body, count) }));
  const patch = admission(body, 1).run();
  const reply = answer(patch);
  const floor: Subject = { name: "floor", run: () => [JSON.parse(body), JSON.stringify(reply)], calls: 300 };
  const request = sidecarSetRequest("new", "web");
  const mutate: Subject = { name: "mutateSidecarSet", run: () => mutateSidecarSet(request), calls: 100 };
  const [base, mutation, ...measured] = measure([floor, mutate, ...admissions.map(({ subject }) => subject)], rounds);
  const floorMicroseconds = base?.microseconds ?? Number.NaN;
  const figures = measured.map((figure, index) => ({
    ...figure,
    sidecarSets: admissions[index]?.count ?? 0,
    timesFloor: figure.microseconds / floorMicroseconds,
    bestTimesFloor: figure.best / (base?.best ?? Number.NaN),
  }));
  const few = figures.slice(0, FEW.length);
  const decided = decisions(5);
  const many = sidecarSets(MANY);
  return {
    bodyBytes: body.length,
    patchBytes: JSON.stringify(patch).length,
    floorMicroseconds,
    admissions: figures,
    admissionExponent: growthExponent(few.map((figure) => [figure.sidecarSets, figure.microseconds])),
    bestAdmissionExponent: growthExponent(few.map((figure) => [figure.sidecarSets, figure.best])),
    mutateSidecarSetMicroseconds: mutation?.microseconds ?? Number.NaN,
    indexMilliseconds: median(timesOf(5, () => indexSidecarSets(many))),
    decideMilliseconds: decided,
    decideExponent: growthExponent(decided.map(({ pods, milliseconds }) => [pods, milliseconds])),
    bestDecideExponent: growthExponent(decided.map(({ pods, best }) => [pods, best])),
  };
}
