/** Tests that a change of a sidecar's values reaches running pods: injection, hash, writes, and the end. */
import { describe, expect, it } from "vitest";
import type { ContainerStatus, ControllerRevision, EnvVar, Pod } from "../../../shared/api/kubernetes.ts";
import {
  HALT_ON_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IN_PLACE_ANNOTATION,
  UNDO_ON_HALT_ANNOTATION,
} from "../../../shared/api/names.ts";
import type { SidecarContainer, SidecarSet } from "../../../shared/api/sidecarset.ts";
import { injectSidecarSets } from "../../../shared/core/injection/inject-sidecar-sets.ts";
import { diffSidecarSets } from "../../../shared/core/inspect/diff/diff.ts";
import { specChanges } from "../../../shared/core/inspect/diff/spec-changes.ts";
import { canBeUpdated, hasOtherValues, isUpgradable, podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { valuesInPlace } from "../../../shared/core/pod/values-in-place.ts";
import { hasForeignValues } from "../../../shared/core/pod/values-record.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { planUndo } from "../../../shared/core/rollout/rules/halt/standstill.ts";
import { immutableFields } from "../../../shared/core/rollout/upgrade/immutable-fields.ts";
import { planUpgrade } from "../../../shared/core/rollout/upgrade/plan-upgrade.ts";
import { projectPod } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import { mutateSidecarSet } from "../../../shared/core/sidecarset/mutate.ts";
import { newRevision } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { restoreRevision } from "../../../shared/core/sidecarset/revision/restore-revision.ts";
import { sidecarSetErrors } from "../../../shared/core/sidecarset/validate/sidecarset.ts";
import { newPod } from "../../support/objects.ts";

const NOW = "2026-11-30T10:00:00Z";
const IN_PLACE = { [IN_PLACE_ANNOTATION]: "Values" };
const LEVEL = "log-agent.value.sidecarset.kruise.io/agent.LEVEL";
const RECORD = "values.sidecarset.kruise.io/log-agent";
const DIGEST = `sha256:${"0".repeat(64)}`;

interface Given {
  readonly env?: readonly EnvVar[];
  readonly image?: string;
  readonly fields?: Partial<SidecarContainer>;
  readonly annotations?: Readonly<Record<string, string>>;
}

const PORTS = { ports: [{ containerPort: 80 }] } as Partial<SidecarContainer>;

/** Returns a SidecarSet as the webhook stores it. */
function stored({
  env = [{ name: "LEVEL", value: "info" }],
  image = "agent:1",
  fields,
  annotations = IN_PLACE,
}: Given = {}) {
  const object = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: "log-agent", uid: "s", annotations },
    spec: { selector: { matchLabels: { app: "web" } }, containers: [{ name: "agent", image, env, ...fields }] },
  };
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  const admission = mutateSidecarSet({ uid: "1", operation: "CREATE", resource, object });
  if (admission.kind !== "allowed" || !admission.object) throw new Error(JSON.stringify(admission));
  return admission.object as SidecarSet;
}

/** Returns a running pod that the SidecarSet injected. */
function running(sidecarSet: SidecarSet, status: Partial<ContainerStatus> = {}): Pod {
  const requested = newPod({ name: "a", namespace: "shop", uid: "u", resourceVersion: "7", labels: { app: "web" } });
  const pod = injectSidecarSets(requested, [sidecarSet], { now: NOW, namespace: "shop", sortContainersByName: false });
  if ("message" in pod) throw new Error(pod.message);
  const started = { running: { startedAt: "2026-11-30T09:00:00Z" } };
  const containerStatuses = pod.spec.containers.map(({ name, image = "" }) => ({
    ...{ name, image: `docker.io/library/${image}`, imageID: `docker.io/library/${image.split(":")[0]}@${DIGEST}` },
    ...{ ready: true, containerID: `containerd://${name}-1`, state: started },
    ...(name === "agent" ? status : {}),
  }));
  return { ...pod, status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }], containerStatuses } };
}

