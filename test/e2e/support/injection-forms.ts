/** The forms that an injection may have; a real API server must accept each pod. */
import { expect } from "vitest";
import type { Volume } from "../../../shared/api/kubernetes.ts";
import type { SidecarContainer, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { APP, SIDECAR } from "./scene.ts";

export interface Form {
  readonly set: Partial<SidecarSetSpec>;
  /** the created pod */
  readonly pod?: object;
  readonly metadata?: { readonly labels?: object; readonly ownerReferences?: readonly object[] };
  /** the expected part of the created pod's spec */
  readonly spec: object;
  /** false: the pod waits for something that the cluster lacks */
  readonly runs?: false;
}

function sidecar(fields: Partial<SidecarContainer>): SidecarContainer {
  return { ...SIDECAR, ...fields };
}

const FIELD = { fieldRef: { fieldPath: "metadata.labels['scene']" } };
const BY_LABEL = { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['source']" } };
const ENV = [
  { name: "REGION", value: "eu" },
  { name: "ZONE", value: "eu-1" },
];
const WITH_ENV = { containers: [{ ...APP, env: ENV }] };
const STATE = { name: "state", emptyDir: {} };
const DATA = { name: "data", mountPath: "/data" };
const WITH_VOLUME = { containers: [{ ...APP, volumeMounts: [DATA] }], volumes: [{ name: "data", emptyDir: {} }] };
const CLAIM = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
const VOLUMES: readonly Volume[] = Object.entries({
  scratch: { emptyDir: { medium: "Memory", sizeLimit: "8Mi" } },
  settings: { configMap: { name: "settings", optional: true } },
  keys: { secret: { secretName: "keys", optional: true } },
  labels: { downwardAPI: { items: [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }] } },
  token: { projected: { sources: [{ serviceAccountToken: { path: "token", expirationSeconds: 3600 } }] } },
  host: { hostPath: { path: "/var/log" } },
  claim: { ephemeral: { volumeClaimTemplate: { spec: CLAIM } } },
}).map(([name, source]) => ({ name, ...source }));
const HTTP = { httpGet: { path: "/healthz", port: "metrics" } };
/** Fields that a sidecar has and Kubernetes defines. */
const EVERYTHING = {
  command: ["/agent"],
  args: ["--verbose"],
  workingDir: "/",
  ports: [{ name: "metrics", containerPort: 9090 }],
  envFrom: [{ prefix: "SET_", configMapRef: { name: "settings", optional: true } }],
  env: [{ name: "CPU", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } }],
  resources: { requests: { cpu: "10m", memory: "16Mi" }, limits: { cpu: "100m", memory: "64Mi" } },
  livenessProbe: HTTP,
  readinessProbe: { tcpSocket: { port: 9090 } },
  startupProbe: {
    exec: { command: ["true"] },
    timeoutSeconds: 1,
    periodSeconds: 1,
    successThreshold: 1,
    failureThreshold: 3,
  },
  lifecycle: { postStart: { exec: { command: ["true"] } }, preStop: HTTP },
  securityContext: {
    runAsNonRoot: true,
    runAsUser: 1000,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
    seccompProfile: { type: "RuntimeDefault" },
  },
  stdin: true,
};
const CLONE_SET = {
  apiVersion: "apps.kruise.io/v1alpha1",
  kind: "CloneSet",
  name: "clones",
  uid: "d1b3a5c2-6a1e-4a2b-9a43-0c6f0d1f7e11",
  controller: true,
};
const names = (...all: readonly string[]) => all.map((name) => expect.objectContaining({ name }));

