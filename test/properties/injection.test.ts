import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Container, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarContainer, SidecarSet } from "../../shared/api/sidecarset.ts";
import { namespaceKeys } from "../../shared/core/injection/match/matches.ts";
import { admitted } from "./admission.ts";
import { type Scene, scenes } from "./arbitraries.ts";
import { holds } from "./holds.ts";

const HOT = "HotUpgrade";
const isHot = ({ upgradeStrategy }: SidecarContainer) => upgradeStrategy?.upgradeType === HOT;
const isNative = ({ restartPolicy }: SidecarContainer) => restartPolicy === "Always";

function baseOf({ metadata }: SidecarSet): string | undefined {
  return metadata?.annotations?.["apps.kruise.io/sidecarset-canary"] === "true"
    ? metadata.annotations["apps.kruise.io/sidecarset-base"]
    : undefined;
}

/** Returns the injected SidecarSets in OpenKruise's order: those with a namespace first, each group by name. */
function injectedSets({ sidecarSets }: Scene): readonly SidecarSet[] {
  const isMeant = ({ spec }: SidecarSet) =>
    spec.injectionStrategy?.paused !== true && spec.selector?.matchLabels?.["app"] !== "api";
  const rank = (set: SidecarSet) => `${namespaceKeys(set) ? 0 : 1} ${set.metadata?.name}`;
  const meant = sidecarSets.filter(isMeant).toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1));
  const bases = new Set(meant.map(baseOf));
  return meant.filter(({ metadata }) => !bases.has(metadata?.name));
}

function namesAs(sidecar: SidecarContainer, canBeHot: boolean): readonly string[] {
  return canBeHot && isHot(sidecar) ? [`${sidecar.name}-1`, `${sidecar.name}-2`] : [sidecar.name];
}

interface Named {
  readonly name: string;
  readonly isBefore: boolean;
}

function placed(own: readonly Container[] | undefined, injected: readonly Named[]): readonly string[] {
  const names = (own ?? []).map(({ name }) => name);
  const added = injected.filter(({ name }) => !names.includes(name));
  const side = (isBefore: boolean) => added.filter((each) => each.isBefore === isBefore).map(({ name }) => name);
  return [...side(true), ...names, ...side(false)];
}

function namedOf(sidecars: readonly SidecarContainer[], canBeHot: (sidecar: SidecarContainer) => boolean) {
  return sidecars.flatMap((sidecar) =>
    namesAs(sidecar, canBeHot(sidecar)).map((name) => ({
      name,
      isBefore: sidecar.podInjectPolicy === "BeforeAppContainer",
    })),
  );
}

const byName = (a: Named, b: Named) => (a.name < b.name ? -1 : 1);
const namesOf = (containers: readonly Container[] | undefined) => (containers ?? []).map(({ name }) => name);
const sidecarsOf = ({ sidecarSets }: Scene): readonly SidecarContainer[] =>
  sidecarSets.flatMap(({ spec }) => [...(spec.initContainers ?? []), ...(spec.containers ?? [])]);

test("the order of the list of SidecarSets does not change the injected pod", () => {
  const shuffled = fc.tuple(scenes, fc.shuffledSubarray([0, 1, 2], { minLength: 3 }));
  holds(shuffled, ["injected", "reordered"], ([scene, order], seen) => {
    const sidecarSets = order.flatMap((index) => scene.sidecarSets[index] ?? []);
    const pod = admitted(scene);
    seen("injected", pod !== undefined && pod !== scene.pod);
    seen(
      "reordered",
      sidecarSets.some((set, index) => set !== scene.sidecarSets[index]),
    );
    expect(admitted({ ...scene, sidecarSets })).toEqual(pod);
  });
});

test("the injected containers have the order of the SidecarSets and their podInjectPolicy", () => {
  const classes = ["before", "after", "overwritten", "init", "native hot", "two sets", "canary", "sorted"];
  holds(fc.tuple(scenes, fc.boolean()), classes, ([scene, sortByName], seen) => {
    const pod = admitted(scene, { sortByName });
    if (pod === undefined || scene.revisions.length > 0) return;
    const sets = injectedSets(scene);
    const containers = namedOf(
      sets.flatMap(({ spec }) => spec.containers ?? []),
      () => true,
    );
    const inits = namedOf(
      sets.flatMap(({ spec }) => spec.initContainers ?? []),
      isNative,
    );
    const own = scene.pod.spec;
    const sorted = sortByName ? containers.toSorted(byName) : containers;
    expect(namesOf(pod.spec.containers)).toEqual(placed(own.containers, sorted));
    expect(namesOf(pod.spec.initContainers)).toEqual(placed(own.initContainers, inits.toSorted(byName)));
    seen(
      "before",
      containers.some(({ isBefore }) => isBefore),
    );
    seen(
      "after",
      containers.some(({ isBefore }) => !isBefore),
    );
    seen(
      "overwritten",
      own.containers.some(({ name }) => containers.some((each) => each.name === name)),
    );
    seen("init", inits.length > 0);
    seen("native hot", inits.length > sets.flatMap(({ spec }) => spec.initContainers ?? []).length);
    seen("two sets", sets.length > 1);
    seen(
      "canary",
      sets.some((set) => baseOf(set) === "alpha") && scene.sidecarSets.some((set) => set.metadata?.name === "alpha"),
    );
    seen("sorted", sortByName && containers.length > 1);
  });
});