/** Returns the pod after the write that updates it to the SidecarSet, as a pass sees it. */
function upgraded(pod: Pod, sidecarSet: SidecarSet, now = NOW): Pod {
  const plan = planUpgrade(projectPod(pod, sidecarSet), sidecarSet, { now, latestRevision: "log-agent-2" });
  if (plan.kind === "refused") throw new Error(plan.message);
  const containers = pod.spec.containers.map((container, index) => {
    const change = plan.images.find((one) => one.index === index);
    return change ? { ...container, image: change.to } : container;
  });
  const annotations = { ...pod.metadata?.annotations, ...plan.annotations };
  return { ...pod, metadata: { ...pod.metadata, annotations }, spec: { ...pod.spec, containers } };
}

function withStatus(pod: Pod, status: Partial<ContainerStatus>): Pod {
  const containerStatuses = (pod.status?.containerStatuses ?? []).map((one) =>
    one.name === "agent" ? { ...one, ...status } : one,
  );
  return { ...pod, status: { ...pod.status, containerStatuses } };
}

const agentOf = (pod: Pod) => pod.spec.containers.find(({ name }) => name === "agent");
const withoutImage = ({ metadata }: SidecarSet) => metadata?.annotations?.[HASH_WITHOUT_IMAGE_ANNOTATION];
const warn = [{ name: "LEVEL", value: "warn" }];

