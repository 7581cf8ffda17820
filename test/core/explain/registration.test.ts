/** Tests that explanations and advice follow the registration of the pod webhook. */
import { expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { NEEDS_WEBHOOK_CONDITION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { callCondition } from "../../../shared/core/injection/match/call-condition.ts";
import { NO_MIRROR_PODS } from "../../../shared/core/injection/match/matches.ts";
import {
  namespaceNamed,
  type PodRegistration,
  traceRegistration,
  whyUnasked,
} from "../../../shared/core/inspect/explain/registration.ts";
import { restartAdvice } from "../../../shared/core/inspect/restart-advice.ts";
import { newPod } from "../../support/objects.ts";

const setFor = (app: string): SidecarSet => ({
  metadata: { name: app },
  spec: { selector: { matchLabels: { app } } },
});
const [WEB, LATER] = [setFor("web"), setFor("later")];
const podOf = (app: string, spec: object = {}) =>
  newPod({ namespace: "shop", name: "p", labels: { app } }, { containers: [{ name: "main", image: "i" }], ...spec });
const needs = { name: NEEDS_WEBHOOK_CONDITION, expression: callCondition([WEB]) ?? "" };
const REGISTERED: PodRegistration = { name: "mpod.kb.io", matchConditions: [NO_MIRROR_PODS, needs] };
const factsOf = (registration: PodRegistration, sidecarSets = [WEB, LATER]) => ({
  namespace: namespaceNamed("shop"),
  registrations: [registration],
  sidecarSets,
});
const foreign = { name: "theirs", expression: "object.metadata.name.startsWith('a')" };
const narrowed = { namespaceSelector: { matchLabels: { env: "prod" } } };

test.each([
  ["its SidecarSet is in the condition", podOf("web"), factsOf(REGISTERED), "ok WebhookAsked"],
  ["its SidecarSet is newer than the condition", podOf("later"), factsOf(REGISTERED), "stop ObjectExcluded"],
  ["no SidecarSet is meant for it", podOf("none"), factsOf(REGISTERED), "note ObjectExcluded"],
  [
    "a condition of another owner decides",
    podOf("web"),
    factsOf({ ...REGISTERED, matchConditions: [foreign] }),
    "note WebhookUnknown",
  ],
  [
    "a condition of another owner decides, and our condition excludes the pod",
    podOf("later"),
    factsOf({ ...REGISTERED, matchConditions: [foreign, needs] }),
    "stop ObjectExcluded",
  ],
  ["the condition has SidecarSets that are gone", podOf("later"), factsOf(REGISTERED, [LATER]), "note WebhookUnknown"],
  ["the namespace is not selected", podOf("web"), factsOf({ ...REGISTERED, ...narrowed }), "stop NamespaceExcluded"],
  [
    "its labels are not selected",
    podOf("web"),
    factsOf({ ...REGISTERED, objectSelector: { matchLabels: { app: "other" } } }),
    "stop ObjectExcluded",
  ],
])("explain reads the registration of a pod if %s", (_, pod, facts, expected) => {
  const { verdict, reason } = traceRegistration(pod, facts);
  expect(`${verdict} ${reason}`).toBe(expected);
});

test("no restart is suggested if API servers would not call the webhook for the new pod", () => {
  const facts = factsOf(REGISTERED);
  const unasked = (pod: Pod) => whyUnasked(pod, facts);
  expect(restartAdvice([podOf("later")], LATER, { unasked })).toMatch(/no new pod would get sidecars: the API server/);
  expect(restartAdvice([podOf("web")], WEB, { unasked })).toContain("kubectl");
});
