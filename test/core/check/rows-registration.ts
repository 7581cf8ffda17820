/** Installations whose registration has something wrong with it. */
import type { Facts } from "../../../shared/core/inspect/check/facts.ts";
import { IN_ORDER, type Row, seen, setOf, withSets, withWebhook } from "./fixture.ts";

const POD = "mpod.kb.io";
const withoutSetWebhook = { ...IN_ORDER, validating: seen([]) };

export const withGate = (facts: Facts): Facts => ({
  ...facts,
  settings: { ...facts.settings, KruisePodReadinessGate: true },
});

export const REGISTRATION: readonly Row[] = [
  [
    "NotLookedAt",
    "a list is forbidden",
    { ...IN_ORDER, pods: { why: "pods is forbidden" } },
    /the pods could not be looked at: pods is forbidden/,
  ],
  ["PodWebhookMissing", "no webhook is there", { ...IN_ORDER, mutating: seen([]) }, /no webhook of ours/],
  ["SidecarSetWebhookMissing", "nothing validates", withoutSetWebhook, /no validating webhook/],
  [
    "PlaceholderAddress",
    "the file was applied as it is",
    withWebhook(IN_ORDER, POD, { clientConfig: { url: "https://sidecarset-webhooks.invalid/mutate-pod" } }),
    /placeholder/,
  ],
  ["NotInForce", "a SidecarSet gets no hashes", { ...IN_ORDER, trial: seen({ kind: "untouched" }) }, /got no hashes/],
  [
    "ApiServerNotAnswered",
    "the API server says so",
    { ...IN_ORDER, trial: seen({ kind: "unanswered", message: "connection refused" }) },
    /connection refused/,
  ],
  [
    "SidecarSetNotAsked",
    "all its namespaces are left out",
    withWebhook(
      withSets([setOf("ss", { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "kube-system" } } })]),
      POD,
      {},
    ),
    /leaves out kube-system/,
  ],
  [
    "SidecarSetNotAsked",
    "an objectSelector wants other labels",
    withWebhook(IN_ORDER, POD, { objectSelector: { matchLabels: { app: "other" } } }),
    /objectSelector wants other labels/,
  ],
  [
    "SidecarSetPartlyAsked",
    "it names a namespace that is left out",
    withSets([
      setOf("ss", {
        namespaceSelector: {
          matchExpressions: [
            { key: "kubernetes.io/metadata.name", operator: "In", values: ["default", "kube-system"] },
          ],
        },
      }),
    ]),
    /names kube-system/,
  ],
  [
    "SidecarSetPartlyAsked",
    "an objectSelector wants one more label",
    withWebhook(IN_ORDER, POD, {
      objectSelector: {
        matchLabels: { app: "web" },
        matchExpressions: [{ key: "app", operator: "NotIn", values: ["x"] }],
      },
    }),
    /may leave out/,
  ],
  [
    "ConditionStale",
    "the condition was made for another one",
    { ...IN_ORDER, sidecarSets: seen([setOf("ss", { selector: { matchLabels: { app: "new" } } })]) },
    /made before the SidecarSet/,
  ],
  [
    "ConditionStale",
    "every pod is to get a readiness gate",
    withGate(IN_ORDER),
    /KruisePodReadinessGate, which is for every pod/,
  ],
  [
    "ConditionUnknown",
    "a condition of somebody's",
    withWebhook(IN_ORDER, POD, { matchConditions: [{ name: "not-on-mondays", expression: "true" }] }),
    /not-on-mondays/,
  ],
  ["EveryPodAsked", "there is no condition", withWebhook(IN_ORDER, POD, { matchConditions: [] }), /every new pod/],
  ["KubeSystemAsked", "nothing leaves it out", withWebhook(IN_ORDER, POD, { namespaceSelector: {} }), /kube-system/],
  ["FailsOpen", "Ignore", IN_ORDER, /without their sidecars/],
  [
    "FailsClosed",
    "Fail, with a condition",
    withWebhook(IN_ORDER, POD, { failurePolicy: "Fail" }),
    /that it is asked about are not created/,
  ],
  [
    "FailsClosedForAll",
    "Fail, without a condition",
    withWebhook(IN_ORDER, POD, { failurePolicy: "Fail", matchConditions: [], objectSelector: {} }),
    /no pod at all/,
  ],
  [
    "SidecarSetsUnguarded",
    "Ignore for SidecarSets",
    withWebhook(IN_ORDER, "msidecarset.kb.io", { failurePolicy: "Ignore" }),
    /without its hashes/,
  ],
  [
    "WritesNotAnnounced",
    "OpenKruise's path",
    withWebhook(IN_ORDER, "vsidecarset.kb.io", {
      clientConfig: { url: "https://webhooks.example.com/validate-apps-kruise-io-sidecarset" },
    }),
    /all are listed for each new pod/,
  ],
  ["TimeoutLong", "30 seconds", withWebhook(IN_ORDER, POD, { timeoutSeconds: 30 }), /timeoutSeconds 30/],
  ["TimeoutShort", "1 second", withWebhook(IN_ORDER, POD, { timeoutSeconds: 1 }), /cold start/],
  ["Reinvoked", "IfNeeded", withWebhook(IN_ORDER, POD, { reinvocationPolicy: "IfNeeded" }), /IfNeeded/],
  ["SideEffects", "Unknown", withWebhook(IN_ORDER, POD, { sideEffects: "Unknown" }), /dry run/],
  [
    "MatchPolicyExact",
    "one version",
    withWebhook(IN_ORDER, "vsidecarset.kb.io", {
      matchPolicy: "Exact",
      rules: [
        {
          operations: ["CREATE", "UPDATE"],
          apiGroups: ["apps.kruise.io"],
          apiVersions: ["v1beta1"],
          resources: ["sidecarsets"],
        },
      ],
    }),
    /written as v1alpha1/,
  ],
];
