/** Installations with a fault in the registration. */
import type { Facts } from "../../../shared/core/inspect/check/facts.ts";
import { registrations } from "../../../shared/install/manifests.ts";
import { IN_ORDER, type Row, seen, setOf, withSets, withWebhook } from "./fixture.ts";

const POD = "mpod.kb.io";
export const IN_FILES = seen(
  registrations({ url: "https://webhooks.example.com" }, { staticPart: "cluster" }).filter(
    ({ kind }) => kind === "MutatingWebhookConfiguration",
  ),
);
const withoutSetWebhook = { ...IN_ORDER, validating: seen([]) };

export const withGate = (facts: Facts): Facts => ({
  ...facts,
  settings: { ...facts.settings, KruisePodReadinessGate: true },
});

export const REGISTRATION: readonly Row[] = [
  [
    "NotLookedAt",
    "listing pods is forbidden",
    { ...IN_ORDER, pods: { why: "pods is forbidden" } },
    /the pods could not be looked at: pods is forbidden/,
  ],
  ["PodWebhookMissing", "no mutating webhook is registered", { ...IN_ORDER, mutating: seen([]) }, /no webhook of ours/],
  [
    "RegisteredInFiles",
    "no webhook can be seen, and a pod in a dry run gets its sidecars",
    { ...IN_ORDER, mutating: seen([]), podTrial: seen({ kind: "admitted" }) },
    /by a file of that API server, or by a compiled policy/,
  ],
  [
    "RegisteredInFiles",
    "an empty registration names files of API servers, and no pod can be tried",
    { ...IN_ORDER, mutating: IN_FILES },
    /nobody knows from here whether they do/,
  ],
  [
    "PodWebhookMissing",
    "an empty registration names files of API servers, and a pod in a dry run gets no sidecars",
    { ...IN_ORDER, mutating: IN_FILES, podTrial: seen({ kind: "untouched" }) },
    /read the registration from files, as an empty one says, but a pod/,
  ],
  [
    "ApiServerNotAnswered",
    "a webhook in files of API servers does not answer",
    { ...IN_ORDER, mutating: seen([]), podTrial: seen({ kind: "unanswered", message: "connection refused" }) },
    /tried to create a pod: connection refused/,
  ],
  ["SidecarSetWebhookMissing", "no validating webhook is registered", withoutSetWebhook, /no validating webhook/],
  [
    "PlaceholderAddress",
    "the address is the placeholder of the file",
    withWebhook(IN_ORDER, POD, { clientConfig: { url: "https://sidecarset-webhooks.invalid/mutate-pod" } }),
    /placeholder/,
  ],
  [
    "NotInForce",
    "a SidecarSet in a dry run gets no hashes",
    { ...IN_ORDER, trial: seen({ kind: "untouched" }) },
    /got no hashes/,
  ],
  [
    "ApiServerNotAnswered",
    "the API server reports that the webhook did not answer",
    { ...IN_ORDER, trial: seen({ kind: "unanswered", message: "connection refused" }) },
    /connection refused/,
  ],
  [
    "SidecarSetNotAsked",
    "the webhook leaves out all namespaces of the SidecarSet",
    withWebhook(
      withSets([setOf("ss", { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "kube-system" } } })]),
      POD,
      {},
    ),
    /leaves out kube-system/,
  ],
  [
    "SidecarSetNotAsked",
    "the objectSelector of the webhook wants other labels",
    withWebhook(IN_ORDER, POD, { objectSelector: { matchLabels: { app: "other" } } }),
    /objectSelector wants other labels/,
  ],
  [
    "SidecarSetPartlyAsked",
    "the SidecarSet names a namespace that the webhook leaves out",
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
    "the objectSelector of the webhook wants one more label",
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
    "the match condition was generated for another SidecarSet",
    { ...IN_ORDER, sidecarSets: seen([setOf("ss", { selector: { matchLabels: { app: "new" } } })]) },
    /made before the SidecarSet/,
  ],
  [
    "ConditionStale",
    "every pod needs the readiness gate",
    withGate(IN_ORDER),
    /KruisePodReadinessGate, which is for every pod/,
  ],
  [
    "ConditionUnknown",
    "the webhook has an unknown match condition",
    withWebhook(IN_ORDER, POD, { matchConditions: [{ name: "not-on-mondays", expression: "true" }] }),
    /not-on-mondays/,
  ],
  [
    "EveryPodAsked",
    "the webhook has no match condition",
    withWebhook(IN_ORDER, POD, { matchConditions: [] }),
    /every new pod/,
  ],
  [
    "KubeSystemAsked",
    "no selector leaves out kube-system",
    withWebhook(IN_ORDER, POD, { namespaceSelector: {} }),
    /kube-system/,
  ],
  ["FailsOpen", "the failurePolicy is Ignore", IN_ORDER, /without their sidecars/],
  [
    "FailsClosed",
    "the failurePolicy is Fail and there is a match condition",
    withWebhook(IN_ORDER, POD, { failurePolicy: "Fail" }),
    /that it is asked about are not created/,
  ],
  [
    "FailsClosedForAll",
    "the failurePolicy is Fail and there is no match condition",
    withWebhook(IN_ORDER, POD, { failurePolicy: "Fail", matchConditions: [], objectSelector: {} }),
    /no pod at all/,
  ],
  [
    "SidecarSetsUnguarded",
    "the failurePolicy for SidecarSets is Ignore",
    withWebhook(IN_ORDER, "msidecarset.kb.io", { failurePolicy: "Ignore" }),
    /without its hashes/,
  ],
  [
    "WritesNotAnnounced",
    "the webhook has OpenKruise's path",
    withWebhook(IN_ORDER, "vsidecarset.kb.io", {
      clientConfig: { url: "https://webhooks.example.com/validate-apps-kruise-io-sidecarset" },
    }),
    /all are listed for each new pod/,
  ],
  ["TimeoutLong", "timeoutSeconds is 30", withWebhook(IN_ORDER, POD, { timeoutSeconds: 30 }), /timeoutSeconds 30/],
  ["TimeoutShort", "timeoutSeconds is 1", withWebhook(IN_ORDER, POD, { timeoutSeconds: 1 }), /cold start/],
  [
    "Reinvoked",
    "the reinvocationPolicy is IfNeeded",
    withWebhook(IN_ORDER, POD, { reinvocationPolicy: "IfNeeded" }),
    /IfNeeded/,
  ],
  ["SideEffects", "sideEffects is Unknown", withWebhook(IN_ORDER, POD, { sideEffects: "Unknown" }), /dry run/],
  [
    "MatchPolicyExact",
    "the matchPolicy is Exact with one version",
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
