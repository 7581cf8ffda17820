import { expect, test } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { ControllerRevision } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { readConfig } from "../../shared/settings/config.ts";
import { podAdmission } from "../../shared/webhook/handlers/pod-admission.ts";
import type { ClusterView } from "../../shared/webhook/view/cluster-view.ts";

const { kruiseNamespace, featureGates } = readConfig({});

/** Both name the revision of the first. */
const sidecarSets = ["a", "b"].map(
  (name): SidecarSet => ({
    metadata: { name, uid: `uid-${name}` },
    spec: {
      selector: { matchLabels: { [name]: "yes" } },
      containers: [{ name, image: `${name}:2` }],
      injectionStrategy: { revision: { revisionName: "a-1" } },
    },
  }),
);
const revision = {
  apiVersion: "apps/v1",
  kind: "ControllerRevision",
  metadata: {
    name: "a-1",
    namespace: kruiseNamespace,
    ownerReferences: [{ apiVersion: "v1", kind: "SidecarSet", name: "a", uid: "uid-a", controller: true }],
  },
  revision: 1,
  data: { spec: { containers: [{ name: "a", image: "a:1" }] } },
} as ControllerRevision;
const view = {
  listSidecarSets: () => ({ value: { sidecarSets, index: indexSidecarSets(sidecarSets) } }),
  getNamespace: () => ({ value: undefined }),
  getConfigMap: () => ({ value: undefined }),
  findRevisions: () => ({ value: [revision] }),
} satisfies ClusterView;

const admissionOf = (labels: Record<string, string>) =>
  podAdmission({ view, kruiseNamespace, featureGates })({
    uid: "u",
    operation: "CREATE",
    namespace: "default",
    resource: { group: "", version: "v1", resource: "pods" },
    object: { metadata: { labels }, spec: { containers: [{ name: "main" }] } },
  } as AdmissionRequest);

test("the revision of another SidecarSet is not found, whether or not that one is injected as well", async () => {
  expect(await admissionOf({ a: "yes" })).toMatchObject({ kind: "allowed" });
  const refused = { kind: "denied", message: expect.stringContaining('"a-1" not found') };
  expect(await admissionOf({ b: "yes" })).toMatchObject(refused);
  expect(await admissionOf({ a: "yes", b: "yes" })).toMatchObject(refused);
});