describe("injection", () => {
  it("a literal value is injected as a reference to an annotation of the pod that holds it", () => {
    const pod = running(stored());
    const fieldPath = `metadata.annotations['${LEVEL}']`;
    expect(agentOf(pod)?.env?.[0]).toEqual({ name: "LEVEL", valueFrom: { fieldRef: { fieldPath } } });
    expect(pod.metadata?.annotations).toMatchObject({ [LEVEL]: "info", [RECORD]: expect.stringContaining("digest") });
  });

  it("injection is unchanged without the annotation, or if the annotation has another value", () => {
    for (const annotations of [{}, { [IN_PLACE_ANNOTATION]: "values" }]) {
      const pod = running(stored({ annotations }));
      expect(agentOf(pod)?.env?.[0]).toEqual({ name: "LEVEL", value: "info" });
      expect(Object.keys(pod.metadata?.annotations ?? {})).toHaveLength(3);
    }
  });

  it("a pod's author cannot set a sidecar's value", () => {
    const sidecarSet = stored();
    const requested = newPod({ name: "a", annotations: { [LEVEL]: "mine" } });
    const pod = injectSidecarSets(requested, [sidecarSet], { now: NOW, namespace: "x", sortContainersByName: false });
    expect("message" in pod ? pod : pod.metadata?.annotations?.[LEVEL]).toBe("info");
  });

  it("a pod whose annotations have no room for the values gets them as literals, and counts as a pod from before the opt-in", () => {
    const sidecarSet = stored({ env: [{ name: "LEVEL", value: "x".repeat(30_000) }] });
    const injectedBeside = (bytes: number): Pod => {
      const requested = newPod({ name: "a", labels: { app: "web" }, annotations: { own: "y".repeat(bytes) } });
      const options = { now: NOW, namespace: "shop", sortContainersByName: false };
      const pod = injectSidecarSets(requested, [sidecarSet], options);
      if ("message" in pod) throw new Error(pod.message);
      return pod;
    };
    const [roomy, full] = [injectedBeside(180_000), injectedBeside(240_000)];
    expect(agentOf(roomy)?.env?.[0]).toHaveProperty("valueFrom");
    expect(agentOf(full)?.env?.[0]).toEqual(sidecarSet.spec.containers?.[0]?.env?.[0]);
    for (const { metadata } of [roomy, full])
      expect(
        Buffer.byteLength(
          Object.entries(metadata?.annotations ?? {})
            .flat()
            .join(""),
        ),
      ).toBeLessThan(262_144);
    const changed = stored({ env: warn });
    expect([roomy, full].map((pod) => podStateOf(pod, sidecarSet, undefined).isUpdated)).toEqual([true, true]);
    expect([roomy, full].map((pod) => podStateOf(pod, changed, undefined).isUpdated)).toEqual([false, false]);
    expect([roomy, full].map((pod) => isUpgradable(pod, changed))).toEqual([true, false]);
  });

  it("SidecarSets share the room in annotations in order, so no pod is refused for its size", () => {
    const named = (name: string): SidecarSet => {
      const one = stored({ env: [{ name: "LEVEL", value: "x".repeat(30_000) }], fields: { name: `agent-${name}` } });
      return { ...one, metadata: { ...one.metadata, name } };
    };
    const names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    const options = { now: NOW, namespace: "shop", sortContainersByName: false };
    const pod = injectSidecarSets(newPod({ name: "a", labels: { app: "web" } }), names.map(named), options);
    if ("message" in pod) throw new Error(pod.message);
    const inPlace = pod.spec.containers.filter(({ env }) => env?.[0]?.valueFrom !== undefined);
    expect(inPlace.length).toBeGreaterThan(5);
    expect(inPlace.length).toBeLessThan(9);
    expect(
      Buffer.byteLength(
        Object.entries(pod.metadata?.annotations ?? {})
          .flat()
          .join(""),
      ),
    ).toBeLessThan(262_144);
  });

  const literal: readonly (readonly [string, readonly EnvVar[]])[] = [
    ["a value that names another variable", [{ name: "A", value: "http://$(HOST)" }]],
    [
      "a variable that occurs twice",
      [
        { name: "A", value: "1" },
        { name: "A", value: "2" },
      ],
    ],
    [
      "a variable that controllers read from the spec",
      [{ name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", value: "true" }],
    ],
    ["a value from a Secret", [{ name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }]],
  ];
  it.each(literal)("%s stays as written", (_what, env) => {
    expect(agentOf(running(stored({ env })))?.env?.slice(0, env.length)).toEqual(env);
  });

  it("the two containers of a hot upgrade keep their literal values", () => {
    const fields = { upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "empty:1" } };
    expect(valuesInPlace(stored({ fields }))?.values).toEqual({});
  });

  it("a doubled dollar sign is written as kubelets would expand it", () => {
    const { values } = valuesInPlace(stored({ env: [{ name: "A", value: "$$(B) costs 5$$ or 5$" }] })) ?? {};
    expect(Object.values(values ?? {})).toEqual(["$(B) costs 5$ or 5$"]);
  });

  it("every name of a variable becomes a valid annotation key of its own", () => {
    const names = ["_A", "A_", "my var", "x".repeat(300), `${"x".repeat(299)}y`, "ä", "A.b-c"];
    const { values } = valuesInPlace(stored({ env: names.map((name) => ({ name, value: name })) })) ?? {};
    const keys = Object.keys(values ?? {});
    expect(keys).toHaveLength(names.length);
    for (const key of keys) expect(key.split("/")[1]).toMatch(/^[A-Za-z0-9][-._A-Za-z0-9]{0,61}[A-Za-z0-9]$/);
  });
});

describe("hashes and revisions", () => {
  it("a change of only values changes the release hash, and not the hash that decides about updates in place", () => {
    const [one, other] = [stored(), stored({ env: warn })];
    expect(withoutImage(other)).toBe(withoutImage(one));
    expect(other.metadata?.annotations).not.toEqual(one.metadata?.annotations);
  });

  it("a pod from before the opt-in is up to date until a value changes, and then not upgradable, because of its variables", () => {
    const before = stored({ annotations: {} });
    const pod = running(before);
    expect(podStateOf(pod, stored(), undefined).isUpdated).toBe(true);
    const after = stored({ env: warn });
    expect(podStateOf(pod, after, undefined).isUpdated).toBe(false);
    expect(isUpgradable(pod, after)).toBe(false);
    expect(immutableFields(after, [pod], [revisionOf(before, 1), revisionOf(stored(), 2)])).toEqual([
      "spec.containers{agent}.env",
    ]);
  });

  it("the list of fields that cannot change in place leaves out values that can", () => {
    const pod = running(stored());
    const after = stored({ env: warn, fields: PORTS });
    expect(immutableFields(after, [pod], [revisionOf(stored(), 1)])).toEqual(["spec.containers{agent}.ports"]);
  });

  it("a revision is restored in the form in which it was recorded", () => {
    const [literals, values] = [stored({ annotations: {} }), stored()];
    for (const [recorded, now] of [
      [literals, values],
      [values, literals],
    ] as const) {
      const restored = restoreRevision(now, revisionOf(recorded, 1));
      const again = restored.kind === "Decoded" ? restored.value : undefined;
      expect(again && withoutImage(again)).toBe(withoutImage(recorded));
      expect(again && agentOf(running(again))?.env).toEqual(agentOf(running(recorded))?.env);
    }
  });

  it("a halted release goes back to a revision from before the opt-in, with the hash that pods have had since then", () => {
    const own = { [HALT_ON_ANNOTATION]: "0", [UNDO_ON_HALT_ANNOTATION]: "true" };
    const bad = stored({ env: warn, annotations: { ...IN_PLACE, ...own } });
    const revisions = [revisionOf(stored({ annotations: {} }), 1), revisionOf(bad, 2)];
    const undo = planUndo(bad, { halt: "it fails", revisions, pods: [], now: NOW });
    expect(undo).toMatchObject({
      revision: 1,
      annotations: { [HASH_WITHOUT_IMAGE_ANNOTATION]: withoutImage(stored()) },
    });
  });

  it("a change of values is reported as in place, and a change of a port is not", () => {
    const changes = specChanges(stored(), stored({ env: warn, fields: PORTS }), {
      NativeSidecarInPlaceUpdate: false,
      canResize: false,
    });
    expect(changes.map(({ path, effect }) => [path, effect])).toEqual([
      ["spec.containers{agent}.env", "inPlace"],
      ["spec.containers{agent}.ports", "recreate"],
    ]);
    const [named] = specChanges(stored(), stored({ env: [{ name: "OTHER", value: "info" }] }), {
      NativeSidecarInPlaceUpdate: false,
      canResize: false,
    });
    expect(named?.effect).toBe("recreate");
  });

  it("diff says how a changed argument can change in place, and this way works", () => {
    const settings = { NativeSidecarInPlaceUpdate: false, canResize: false };
    const withArgs = (level: string, given: Given = {}) =>
      stored({ ...given, fields: { args: ["--level", level] } as Partial<SidecarContainer> });
    const advice = "put what changes into a variable, and write $(NAME) here: its next change goes in place";
    const [literal] = specChanges(withArgs("info"), withArgs("warn"), settings);
    expect(literal).toMatchObject({ path: "spec.containers{agent}.args", effect: "recreate", advice });
    const taken = specChanges(withArgs("$(LEVEL)"), withArgs("$(LEVEL)", { env: warn }), settings);
    expect(taken).toMatchObject([{ path: "spec.containers{agent}.env", effect: "inPlace" }]);

    const notAsked = { annotations: {} };
    const hot = {
      fields: { args: ["1"], upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "empty:1" } },
    };
    for (const [before, after] of [
      [withArgs("info", notAsked), withArgs("warn", notAsked)],
      [stored(hot as Given), stored({ fields: { ...hot.fields, args: ["2"] } } as Given)],
      [withArgs("info"), stored()],
      // The advice recommends this change.
      [withArgs("info"), withArgs("$(LEVEL)")],
      [stored(), withArgs("$(LEVEL)")],
    ] as const)
      expect(specChanges(before, after, settings)[0]).toEqual(
        expect.not.objectContaining({ advice: expect.anything() }),
      );
  });

  it("the opt-in is reported as the reason why running pods do not change, also together with a new image", () => {
    const settings = { NativeSidecarInPlaceUpdate: false, canResize: false };
    const literals = stored({ annotations: {} });
    for (const [before, after] of [
      [literals, stored({ image: "agent:2" })],
      [stored(), stored({ annotations: {}, image: "agent:2" })],
    ] as const)
      expect(specChanges(before, after, settings)).toContainEqual(
        expect.objectContaining({
          path: `metadata.annotations{${IN_PLACE_ANNOTATION}}`,
          effect: "recreate",
          advice: "nothing restarts, but running pods get no new image and no new value until they are recreated",
        }),
      );
    expect(specChanges(stored({ annotations: {}, env: [] }), stored({ env: [] }), settings)).toEqual([]);
  });

  it("an opt-out in the middle of a rollout writes to no pod, and names variables as the reason for each pod", () => {
    const literal = stored({ annotations: {}, env: warn, image: "agent:2" });
    const [old, written] = [running(stored()), upgraded(running(stored()), stored({ env: warn }))];
    const revisions = [revisionOf(stored(), 1), revisionOf(stored({ env: warn }), 2)];
    for (const pod of [old, written]) {
      const state = podStateOf(projectPod(pod, literal), literal, undefined);
      expect([state.isUpdated, canBeUpdated(state, literal)]).toEqual([false, false]);
      expect(immutableFields(literal, [projectPod(pod, literal)], revisions)).toEqual(["spec.containers{agent}.env"]);
    }
    const back = stored({ env: warn });
    expect(podStateOf(projectPod(written, back), back, undefined).isUpdated).toBe(true);
  });

  it("a diff back to a revision from before the opt-in says that pods in the new form have to be recreated", () => {
    const [before, after] = [stored({ env: warn }), stored({ annotations: {} })];
    const diff = diffSidecarSets({
      ...{ before, after, revisions: [], kubelets: new Map(), isResizeServed: false, disruptionBudgets: [] },
      ...{ namespaceLabels: new Map(), settings: DEFAULT_ROLLOUT_SETTINGS, pods: [running(before)] },
    });
    expect(diff.pods).toEqual([
      { kind: "recreate", namespace: "shop", name: "a", fields: ["spec.containers{agent}.env"] },
    ]);
    expect(diff.changes.map(({ effect }) => effect)).toContain("recreate");
  });

  it("values that would not fit into a pod's annotations are refused with one sentence", () => {
    const view = {
      sidecarSets: [],
      controllerRevisions: [],
      configMaps: [],
      kruiseNamespace: "k",
      isAllowedByDefault: true,
    };
    const large = stored({ env: [{ name: "CONFIG", value: "x".repeat(40_000) }] });
    expect(sidecarSetErrors(stored(), undefined, view)).toEqual([]);
    expect(sidecarSetErrors(large, undefined, view).map(({ detail }) => detail)).toEqual([
      expect.stringContaining("have 40049 bytes"),
    ]);
  });

  it.each(["x", "é", "語", "😀"])(
    "values of the letter %s may have as many bytes as other values, and no byte more",
    (letter) => {
      const view = { sidecarSets: [], controllerRevisions: [], configMaps: [], kruiseNamespace: "k" };
      const most = 32 * 1024 - Buffer.byteLength("log-agent.value.sidecarset.kruise.io/agent.CONFIG");
      const count = Math.floor(most / Buffer.byteLength(letter));
      const value = letter.repeat(count) + "x".repeat(most - count * Buffer.byteLength(letter));
      const errors = (text: string) => {
        const sidecarSet = stored({ env: [{ name: "CONFIG", value: text }] });
        return sidecarSetErrors(sidecarSet, undefined, { ...view, isAllowedByDefault: true }).length;
      };
      expect([errors(value), errors(`${value}x`)]).toEqual([0, 1]);
    },
  );
});

