/** Generates SidecarSets that use everything injection can do; most are valid. */
import fc from "fast-check";
import {
  type ContainerPlace,
  containerFields,
  type Fields,
  fields,
  maybe,
  pick,
  someOf,
} from "./generated-container.ts";
import { CLAIM_NAMES, VOLUME_NAMES, volumesNamed } from "./generated-volume.ts";

const enabled = pick<Fields>({ type: "enabled" }, { type: "enabled" }, { type: "disabled" });

const transfers = fc.array(
  fc
    .tuple(
      pick<Fields>(
        { sourceContainerName: "main" },
        { sourceContainerName: "helper" },
        { sourceContainerNameFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
      ),
      pick<Fields>({ envName: "REGION" }, { envNames: ["POD_NAME", "CPU", "CONFIG"] }, { envName: "MEMORY" }),
    )
    .map(([source, names]) => ({ ...source, ...names })),
  { minLength: 1, maxLength: 2 },
);

const resourcesPolicy = fields({
  targetContainersMode: pick("sum", "max"),
  targetContainersNameRegex: pick(".*", "^main$"),
  resourcesExpr: pick<Fields>(
    { limits: { cpu: "cpu * 50%", memory: "memory / 2" } },
    { requests: { cpu: "max(cpu, 100m)", memory: "50Mi" } },
    { limits: { cpu: "max(cpu, 100m)" }, requests: { cpu: "min(cpu, 50m)" } },
  ),
});

const ofSidecar = (place: ContainerPlace, isHot: boolean) =>
  fields({
    ...containerFields(place),
    podInjectPolicy: pick("BeforeAppContainer", "AfterAppContainer", undefined),
    shareVolumePolicy: maybe(45, enabled),
    shareVolumeDevicePolicy: maybe(25, enabled),
    transferEnv: maybe(35, transfers),
    resourcesPolicy: maybe(12, resourcesPolicy),
    upgradeStrategy: isHot
      ? maybe(15, fc.constant({ upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "registry.example/empty:1" }))
      : fc.constant(undefined),
  }).map(({ resourcesPolicy: policy, ...container }) => {
    if (policy === undefined || place.isPlainInit) return container;
    const { resources: _, ...others } = container;
    return { ...others, resourcesPolicy: policy };
  });

type Place = Omit<ContainerPlace, "name">;

/** Names that a pod's containers also have are rare. */
const sidecars = (set: string, place: Place) =>
  fc.tuple(someOf([`${set}-agent`, `${set}-proxy`, `${set}-mesh`], 3), fc.nat(24)).chain(([names, dice]) => {
    const all = dice === 0 ? [...names, "helper"] : dice === 1 ? [...names, "setup"] : names;
    return fc.tuple(...all.map((name) => ofSidecar({ ...place, name }, true)));
  });

const initSidecars = (set: string, place: Place) =>
  someOf([`${set}-init`, `${set}-tunnel`], 2).chain((names) =>
    fc.tuple(
      ...names.map((name) =>
        name === `${set}-tunnel`
          ? ofSidecar({ ...place, name }, false).map((container) => ({ ...container, restartPolicy: "Always" }))
          : ofSidecar({ ...place, name, isPlainInit: true }, false),
      ),
    ),
  );

const patches = someOf<Fields>(
  [
    { annotations: { "example.com/retained": "x" } },
    { annotations: { "example.com/overwritten": "y" }, patchPolicy: "Overwrite" },
    { annotations: { "example.com/config": '{"b":2}' }, patchPolicy: "MergePatchJson" },
  ],
  2,
);

const written = (set: string) => (place: Place) => ({
  containers: sidecars(set, place),
  initContainers: maybe(30, initSidecars(set, place)),
  imagePullSecrets: maybe(25, pick([{ name: "one" }], [{ name: "three" }])),
  patchPodMetadata: maybe(25, patches),
});

/** Generates the object without its selector. The containers' names begin with `name`. */
export function generatedSidecarSets(name: string): fc.Arbitrary<{ readonly name: string; readonly spec: Fields }> {
  return fc
    .tuple(fc.subarray([...VOLUME_NAMES]), fc.subarray([...CLAIM_NAMES], { maxLength: 1 }))
    .chain(([names, claims]) =>
      fc
        .tuple(volumesNamed(names, claims), fields(written(name)({ volumes: names, claims })))
        .map(([volumes, spec]) => ({
          name,
          // Native sidecars allow only this strategy.
          spec: { ...spec, volumes, updateStrategy: { type: "NotUpdate" } },
        })),
    );
}
