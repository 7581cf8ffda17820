import fc from "fast-check";
import { expect, test } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import {
  FOLLOW_ORDINALS_ANNOTATION,
  IGNORE_NEVER_READY_ANNOTATION,
  OWNER_BUDGET_ANNOTATION,
} from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { PodView } from "../../shared/controller/pod-store/pod-view.ts";
import { decide } from "../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { NOTHING_RESERVED } from "../../shared/core/rollout/select/reserved.ts";
import { projectPod } from "../../shared/core/rollout/upgrade/project-pod.ts";
import type { Sequence } from "../../shared/go/sequence.ts";
import { listedPod } from "../support/objects.ts";
import { UNTOUCHED } from "../support/rollout-fixture.ts";
import { holds } from "./holds.ts";
import { rollouts } from "./rollouts.ts";

const CONTEXT = { now: "2026-01-02T03:04:05Z", kruiseNamespace: "kruise-system", settings: DEFAULT_ROLLOUT_SETTINGS };
const ANNOTATIONS = {
  plain: [],
  ordinals: [FOLLOW_ORDINALS_ANNOTATION],
  owners: [OWNER_BUDGET_ANNOTATION],
  both: [FOLLOW_ORDINALS_ANNOTATION, OWNER_BUDGET_ANNOTATION],
  ignored: [IGNORE_NEVER_READY_ANNOTATION],
} as const;

const KINDS = Object.keys(ANNOTATIONS) as readonly (keyof typeof ANNOTATIONS)[];

function annotated(sidecarSet: SidecarSet, kind: keyof typeof ANNOTATIONS): SidecarSet {
  const own = Object.fromEntries(
    ANNOTATIONS[kind].map((name) => [name, name === IGNORE_NEVER_READY_ANNOTATION ? "true" : "1"]),
  );
  const annotations = { ...sidecarSet.metadata?.annotations, ...own };
  return { ...sidecarSet, metadata: { ...sidecarSet.metadata, annotations } };
}

/** Returns the pods with owners: every third pod has none, and the others have one of two owners. */
function owned(pod: Pod, index: number): Pod {
  if (index % 3 === 0) return pod;
  const ownerReferences = [
    { apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid: `s${index % 2}`, controller: true },
  ];
  return { ...pod, metadata: { ...pod.metadata, ownerReferences } };
}

interface News {
  /** positions among the pods */
  readonly written: number;
  readonly gone: number;
  readonly back: boolean;
}

const someNews: fc.Arbitrary<News> = fc.record({ written: fc.nat(30), gone: fc.nat(30), back: fc.boolean() });

/** Returns a view of pods: the list started twice, one pod was updated, and one was removed and may return. */
function viewOf(sidecarSet: SidecarSet, pods: readonly Pod[], { written, gone, back }: News): PodView {
  const view = new PodView(sidecarSet);
  for (const pod of pods.slice(gone % (pods.length + 1))) view.gather(pod);
  const half = Math.floor(pods.length / 2);
  view.complete([pods.slice(0, half), pods.slice(half)].map((list) => list.map((pod) => view.gather(pod))));
  const [newer, lost] = [pods[written], pods[gone]];
  if (newer) expect(view.put(at(newer, "1234567"))).toBe(true);
  if (lost) expect(view.remove(uidOf(lost), "1234568")).toBe(true);
  if (lost && back) expect(view.put(at(lost, "1234569"))).toBe(true);
  return view;
}

/** Returns the same pods as a list of records. */
function recordsOf(sidecarSet: SidecarSet, pods: readonly Pod[], { written, gone, back }: News): readonly Pod[] {
  const now = pods.map((pod, place) => (place === written ? at(pod, "1234567") : pod));
  const lost = pods[gone];
  const left = now.filter((_, place) => place !== gone);
  return [...left, ...(lost && back ? [at(lost, "1234569")] : [])].map((pod) => projectPod(pod, sidecarSet));
}

function at(pod: Pod, resourceVersion: string): Pod {
  return { ...pod, metadata: { ...pod.metadata, resourceVersion } };
}

function uidOf({ metadata }: Pod): string {
  return metadata?.uid ?? "";
}

test("decide returns the same decision for a PodView and for a list of pods", () => {
  const context = fc.record({
    StrictMaxUnavailable: fc.boolean(),
    areForThis: fc.boolean(),
    room: fc.oneof(fc.nat(5), fc.constant(NOTHING_RESERVED.room)),
  });
  const given = fc.tuple(rollouts, fc.constantFrom(...KINDS), someNews, context);
  holds(given, ["upgrades", "flips", "holds", "comes back", ...KINDS], ([rollout, kind, news, options], seen) => {
    const sidecarSet = annotated(rollout.sidecarSet, kind);
    const pods = rollout.pods.map(owned);
    const view = viewOf(sidecarSet, pods, news);
    const records = recordsOf(sidecarSet, pods, news);
    expect([...view.pods]).toStrictEqual(records);
    const { StrictMaxUnavailable, ...reserved } = { ...NOTHING_RESERVED, ...options };
    const observed = { sidecarSet, revisions: [], ...UNTOUCHED, reserved: { ...reserved, uids: rollout.reserved } };
    const settings = { ...CONTEXT.settings, StrictMaxUnavailable };
    const decided = (of: Sequence<Pod>) => decide({ ...observed, pods: of }, { ...CONTEXT, settings });
    const onList = decided(records);
    expect(decided(view.records)).toStrictEqual(onList);
    expect(decided(view.pods)).toStrictEqual(onList);
    const purposes = onList.actions.flatMap((action) => (action.kind === "PatchPod" ? [action.purpose] : []));
    seen("upgrades", purposes.includes("upgrade"));
    seen("flips", purposes.includes("flip"));
    seen("holds", purposes.length === 0);
    seen("comes back", news.back && news.gone < pods.length);
    seen(kind);
  });
});

test("reading pods of an old state of a PodView throws after the view changed", () => {
  const pod: Pod = listedPod({
    name: "a",
    namespace: "shop",
    uid: "u",
    resourceVersion: "1",
    creationTimestamp: "2026-01-01T00:00:00Z",
    labels: {},
    annotations: {},
  });
  const view = viewOf({ spec: {} }, [pod], { written: 9, gone: 9, back: false });
  const { pods, records } = view;
  const record = records.at(0);
  expect([pods.at(0)?.metadata?.name, record?.metadata?.name]).toEqual(["a", "a"]);
  view.put(at(pod, "2"));
  expect(() => pods.at(0)).toThrow("changed");
  expect(() => [...records]).toThrow("changed");
  expect(() => record?.metadata?.uid).toThrow("changed");
  expect(view.pods.at(0)?.metadata?.resourceVersion).toBe("2");
});