describe("one write", () => {
  it("values and another spelling of the image are written together", () => {
    const after = stored({ env: warn });
    const pod = upgraded(running(stored()), after);
    expect(pod.metadata?.annotations?.[LEVEL]).toBe("warn");
    expect(agentOf(pod)?.image).toBe(`agent:1@${DIGEST}`);
    expect(JSON.parse(pod.metadata?.annotations?.[RECORD] ?? "")).toEqual({
      digest: valuesInPlace(after)?.digest,
      before: { agent: { id: "containerd://agent-1", image: "agent:1", since: NOW, of: "agent:1" } },
    });
  });

  it("a container with unchanged values and image is not written", () => {
    const pair = (level: string) => stored({ env: [{ name: "LEVEL", value: level }] });
    const before = pair("info");
    const pod = running(before);
    const plan = planUpgrade(pod, before, { now: NOW, latestRevision: "r" });
    expect(plan).toMatchObject({ kind: "planned", images: [] });
  });

  it("a container whose values changed once does not restart again for a change in another container", () => {
    const withB = (sidecarSet: SidecarSet, image: string): SidecarSet => ({
      ...sidecarSet,
      spec: { ...sidecarSet.spec, containers: [...(sidecarSet.spec.containers ?? []), { name: "b", image }] },
    });
    const written = upgraded(running(withB(stored(), "b:1")), withB(stored({ env: warn }), "b:1"));
    const state = { running: { startedAt: NOW } };
    const pod = withStatus(written, { containerID: "containerd://agent-2", state });
    const after = withB(stored({ env: warn }), "b:2");
    const plan = planUpgrade(projectPod(pod, after), after, { now: "2026-11-30T10:09:00Z", latestRevision: "r" });
    expect(plan).toMatchObject({ kind: "planned", images: [{ container: "b", to: "b:2" }] });
    const both = upgraded(written, after);
    const status = (both.status?.containerStatuses ?? []).map((one) =>
      one.name === "b" ? { ...one, containerID: "containerd://b-2", state } : one,
    );
    const half = { ...both, status: { ...both.status, containerStatuses: status } };
    const { isConsistent } = podStateOf(projectPod(half, after), after, undefined, NOW);
    expect(isConsistent, "the first container still runs what was before").toBe(false);
  });

  it("a new image is written unchanged", () => {
    const pod = upgraded(running(stored()), stored({ image: "agent:2", env: warn }));
    expect(agentOf(pod)?.image).toBe("agent:2");
  });

  const spellings: readonly (readonly [string, string, Partial<ContainerStatus>, string])[] = [
    ["a short name", "agent:1", {}, `agent:1@${DIGEST}`],
    ["a name without a tag", "agent", {}, "agent:latest"],
    [
      "a registry with a port",
      "reg:5000/agent:1",
      { imageID: `reg:5000/agent@${DIGEST}` },
      `reg:5000/agent:1@${DIGEST}`,
    ],
    ["a digest alone", `reg/agent@${DIGEST}`, {}, `reg/agent:latest@${DIGEST}`],
    ["a tag and a digest", `reg/agent:1@${DIGEST}`, {}, `reg/agent@${DIGEST}`],
    ["an image that is always pulled", "agent:1", {}, "docker.io/library/agent:1"],
  ];
  it.each(spellings)("%s has another spelling that means the same", (what, image, status, expected) => {
    const fields = what.includes("always") ? { imagePullPolicy: "Always" } : {};
    const pod = upgraded(running(stored({ image, fields }), status), stored({ image, fields, env: warn }));
    expect(agentOf(pod)?.image).toBe(expected);
  });

  it("if no other spelling exists the pod is not updated, and the text says why", () => {
    const image = "reg.example/agent:1";
    const pod = running(stored({ image }), { imageID: "" });
    const plan = planUpgrade(pod, stored({ image, env: warn }), { now: NOW, latestRevision: "r" });
    expect(plan).toEqual({
      kind: "refused",
      message:
        "container agent cannot be restarted for its values, because its image reg.example/agent:1 cannot be written in another way that means the same: it has no imageID yet",
    });
  });

  it("spellings take turns, because kubelets delay the restart of a container with a recent spelling", () => {
    let pod = running(stored());
    const images = [agentOf(pod)?.image];
    for (const [index, value] of ["warn", "error", "debug"].entries()) {
      const now = `2026-11-30T10:0${index}:00Z`;
      const written = upgraded(pod, stored({ env: [{ name: "LEVEL", value }] }), now);
      const state = { running: { startedAt: now } };
      pod = withStatus(written, { containerID: `containerd://agent-${index + 2}`, state });
      images.push(agentOf(pod)?.image);
    }
    expect(new Set(images).size).toBe(4);
  });

  it("a second write before the kubelet acted on the first has a third spelling, and waits for the same container", () => {
    const first = upgraded(running(stored()), stored({ env: warn }));
    const second = upgraded(first, stored({ env: [{ name: "LEVEL", value: "error" }] }), "2026-11-30T10:00:09Z");
    const images = ["agent:1", agentOf(first)?.image, agentOf(second)?.image];
    expect(new Set(images).size).toBe(3);
    expect(JSON.parse(second.metadata?.annotations?.[RECORD] ?? "").before.agent).toEqual({
      id: "containerd://agent-1",
      image: "agent:1",
      since: "2026-11-30T10:00:09Z",
      of: "agent:1",
    });
  });

  it("a container that may have started during another pull does not get the spelling that it may already have", () => {
    const image = `reg/agent@${DIGEST}`;
    const state = { waiting: { reason: "ContainerCreating" } };
    const injected = running(stored({ image }));
    const containerStatuses = injected.spec.containers.map(({ name }) => ({ name, ready: false, imageID: "", state }));
    const starting = { ...injected, status: { ...injected.status, containerStatuses } };
    const first = upgraded(starting, stored({ image, env: warn }));
    const second = stored({ image, env: [{ name: "LEVEL", value: "error" }] });
    const options = { now: "2026-11-30T10:00:30Z", latestRevision: "r" };
    expect(planUpgrade(first, second, options)).toMatchObject({
      kind: "refused",
      message: expect.stringContaining("when its node has acted on the last change"),
    });
    const pulls = withStatus(first, { state: { waiting: { reason: "ImagePullBackOff" } } });
    expect(planUpgrade(pulls, second, options)).toMatchObject({ kind: "planned", images: [{ to: image }] });
  });

  it("a release that is taken back before the kubelet acted still restarts the container", () => {
    const before = stored();
    const next = upgraded(running(before), stored({ image: "agent:2" }));
    const back = upgraded(next, before);
    expect(agentOf(back)?.image).not.toBe("agent:1");
    expect(agentOf(back)?.image).toContain("agent:1");
  });
});

