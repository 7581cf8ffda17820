/** The book's words about images that are pulled first. */
import { counted } from "../../../../go/counted.ts";
import type { HoldWords } from "../../hold-words.ts";
import { LOOK_SECONDS, type PullsSummary } from "./pull-facts.ts";

/** Counts for readers that know only that pulls are stuck. */
const STUCK_PULLS: PullsSummary = {
  nodes: 0,
  underWay: 0,
  atOnce: 0,
  waiting: 0,
  failed: [],
  failedCount: 0,
  isStuck: true,
  seconds: LOOK_SECONDS,
};

export const PRE_PULL_WORDS: HoldWords = {
  applies: ({ rules: { prePull: pulls } }) =>
    pulls !== undefined && (pulls.isStuck || pulls.waiting + pulls.underWay > 0),
  cause: ({ rules: { prePull: pulls } }) => (pulls?.isStuck ? "PrePullFailed" : "PrePulling"),
  severity: ({ rules: { prePull: pulls } }) => (pulls?.isStuck ? "trouble" : "wait"),
  isBeside: true,
  reason: "PrePull",
  progress: ({ rules: { prePull: pulls } }) => pulls && pullsText(pulls),
  goesOn: ({ rules: { prePull: pulls } }) => !pulls?.isStuck,
  verdict: ({ rules: { prePull: pulls } }) => (pulls?.isStuck ? "Blocked" : "Updating"),
  blocked: {
    reason: "PrePull",
    text: ({ used, rules: { prePull: pulls } }) => (used === 0 && pulls?.isStuck ? pullsText(pulls) : undefined),
  },
  // The condition Blocked says this only if pulls are stuck.
  factsIn: () => ({ rules: { prePull: STUCK_PULLS } }),
  clause: ({ rules: { prePull: pulls } }) => (pulls ? pullsText(pulls) : "images are pulled first"),
  title: ({ rules: { prePull: pulls } }) =>
    pulls?.waiting === 0
      ? "Images are pulled"
      : `${counted(pulls?.waiting ?? 0, "pod waits", "pods wait")} for images to be pulled`,
  next: (_, { rules: { prePull: pulls } }) =>
    pulls?.isStuck
      ? "correct that, set another image, or take the annotation sidecarset.kruise.io/pre-pull away"
      : undefined,
};

/** One clause about the pulls. */
function pullsText({ nodes, underWay, atOnce, failed, failedCount, refusal }: PullsSummary): string {
  const named = failed.map(
    ({ node, kind, message }) => `${node} (${kind === "refused" ? "" : "not known: "}${message})`,
  );
  const more = failedCount > named.length ? [`${failedCount - named.length} more`] : [];
  const failures =
    failedCount === 0
      ? ""
      : `${counted(failedCount, "node has", "nodes have")} not pulled the images: ${[...named, ...more].join(", ")}`;
  const rest = nodes - failedCount;
  const progress =
    rest <= 0 && underWay === 0
      ? ""
      : `images are pulled first on ${counted(nodes, "node")}, ${underWay} now, at most ${atOnce} at once`;
  const refused = refusal === undefined ? "" : `pods that pull them cannot be created: ${refusal}`;
  return [progress, failures, refused].filter(Boolean).join("; ");
}

/** The reason why pods of this node wait. */
export function nodeText(pulls: PullsSummary, node: string): string {
  const failure = pulls.failed.find((one) => one.node === node);
  return failure ? `its node ${node} has not pulled the images: ${failure.message}` : pullsText(pulls);
}
