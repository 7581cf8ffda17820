import fc from "fast-check";
import { expect, test } from "vitest";
import type { Container, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { admitPod } from "../../shared/core/injection/admit-pod.ts";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { createLog } from "../../shared/log.ts";
import { readConfig } from "../../shared/settings/config.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import { ATTACK_TIMES, addAttacks } from "../support/attacks.ts";
import { newPod } from "../support/objects.ts";

const AGENT = {
  name: "agent",
  image: "agent:1",
  securityContext: { runAsNonRoot: true, allowPrivilegeEscalation: false },
  volumeMounts: [{ name: "logs", mountPath: "/logs" }],
  shareVolumePolicy: { type: "enabled" },
  transferEnv: [{ sourceContainerName: "main", envName: "A" }],
};
const sidecarSet = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: {
    name: "set",
    annotations: { "kruise.io/sidecarset-hash": "h", "kruise.io/sidecarset-hash-without-image": "h" },
  },
  spec: {
    selector: { matchLabels: { app: "web" } },
    containers: [AGENT],
    volumes: [{ name: "logs", emptyDir: {} }],
    patchPodMetadata: [{ patchPolicy: "Overwrite", annotations: { a: "b" } }],
  },
} as unknown as SidecarSet;
const index = indexSidecarSets([sidecarSet]);
const { featureGates: gates, kruiseNamespace } = readConfig({});
const resource = { group: "", version: "v1", resource: "pods" };
const admit = (object: Pod) =>
  admitPod(
    { uid: "u", resource, operation: "CREATE", namespace: "default", object },
    { index, namespace: { metadata: { name: "default" } }, revisions: [] },
    { now: "2026-01-02T03:04:05Z", random: () => 0, kruiseNamespace, gates },
  );

/** Annotations that everybody who can create pods may write. */
const KEYS = [
  "kruise.io/sidecarset-injected-list",
  "kruise.io/sidecarset-hash",
  "kruise.io/sidecarset-working-hotupgrade-container",
  "kruise.io/sidecarset-inplace-update-state",
  "apps.kruise.io/container-launch-priority",
  "version.sidecarset.kruise.io/agent",
];
const text = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.constantFrom("true", "set", '{"set":{}}', "Ordered", "agent", "privileged"),
);
const env = fc.array(fc.record({ name: fc.constantFrom("A", "KRUISE_CONTAINER_PRIORITY", "X"), value: text }), {
  maxLength: 3,
});
const mounts = fc.array(
  fc.record({ name: fc.constantFrom("host", "logs", "data"), mountPath: fc.constantFrom("/logs", "/host", "/") }),
  { maxLength: 3 },
);
const hostilePods = fc.record({
  metadata: fc.record({
    name: fc.constant("p"),
    labels: fc.constant({ app: "web" }),
    annotations: fc.dictionary(fc.oneof(fc.constantFrom(...KEYS), fc.string({ maxLength: 10 })), text, { maxKeys: 5 }),
  }),
  spec: fc.record({
    containers: fc.array(
      fc.record({
        name: fc.constantFrom("main", "other", "third"),
        image: text,
        env,
        volumeMounts: mounts,
        securityContext: fc.constantFrom({}, { privileged: true }, { capabilities: { add: ["SYS_ADMIN"] } }),
      }),
      { minLength: 1, maxLength: 3 },
    ),
    volumes: fc.constant([
      { name: "host", hostPath: { path: "/" } },
      { name: "data", emptyDir: {} },
    ]),
  }),
}) as unknown as fc.Arbitrary<Pod>;

const RUNS = 500 * ATTACK_TIMES;

test("no content of a pod gives an injected container more privileges than its SidecarSet gives", () => {
  let injected = 0;
  let tried = 0;
  fc.assert(
    fc.property(hostilePods, (pod) => {
      tried++;
      const admission = admit(pod);
      if (admission.kind === "denied" || admission.object === undefined) return;
      const { spec } = admission.object as Pod;
      const own = new Set(pod.spec?.containers.map(({ name }) => name));
      const added = (spec?.containers ?? []).filter(({ name }) => !own.has(name));
      expect(added.map(({ name, image }) => [name, image])).toEqual([["agent", "agent:1"]]);
      expect((added[0] as unknown as typeof AGENT).securityContext).toEqual(AGENT.securityContext);
      const { containers, volumes, initContainers, ...rest } = spec as unknown as Record<string, unknown>;
      const { containers: _, volumes: __, initContainers: ___, ...before } = pod.spec as unknown as typeof rest;
      expect(rest).toEqual(before);
      injected++;
    }),
    { numRuns: RUNS },
  );
  addAttacks(tried);
  process.stdout.write(`${injected} hostile pods injected, with no privilege too many\n`);
  expect(injected).toBeGreaterThan(tried / 20);
});

test("the log contains no variable, annotation or argument of a pod at any level", async () => {
  const contained = ["env-value-of-a-pod", "annotation-of-a-pod", "argument-of-a-pod"];
  const [value = "", annotation = "", argument = ""] = contained;
  const object = newPod(
    {
      name: "web",
      labels: { app: "web" },
      annotations: { a: annotation },
    },
    { containers: [{ name: "main", image: "i", env: [{ name: "A", value }], args: [argument] } as Container] },
  );
  const lines: string[] = [];
  const fail = () => {
    throw new Error("out of order");
  };
  const admissions = { "/decided": ({ object }: { object?: unknown }) => admit(object as Pod), "/failed": fail };
  const answer = webhookApp({
    log: createLog("debug", (line) => lines.push(line)),
    isKnown: async () => true,
    admissions,
  });
  const other = { ...object, metadata: { ...object.metadata, labels: { app: "other" } } };
  const bodies = [object, other].map((each) =>
    JSON.stringify({
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      request: { uid: "u", operation: "CREATE", resource, namespace: "default", name: "web", object: each },
    }),
  );
  for (const path of Object.keys(admissions)) {
    for (const body of bodies) {
      const headers = { "content-type": "application/json" };
      await answer({ method: "POST", path, query: "", headers, readBody: async () => body });
    }
  }
  expect(lines.length).toBeGreaterThanOrEqual(4);
  for (const each of contained) expect(lines.join("")).not.toContain(each);
});
