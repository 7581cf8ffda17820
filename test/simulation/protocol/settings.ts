/**
 * The small worlds in which every order of steps is tried. Each has one change of the SidecarSet and at least one kind
 * of fault.
 */
import type { Setting, Spec } from "./state.ts";

const spec = (generation: number, more: Partial<Spec> = {}): Spec => ({
  uid: "set",
  generation,
  hash: "new",
  maxUnavailable: 1,
  ...more,
});
const first = spec(1);
const small = { pods: 2, ticks: 2, rounds: 2 };
const wide = { pods: 2, ticks: 3, rounds: 1 };
const narrow = { pods: 2, ticks: 2, rounds: 1 };
const rollback = [
  spec(1, { maxUnavailable: 2 }),
  spec(2, { hash: "newer", maxUnavailable: 2 }),
  spec(3, { maxUnavailable: 2 }),
];

/** In each of these worlds ticks may stop anywhere, and writes may arrive late. */
export const SETTINGS: readonly Setting[] = [
  { ...small, name: "a pause, a status that is touched", specs: [first, spec(2, { isPaused: true })], touches: 1 },
  { ...wide, name: "a new image, a status that is touched", specs: [first, spec(2, { hash: "newer" })], touches: 1 },
  {
    ...narrow,
    name: "a new image, a pod that is not ready for a while",
    specs: [first, spec(2, { hash: "newer" })],
    flaps: 1,
  },
  {
    ...wide,
    name: "a new image, a pod that is replaced",
    specs: [first, spec(2, { hash: "newer" })],
    replacements: 1,
  },
  {
    ...small,
    name: "a new image, a swap without an answer",
    specs: [first, spec(2, { hash: "newer" })],
    lostAnswers: 1,
  },
  { ...small, name: "a partition, a status that is touched", specs: [first, spec(2, { partition: 1 })], touches: 1 },
  {
    ...narrow,
    name: "a smaller budget, a swap without an answer",
    specs: [spec(1, { maxUnavailable: 2 }), spec(2)],
    lostAnswers: 1,
  },
  {
    ...small,
    name: "a SidecarSet recreated, a status that is touched",
    specs: [first, spec(1, { uid: "again" })],
    touches: 1,
  },
  { ...narrow, pods: 3, isCutShort: true, name: "a rollback, on three pods", specs: rollback },
  {
    ...narrow,
    pods: 3,
    hasUnfenced: true,
    isCutShort: true,
    name: "a partition, on three pods that may refuse fences",
    specs: [spec(1, { maxUnavailable: 2 }), spec(2, { maxUnavailable: 2, partition: 2 })],
  },
  {
    ...narrow,
    hasUnfenced: true,
    isCutShort: true,
    name: "a new image, pods that may refuse fences",
    specs: [spec(1, { maxUnavailable: 2 }), spec(2, { hash: "newer" })],
  },
  {
    ...wide,
    isStrict: true,
    name: "strictly, a new image, a pod that is not ready for a while",
    specs: [first, spec(2, { hash: "newer" })],
    flaps: 1,
  },
];