describe("completion", () => {
  const after = stored({ env: warn });
  const written = upgraded(running(stored()), after);
  const seen = (status: Partial<ContainerStatus>, now?: string) =>
    podStateOf(projectPod(withStatus(written, status), after), after, undefined, now);

  it("a pod is not done while the old container runs, with any spelling of its image", () => {
    expect(seen({})).toMatchObject({ isUpdated: true, isConsistent: false });
    expect(seen({ imageID: "other", image: "agent:1" })).toMatchObject({ isUpdated: true, isConsistent: false });
  });

  it("a pod is done when a container that started after the write runs, also with the same imageID", () => {
    const state = { running: { startedAt: NOW } };
    expect(seen({ containerID: "containerd://agent-2", state }, NOW).isConsistent).toBe(true);
  });

  it("a container that crashed before the write does not count as the restarted one, unless a minute has passed", () => {
    const status = { containerID: "containerd://agent-2", state: { running: { startedAt: "2026-11-30T09:59:59Z" } } };
    expect(seen(status, "2026-11-30T10:00:05Z").isConsistent).toBe(false);
    expect(seen(status, "2026-11-30T10:01:00Z").isConsistent, "a node whose clock is behind").toBe(true);
  });

  it("a write by a pass whose clock is ahead delays a pod for two minutes, however far the clock is ahead", () => {
    const state = { running: { startedAt: "2026-11-30T08:00:10Z" } };
    const done = (now: string) => seen({ containerID: "containerd://agent-2", state }, now).isConsistent;
    expect([done("2026-11-30T08:02:09Z"), done("2026-11-30T08:02:10Z")]).toEqual([false, true]);
    expect(done("2026-11-30T09:59:30Z"), "within what clocks differ by").toBe(false);
  });

  it("an update between two tags of one image is done when the container has restarted", () => {
    const tagged = stored({ image: "agent:same" });
    const pod = upgraded(running(stored()), tagged);
    expect(podStateOf(pod, tagged, undefined).isConsistent).toBe(false);
    const restarted = withStatus(pod, { containerID: "containerd://agent-2", state: { running: { startedAt: NOW } } });
    expect(podStateOf(projectPod(restarted, tagged), tagged, undefined, NOW).isConsistent).toBe(true);
  });
});

