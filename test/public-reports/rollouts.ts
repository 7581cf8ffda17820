/** Tries public reports about upgrades, with the library and with passes. */
import { expect } from "vitest";
import { diff } from "../../functions/library/diff.ts";
import { hash } from "../../functions/library/hash.ts";
import { preview } from "../../functions/library/preview.ts";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import type { UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { newPassMemory, runPass } from "../../shared/controller/pass.ts";
import { planRollout } from "../../shared/core/rollout/plan/plan.ts";
import type { RolloutPlan } from "../../shared/core/rollout/plan/planned-step.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { NAMESPACES, PODS } from "../../shared/kube/port.ts";
import { readYaml } from "../../shared/kube/yaml.ts";
import { bareRollout } from "../controller/bare-rollout.ts";
import { KRUISE_NAMESPACE } from "../controller/fixture.ts";
import { sharedClock, steppedClock } from "../controller/stepped-clock.ts";
import { newPod } from "../support/objects.ts";
import { CONTEXT, podOf, sidecarSetOf, UNTOUCHED } from "../support/rollout-fixture.ts";
import { set } from "./manifests.ts";

const WEB = newPod({ name: "web", namespace: "default", labels: { app: "web" } }, { containers: [] });
const PASS = {
  deadlineMs: 5_000,
  kruiseNamespace: KRUISE_NAMESPACE,
  sidecarSet: "web",
  follow: false,
  settings: DEFAULT_ROLLOUT_SETTINGS,
} as const;

const parsed = (text: string) => readYaml(text)[0]?.value as KubernetesObject;
const agent = (resources: string, image = "agent:1") =>
  parsed(set(`{name: agent, image: "${image}", resources: ${resources}}`));

/** Returns a plan over pods that are not updated. */
function planned(count: number, updateStrategy: UpdateStrategy): RolloutPlan {
  const pods = Array.from({ length: count }, (_, index) => podOf({ name: `web-${index}` }));
  const observation = { sidecarSet: sidecarSetOf({ updateStrategy }), pods, revisions: [], ...UNTOUCHED };
  return planRollout(observation, { ...CONTEXT, readyAfterSeconds: 5 });
}

export const ROLLOUTS = {
  "quantities that are equal": () => {
    const [before, after] = [
      agent(`{requests: {memory: 1000M, cpu: 1000m}, limits: {cpu: 2.0, memory: 1024Mi}}`),
      agent(`{requests: {memory: 1G, cpu: 1}, limits: {cpu: "2", memory: 1Gi}}`),
    ];
    expect(hash(after)).toEqual(hash(before));
    expect(diff({ before, after, pods: [] }).changes).toEqual([]);
  },
  "a small share of few pods": () => {
    const { steps, isComplete } = planned(6, { maxUnavailable: "5%" });
    expect([steps.map(({ pods }) => pods.length), isComplete]).toEqual([[1, 1, 1, 1, 1, 1], true]);
  },
  "a partition as large as the number of pods": () => {
    const { steps, after } = planned(3, { partition: 3, maxUnavailable: 3 });
    expect([steps, after]).toMatchObject([[], { updated: 0 }]);
  },
  "more than an image changes": () => {
    const [before, after] = [agent("{limits: {cpu: 100m}}"), agent("{limits: {cpu: 200m}}", "agent:2")];
    const { pod } = preview({ object: WEB, sidecarSets: [before], now: "2026-01-02T03:04:05Z" }) as {
      readonly pod: Pod;
    };
    expect(diff({ before, after, pods: [pod] }).pods).toMatchObject([
      { kind: "recreate", fields: ["spec.containers{agent}.resources"] },
    ]);
  },
  "a pod that is deleted while it is updated": async () => {
    const on = bareRollout("web", undefined, { ...steppedClock(), ...sharedClock() });
    on.server.put("test", NAMESPACES, { metadata: { name: "default", uid: "default" } });
    on.deploy(3, { maxUnavailable: 1 });
    on.release(2, { maxUnavailable: 1 });
    const pass = () => runPass(on.cluster, { ...PASS, clock: on.clock, memory: newPassMemory() });
    await pass();
    const written = [0, 1, 2].filter((index) => on.readPod(index).spec.containers[1]?.image?.endsWith(":2"));
    expect(written).toHaveLength(1);
    on.server.remove("user", PODS, on.readPod(written[0] ?? 0));
    await pass();
    expect(on.versions()).toBe("2 1");
  },
} as const;
