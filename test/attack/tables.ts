/** The tables of attacks, each with the tests that try the attacks. */

/** The place where a table's tests run: in this process, on a real control plane, or in a browser. */
export type Part = "here" | "control plane" | "page";

export interface Table {
  readonly title: string;
  readonly part: Part;
  /** file → pattern for the full names of its tests that are attacks; "fuzz": counts of `npm run fuzz` */
  readonly files: Readonly<Record<string, RegExp>> | "fuzz";
}

const ALL = /^/;

/** Tables by the means of an attacker: first the ports, then a pod, then a leaked or restricted credential. */
export const TABLES: readonly Table[] = [
  {
    title: "methods and targets, on every port and answerer",
    part: "here",
    files: { "test/security/doors.slow.ts": /^every method/, "test/security/odd-packets.slow.ts": /^each door/ },
  },
  {
    title: "odd packets of strangers",
    part: "here",
    files: { "test/security/odd-packets.slow.ts": /^no packet/ },
  },
  {
    title: "connections that send too little, too much, or are too many",
    part: "here",
    files: {
      "test/security/doors.slow.ts": /^(?:callers that send nothing|bodies that never end|of 2,100 connections)/,
      "test/webhook/https-authentication.test.ts": /announces gigabytes/,
    },
  },
  {
    title: "requests that almost prove who they are",
    part: "here",
    files: {
      "test/webhook/authenticate.test.ts":
        /request of any other shape|proof of another mode|a file that|is valid for that path and for no other/,
      "test/webhook/https-authentication.test.ts": /answered with 401|no effect in the other modes/,
      "test/webhook/ui.slow.ts": /refuses/,
    },
  },
  {
    title: "certificates by way of a load balancer or a gateway",
    part: "here",
    files: { "test/lambda/doors.test.ts": /^client certificates(?!.*is accepted)|is answered with 401$/ },
  },
  { title: "hostile bodies", part: "here", files: { "test/security/hostile-bodies.slow.ts": ALL } },
  { title: "broken bodies", part: "here", files: "fuzz" },
  {
    title: "pods made to keep the webhook computing",
    part: "here",
    files: {
      "test/security/hostile-pods.slow.ts": ALL,
      "test/security/beside-hostile-pods.slow.ts": ALL,
      "test/core/inject/resources-policy.test.ts": /more than 63 characters/,
    },
  },
  {
    title: "objects too large or too deep",
    part: "here",
    files: { "test/webhook/object-size.test.ts": /is refused$/ },
  },
  {
    title: "lines of the log that others would write",
    part: "here",
    files: { "test/shared/log.test.ts": /^texts that others chose/, "test/security/doors.slow.ts": /fills no log/ },
  },
  {
    title: "names that would be part of a call's path",
    part: "here",
    files: { "test/kube/client.slow.ts": /^invalid names:/ },
  },
  {
    title: "a tenant's pods against the rollouts of others",
    part: "here",
    files: {
      "test/core/halt/witnesses.test.ts": ALL,
      "test/core/halt/halt-room.test.ts": ALL,
      "test/core/halt/undo-target.test.ts": ALL,
      "test/security/hostile-namespace.test.ts": ALL,
      "test/security/tenants.slow.ts": ALL,
      "test/core/upgrade/never-ready.test.ts": ALL,
      "test/security/hostile-records.test.ts": ALL,
    },
  },
  {
    title: "pods to which the API server, a policy or a webhook refuses writes",
    part: "here",
    files: {
      "test/controller/refused-pods.test.ts": ALL,
      "test/controller/write-pods.test.ts": /refused by|^fences: a fence that is refused/,
    },
  },
  {
    title: "evictions that are refused, by one tenant's budgets and webhooks",
    part: "here",
    files: {
      "test/controller/evict-missed.test.ts": /second budget for the same pod|has not processed/,
      "test/controller/missed-evictions.test.ts": /one tenant's 250 pods/,
      "test/controller/eviction-writes.test.ts": /webhook answers 404|blocks an eviction/,
    },
  },
  {
    title: "a tenant's StatefulSets, nodes and quotas against the rollouts of others",
    part: "here",
    files: {
      "test/core/upgrade/ordinals.test.ts": /another namespace/,
      "test/core/pre-pull.test.ts": /while the kubelet runs the old one/,
      "test/core/upgrade/resize.test.ts":
        /whose resize is refused|defers its resize|cannot do its resize|forged resize/,
    },
  },
  {
    title: "long texts of a tenant, made to keep their reader computing",
    part: "here",
    files: {
      "test/security/long-texts.test.ts": /grows only linearly|at most 100 characters|hide nothing between/,
      "test/core/disruption/guard.test.ts": /same selected labels need no more/,
      "test/core/lib/rfc3339.test.ts": /(?:before year 0|past year 9999) is refused/,
    },
  },
  {
    title: "Advanced StatefulSets with more pods than anybody needs",
    part: "here",
    files: { "test/security/large-sets.test.ts": ALL },
  },
  {
    title: "names that would be part of a printed command",
    part: "here",
    files: { "test/core/pod/workload.test.ts": /the name of the owner is invalid/ },
  },
  {
    title: "a status in a new pod's manifest",
    part: "here",
    files: { "test/webhook/pod-admission.test.ts": /because the API server resets it/ },
  },
  {
    title: "one tenant that wants the share of all",
    part: "here",
    files: {
      "test/core/container-recreate/choose-requests.test.ts": /200 endless requests|another namespace/,
      "test/controller/launch-looks.test.ts": /^a thousand/,
      "test/controller/fair-turns.test.ts": /delay no other namespace$/,
      "test/webhook/hints.test.ts": /names only SidecarSets that exist|at most 20 messages|over the share/,
      "test/webhook/connection-shares.test.ts": ALL,
      "test/webhook/http-body.test.ts": /^the limit of 64 MiB/,
      "test/security/large-pods.test.ts": ALL,
    },
  },
  {
    title: "one tenant that wants the share of all, beside a real API server",
    part: "control plane",
    files: {
      "test/e2e/tenants.e2e.ts": ALL,
      "test/e2e/stuck.e2e.ts": /annotations are at the size limit/,
      "test/e2e/replace.e2e.ts": /a PodDisruptionBudget that allows no disruption/,
      "test/e2e/status-hints.e2e.ts": /while the webhook does not answer$/,
    },
  },
  {
    title: "announcements of what never was",
    part: "here",
    files: { "test/webhook/sidecarset-reader.test.ts": /claims to replace a version/ },
  },
  {
    title: "dry runs that would write",
    part: "here",
    files: {
      "test/controller/functions.slow.ts": /^dry-run makes no pass/,
      "test/kube/read-only.test.ts": ALL,
      "test/lambda/dry-run-token.test.ts": ALL,
    },
  },
  {
    title: "revisions that somebody else has put there",
    part: "here",
    files: {
      "test/security/planted-revisions.test.ts": ALL,
      "test/webhook/cluster-view.test.ts": /a foreign one is not$/,
    },
  },
  {
    title: "pods that ask for a sidecar's privileges, or tell the log",
    part: "here",
    files: { "test/security/threats.test.ts": ALL },
  },
  {
    title: "what steers a sidecar, or hides it, and is warned of",
    part: "here",
    files: { "test/webhook/admission-warnings.test.ts": /gets (?:a|no) warning/ },
  },
  {
    title: "gates at private, link-local and credential addresses",
    part: "here",
    files: {
      "test/gate/ask-gate.test.ts":
        /does not allow|is not asked|may not be the address|may be the address of a private gate|refuses/,
      "test/security/hidden-addresses.test.ts": ALL,
    },
  },
  {
    title: "secrets in the log, in answers, in crashes and on the screen",
    part: "here",
    files: {
      "test/security/canaries.slow.ts": ALL,
      "test/cli/path-secret.slow.ts": ALL,
      "test/shared/log.test.ts": /is not shown/,
    },
  },
  {
    title: "typos of who installs it",
    part: "here",
    files: { "test/cli/bad-input.slow.ts": ALL, "test/shared/config.test.ts": /is refused in one sentence/ },
  },
  {
    title: "writes of the reconciler that the fence forbids",
    part: "control plane",
    files: { "test/e2e/fence.e2e.ts": /^the reconciler may not|is allowed with its role, and no other write is$/ },
  },
  {
    title: "requests that the roles forbid",
    part: "control plane",
    files: { "test/e2e/rbac.e2e.ts": ALL },
  },
  {
    title: "strangers beside a real API server",
    part: "control plane",
    files: { "test/e2e/authentication.e2e.ts": /no caller without this proof is answered$/ },
  },
  {
    title: "texts that would run in the page",
    part: "page",
    files: { "test/page/report.page.ts": /^what a cluster's objects contain/ },
  },
];
