/** What a pod gets when it is created, and that a real API server takes it. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarContainer, SidecarSetSpec } from "../../shared/api/sidecarset.ts";
import { controlPlane } from "./support/access.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { APP, Scene, SIDECAR } from "./support/scene.ts";

let functions: Functions;
let scene: Scene;
beforeAll(async () => {
  functions = await startFunctions(controlPlane());
});
afterAll(() => functions?.close());
beforeEach(() => {
  scene = new Scene(functions);
});
afterEach(() => scene.close());

interface Form {
  readonly set: Partial<SidecarSetSpec>;
  /** of the pod that is created */
  readonly pod?: object;
  /** what its spec then holds */
  readonly spec: object;
}

function sidecar(fields: Partial<SidecarContainer>): SidecarContainer {
  return { ...SIDECAR, ...fields };
}

const FIELD = { fieldRef: { fieldPath: "metadata.labels['scene']" } };
const WITH_ENV = { containers: [{ ...APP, env: [{ name: "REGION", value: "eu" }] }] };
const STATE = { name: "state", emptyDir: {} };
const DATA = { name: "data", mountPath: "/data" };
const WITH_VOLUME = { containers: [{ ...APP, volumeMounts: [DATA] }], volumes: [{ name: "data", emptyDir: {} }] };
const names = (...all: readonly string[]) => all.map((name) => expect.objectContaining({ name }));

const FORMS: Readonly<Record<string, Form>> = {
  "a sidecar before the app": { set: {}, spec: { containers: names("agent", "main") } },
  "a sidecar after the app": {
    set: { containers: [sidecar({ podInjectPolicy: "AfterAppContainer" })] },
    spec: { containers: names("main", "agent") },
  },
  "an init container": {
    set: { initContainers: [{ name: "prepare", image: "prepare:v1" }] },
    spec: { initContainers: names("prepare"), containers: names("agent", "main") },
  },
  "a native sidecar": {
    set: {
      containers: [],
      initContainers: [{ name: "proxy", image: "proxy:v1", restartPolicy: "Always" }],
      updateStrategy: { type: "NotUpdate" },
    },
    spec: { initContainers: [expect.objectContaining({ name: "proxy", restartPolicy: "Always" })] },
  },
  "a volume of its own": {
    set: {
      containers: [sidecar({ volumeMounts: [{ name: "state", mountPath: "/state" }] })],
      volumes: [STATE],
    },
    spec: { volumes: expect.arrayContaining([expect.objectContaining({ name: "state" })]) },
  },
  "the app's volume mounts": {
    set: { containers: [sidecar({ shareVolumePolicy: { type: "enabled" } })] },
    pod: WITH_VOLUME,
    spec: {
      containers: [expect.objectContaining({ volumeMounts: expect.arrayContaining([DATA]) }), expect.anything()],
    },
  },
  "an environment variable of the app": {
    set: { containers: [sidecar({ transferEnv: [{ sourceContainerName: "main", envName: "REGION" }] })] },
    pod: WITH_ENV,
    spec: {
      containers: [
        expect.objectContaining({ env: expect.arrayContaining([{ name: "REGION", value: "eu" }]) }),
        expect.anything(),
      ],
    },
  },
  "an environment variable from a field": {
    set: { containers: [sidecar({ env: [{ name: "SCENE", valueFrom: FIELD }] })] },
    spec: {
      containers: [
        expect.objectContaining({ env: expect.arrayContaining([expect.objectContaining({ name: "SCENE" })]) }),
        expect.anything(),
      ],
    },
  },
  "a hot upgrade's two containers": {
    set: {
      containers: [sidecar({ upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "empty:v1" } })],
    },
    spec: {
      containers: [
        expect.objectContaining({ name: "agent-1", image: "agent:v1" }),
        expect.objectContaining({ name: "agent-2", image: "empty:v1" }),
        expect.objectContaining({ name: "main" }),
      ],
    },
  },
  "an image pull secret": {
    set: { imagePullSecrets: [{ name: "registry" }] },
    spec: { imagePullSecrets: [{ name: "registry" }] },
  },
  "resources derived from the app's": {
    set: {
      containers: [
        sidecar({
          resourcesPolicy: {
            targetContainersMode: "sum",
            targetContainersNameRegex: ".*",
            resourcesExpr: { limits: { cpu: "cpu * 50%" }, requests: { cpu: "cpu * 50%" } },
          },
        }),
      ],
    },
    pod: { containers: [{ ...APP, resources: { limits: { cpu: "2" }, requests: { cpu: "1" } } }] },
    spec: {
      containers: [
        expect.objectContaining({ resources: { limits: { cpu: "1" }, requests: { cpu: "500m" } } }),
        expect.anything(),
      ],
    },
  },
};

describe("a pod that is created gets", () => {
  it.each(Object.entries(FORMS))("%s", async (_what, { set, pod, spec }) => {
    await scene.open(set);
    const created = await scene.createPod("one", pod);
    expect(created.metadata?.annotations?.[INJECTED_LIST_ANNOTATION]).toBe(scene.name);
    expect(created.spec).toMatchObject(spec);
    await scene.untilReady(1);
  });

  it("annotations", async () => {
    await scene.open({ patchPodMetadata: [{ annotations: { "example.com/mesh": "on" }, patchPolicy: "Retain" }] });
    expect((await scene.createPod("one")).metadata?.annotations).toMatchObject({ "example.com/mesh": "on" });
  });

  it("the sidecars of several SidecarSets", async () => {
    await scene.open();
    const other = `${scene.name}-other`;
    await scene.createSet(other, { containers: [{ name: "mesh", image: "mesh:v1" }] });
    const created = await scene.createPod("one");
    await scene.deleteSet(other);
    expect(created.spec.containers.map(({ name }) => name).toSorted()).toEqual(["agent", "main", "mesh"]);
    expect(created.metadata?.annotations?.[INJECTED_LIST_ANNOTATION]).toBe(`${scene.name},${other}`);
  });

  it("the same from a SidecarSet of v1alpha1 that names its namespace", async () => {
    await scene.open({ selector: { matchLabels: { scene: "none" } } });
    const older = `${scene.name}-older`;
    const labels = { matchLabels: { scene: scene.name } };
    const inOther = { ...labels, namespace: "default" };
    await scene.createOlderSet(older, { selector: labels, namespace: scene.name, containers: [SIDECAR] });
    await scene.createOlderSet(`${older}-2`, { ...inOther, selector: labels, containers: [SIDECAR] });
    const created: Pod = await scene.createPod("one");
    await scene.deleteSet(older);
    await scene.deleteSet(`${older}-2`);
    expect(created.metadata?.annotations?.[INJECTED_LIST_ANNOTATION]).toBe(older);
  });
});

describe("a pod that is created gets nothing", () => {
  it("where the namespace does not match", async () => {
    await scene.open({ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "elsewhere" } } });
    expect((await scene.createPod("one")).spec.containers.map(({ name }) => name)).toEqual(["main"]);
  });

  it("while injection is paused", async () => {
    await scene.open({ injectionStrategy: { paused: true } });
    expect((await scene.createPod("one")).spec.containers.map(({ name }) => name)).toEqual(["main"]);
  });
});