describe("a hot upgrade with values", () => {
  it("a release that is taken back before the kubelet acted is done, because the slot has run its empty image all along", () => {
    const upgradeStrategy = { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "reg.example/empty:1" };
    const hot = (image: string) => stored({ image, fields: { upgradeStrategy } });
    const before = hot("reg.example/agent:1");
    const injected = running(before);
    const imageOf = (name: string) => injected.spec.containers.find((one) => one.name === name)?.image ?? "";
    const containerStatuses = (injected.status?.containerStatuses ?? []).map((one) => ({
      ...one,
      image: imageOf(one.name),
    }));
    const pod = { ...injected, status: { ...injected.status, containerStatuses } };
    const back = upgraded(upgraded(pod, hot("reg.example/agent:2")), before, "2026-11-30T10:00:05Z");
    expect(podStateOf(projectPod(back, before), before, undefined, "2026-11-30T11:00:00Z")).toMatchObject({
      isUpdated: true,
      isConsistent: true,
    });
  });
});

describe("values that other clients write", () => {
  const after = stored({ env: warn });
  const written = upgraded(running(stored()), after);
  const forged = {
    ...written,
    metadata: { ...written.metadata, annotations: { ...written.metadata?.annotations, [LEVEL]: "x" } },
  };

  it("a pod with other values than its release's counts as not updated, and the next write puts them back", () => {
    expect(podStateOf(projectPod(forged, after), after, undefined)).toMatchObject({ isUpdated: false });
    expect(hasForeignValues(forged, after)).toBe(true);
    const back = upgraded(forged, after, "2026-11-30T10:05:00Z");
    expect(back.metadata?.annotations?.[LEVEL]).toBe("warn");
    expect(agentOf(back)?.image).not.toBe(agentOf(forged)?.image);
    expect(podStateOf(back, after, undefined).isUpdated).toBe(true);
  });

  it("values that another client wrote on a pod of an older release are found by its record", () => {
    const next = stored({ env: [{ name: "LEVEL", value: "error" }] });
    expect(hasForeignValues(written, next)).toBe(false);
    expect(hasForeignValues(forged, next)).toBe(true);
  });

  it("a release that adds or removes a variable is not reported as another client's change of values", () => {
    const added = stored({ env: [...warn, { name: "MORE", value: "1" }] });
    for (const next of [added, stored({ env: [] })]) expect(hasOtherValues(written, next)).toBe(false);
    expect(hasOtherValues(forged, after)).toBe(true);
  });
});

function revisionOf(sidecarSet: SidecarSet, revision: number): ControllerRevision {
  return newRevision(sidecarSet, { namespace: "kruise-system", revision, collisionCount: 0 });
}