export const FORMS: Readonly<Record<string, Form>> = {
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
  "a hot upgrade's two native sidecars": {
    set: {
      containers: [],
      initContainers: [
        {
          name: "proxy",
          image: "proxy:v1",
          restartPolicy: "Always",
          upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "empty:v1" },
        },
      ],
      updateStrategy: { type: "NotUpdate" },
    },
    spec: {
      initContainers: [
        expect.objectContaining({ name: "proxy-1", image: "proxy:v1", restartPolicy: "Always" }),
        expect.objectContaining({ name: "proxy-2", image: "empty:v1", restartPolicy: "Always" }),
      ],
    },
  },
  "init containers around its own": {
    set: {
      initContainers: [
        { name: "first", image: "prepare:v1", podInjectPolicy: "BeforeAppContainer" },
        { name: "last", image: "prepare:v1" },
      ],
    },
    pod: { containers: [APP], initContainers: [{ name: "own", image: "own:v1" }] },
    spec: { initContainers: names("first", "own", "last") },
  },
  "a sidecar in the place of its container of that name": {
    set: { containers: [{ name: "main", image: "other:v1" }] },
    spec: { containers: [expect.objectContaining({ name: "main", image: "other:v1" })] },
  },
  "variables of the container that a label names": {
    set: {
      containers: [
        sidecar({ transferEnv: [{ sourceContainerNameFrom: BY_LABEL, envNames: ["REGION", "ZONE", "NONE"] }] }),
      ],
    },
    pod: WITH_ENV,
    metadata: { labels: { source: "main" } },
    spec: {
      containers: [
        expect.objectContaining({
          env: expect.arrayContaining([
            { name: "REGION", value: "eu" },
            { name: "ZONE", value: "eu-1" },
          ]),
        }),
        expect.anything(),
      ],
    },
  },
  "a mount below a path that a variable names, with that variable": {
    set: { containers: [sidecar({ shareVolumePolicy: { type: "enabled" } })] },
    pod: {
      containers: [
        {
          ...APP,
          env: [{ name: "ZONE", value: "eu-1" }],
          volumeMounts: [{ ...DATA, subPathExpr: "$(ZONE)" }],
        },
      ],
      volumes: [{ name: "data", emptyDir: {} }],
    },
    spec: {
      containers: [
        expect.objectContaining({
          env: expect.arrayContaining([{ name: "ZONE", value: "eu-1" }]),
          volumeMounts: expect.arrayContaining([{ ...DATA, subPathExpr: "$(ZONE)" }]),
        }),
        expect.anything(),
      ],
    },
  },
  "the app's block devices": {
    set: { containers: [sidecar({ shareVolumeDevicePolicy: { type: "enabled" } })] },
    pod: {
      containers: [{ ...APP, volumeDevices: [{ name: "disk", devicePath: "/dev/disk" }] }],
      volumes: [{ name: "disk", persistentVolumeClaim: { claimName: "disk" } }],
    },
    spec: {
      containers: [
        expect.objectContaining({ volumeDevices: [{ name: "disk", devicePath: "/dev/disk" }] }),
        expect.anything(),
      ],
    },
    runs: false,
  },
  "volumes of many kinds": {
    set: {
      containers: [
        sidecar({ volumeMounts: VOLUMES.map(({ name }) => ({ name, mountPath: `/${name}`, readOnly: true })) }),
      ],
      volumes: VOLUMES,
    },
    spec: { volumes: expect.arrayContaining(VOLUMES.map(({ name }) => expect.objectContaining({ name }))) },
    runs: false,
  },
  "a sidecar with probes, hooks, ports, limits and a security context": {
    set: { containers: [sidecar(EVERYTHING)] },
    spec: {
      containers: [
        expect.objectContaining({ ports: [{ name: "metrics", containerPort: 9090, protocol: "TCP" }] }),
        expect.anything(),
      ],
    },
  },
  "barriers that start its containers in order": {
    set: { containers: [sidecar({ env: [{ name: "KRUISE_CONTAINER_PRIORITY", value: "1" }] })] },
    spec: {
      containers: Array(2).fill(
        expect.objectContaining({
          env: expect.arrayContaining([expect.objectContaining({ name: "KRUISE_CONTAINER_BARRIER" })]),
        }),
      ),
    },
    runs: false,
  },
  "the readiness gate of OpenKruise's workloads": {
    set: {},
    metadata: { ownerReferences: [CLONE_SET] },
    spec: { readinessGates: [{ conditionType: "KruisePodReady" }] },
    runs: false,
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