test("injected volumes and pull secrets follow the pod's own, each name once", () => {
  holds(scenes, ["volumes", "secrets", "secret of both"], (scene, seen) => {
    const pod = admitted(scene);
    if (pod === undefined) return;
    const { volumes: own = [], imagePullSecrets: ownSecrets = [] } = scene.pod.spec;
    const { volumes = [], imagePullSecrets: secrets = [] } = pod.spec;
    expect(volumes.slice(0, own.length)).toEqual(own);
    expect(secrets.slice(0, ownSecrets.length)).toEqual(ownSecrets);
    for (const list of [volumes, secrets]) expect(new Set(list.map(({ name }) => name)).size).toBe(list.length);
    seen("volumes", volumes.length > own.length);
    seen("secrets", secrets.length > ownSecrets.length);
    const wanted = scene.sidecarSets.flatMap(({ spec }) => spec.imagePullSecrets ?? []);
    seen(
      "secret of both",
      wanted.some(({ name }) => ownSecrets.some((each) => each.name === name)),
    );
  });
});

/** Cases in which a second injection changes the pod again, as in OpenKruise. */
const EXCEPTIONS: Readonly<Record<string, (scene: Scene) => boolean>> = {
  "the pod has an ordered launch, which adds the barrier each time": ({ pod }) =>
    pod.metadata?.annotations?.["apps.kruise.io/container-launch-priority"] === "Ordered",
  "resourcesPolicy counts the containers of a hot upgrade as the pod's own": (scene) =>
    sidecarsOf(scene).some(isHot) && sidecarsOf(scene).some(({ resourcesPolicy }) => resourcesPolicy !== undefined),
  "the policy Partial chooses a revision at random again": ({ sidecarSets }) =>
    sidecarSets.some(({ spec }) => spec.injectionStrategy?.revision?.policy === "Partial"),
  "transferEnv finds a sidecar that the first injection added": (scene) => {
    const sidecars = new Set(sidecarsOf(scene).map(({ name }) => name));
    const transfers = sidecarsOf(scene).flatMap(({ transferEnv }) => transferEnv ?? []);
    return transfers.some(({ sourceContainerName = "" }) => sidecars.has(sourceContainerName));
  },
  "a sidecar has replaced an app container, which then shares no volumes or devices": (scene) => {
    const own = new Set(scene.pod.spec.containers.map(({ name }) => name));
    const isSharing = ({ shareVolumePolicy, shareVolumeDevicePolicy }: SidecarContainer) =>
      shareVolumePolicy?.type === "enabled" || shareVolumeDevicePolicy?.type === "enabled";
    return sidecarsOf(scene).some(({ name }) => own.has(name)) && sidecarsOf(scene).some(isSharing);
  },
  "MergePatchJson keeps the text of the first patch and rewrites it with the second": ({ sidecarSets }) =>
    sidecarSets.some(({ spec }) =>
      spec.patchPodMetadata?.some(({ annotations }) => annotations?.["json"]?.includes("null")),
    ),
};

const FORMS: Readonly<Record<string, (sidecar: SidecarContainer) => boolean>> = {
  hot: isHot,
  native: isNative,
  "shared mounts": ({ shareVolumePolicy }) => shareVolumePolicy?.type === "enabled",
  "shared devices": ({ shareVolumeDevicePolicy }) => shareVolumeDevicePolicy?.type === "enabled",
  transferEnv: ({ transferEnv }) => transferEnv !== undefined,
  resourcesPolicy: ({ resourcesPolicy }) => resourcesPolicy !== undefined,
};

function twice(scene: Scene): readonly [once: Pod | undefined, again: Pod | undefined] {
  const once = admitted(scene, { draw: 0.3 });
  return [once, once && admitted({ ...scene, pod: once }, { draw: 0.7 })];
}

describe("injection twice:", () => {
  test("a second injection does not change the pod, outside the listed exceptions", () => {
    const classes = [...Object.keys(FORMS), "metadata", "revision", "canary", "overwritten", "recorded before"];
    const ordinary = scenes.filter((scene) => !Object.values(EXCEPTIONS).some((isOne) => isOne(scene)));
    holds(ordinary, classes, (scene, seen) => {
      const [once, again] = twice(scene);
      if (once === undefined) return;
      expect(again).toEqual(once);
      const sidecars = injectedSets(scene).flatMap(({ spec }) => [
        ...(spec.initContainers ?? []),
        ...(spec.containers ?? []),
      ]);
      for (const [form, isForm] of Object.entries(FORMS)) seen(form, sidecars.some(isForm));
      seen(
        "metadata",
        injectedSets(scene).some(({ spec }) => spec.patchPodMetadata !== undefined),
      );
      seen("revision", scene.revisions.length > 0);
      seen(
        "canary",
        injectedSets(scene).some((set) => baseOf(set) !== undefined),
      );
      seen(
        "overwritten",
        scene.pod.spec.containers.some(({ name }) => sidecars.some((each) => each.name === name)),
      );
      seen("recorded before", scene.pod.metadata?.annotations?.["kruise.io/sidecarset-hash"] !== undefined);
    });
  });

  const samples = fc.sample(scenes, { seed: 1, numRuns: 4_000 });
  test.each(Object.entries(EXCEPTIONS))("a second injection changes some pod again when %s", (name, isException) => {
    const others = Object.entries(EXCEPTIONS).filter(([other]) => other !== name);
    const different = samples.find((scene) => {
      // Only this exception applies, so that nothing else can cause the difference.
      if (!isException(scene) || others.some(([, isOther]) => isOther(scene))) return false;
      const [once, again] = twice(scene);
      return once !== undefined && JSON.stringify(again) !== JSON.stringify(once);
    });
    expect(different).toBeDefined();
  });
});
