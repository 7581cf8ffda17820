/** Pods as users and controllers create them. */
import type { Container, Pod } from "../../../shared/api/kubernetes.ts";
import {
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  INJECT_KEY,
  INJECTED_LIST_ANNOTATION,
  IS_INJECTED_ENV,
  MIRROR_ANNOTATION,
} from "../../../shared/api/names.ts";
import type { Chance } from "../chance.ts";
import { JSON_ANNOTATION } from "./sidecarset-plans.ts";

/** Returns a pod as an API server sends it. `isWhole`: the pod names its namespace; otherwise only the request does. */
export function planPod(serial: number, namespace: string, chance: Chance): Pod {
  const isGenerated = chance.isLucky(0.5);
  const labels = planLabels(chance);
  const annotations = planAnnotations(chance);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...(isGenerated ? { generateName: "web-" } : { name: `web-${serial}` }),
      ...(chance.isLucky(0.6) ? { namespace } : {}),
      ...(labels ? { labels } : {}),
      ...(annotations ? { annotations } : {}),
      ...(chance.isLucky(0.5) ? { ownerReferences: [planOwner(serial, chance)] } : {}),
      ...(chance.isLucky(0.6)
        ? { managedFields: [{ manager: "kubectl", fieldsV1: { "f:spec": { "k:[]": {} } } }] }
        : {}),
      "example.com/unknown": 12345678901234,
    } as unknown as NonNullable<Pod["metadata"]>,
    spec: planSpec(serial, chance),
    ...(chance.isLucky(0.02) ? { status: { phase: "Succeeded" } } : {}),
  } as Pod;
}

function planLabels(chance: Chance): Record<string, string> | undefined {
  if (chance.isLucky(0.03)) return undefined;
  return {
    ...(chance.isLucky(0.9) ? { app: chance.pick(["web", "web", "api", "job", "main"]) } : {}),
    ...(chance.isLucky(0.5) ? { tier: chance.pick(["gold", "silver", "bronze"]) } : {}),
    ...(chance.isLucky(0.4) ? { zone: chance.pick(["a", "b"]) } : {}),
    ...(chance.isLucky(0.05) ? { [INJECT_KEY]: chance.pick(["false", "true"]) } : {}),
  };
}

function planAnnotations(chance: Chance): Record<string, string> | undefined {
  if (chance.isLucky(0.4)) return undefined;
  const old = {
    updateTimestamp: "2026-01-01T00:00:00Z",
    hash: "h",
    sidecarSetName: "older",
    sidecarList: ["older-proxy"],
  };
  const copied = chance.pick([JSON.stringify({ older: old }), JSON.stringify({ older: old }), "{", ""]);
  const isCopy = chance.isLucky(0.1);
  return {
    ...(chance.isLucky(0.3) ? { "example.com/kept": "by-the-user" } : {}),
    ...(chance.isLucky(0.3) ? { "example.com/of": "main" } : {}),
    ...(chance.isLucky(0.2) ? { [JSON_ANNOTATION]: chance.pick(['{"user":1,"mesh":0}', "no object", ""]) } : {}),
    ...(chance.isLucky(0.03) ? { [INJECT_KEY]: "false" } : {}),
    ...(chance.isLucky(0.03) ? { [MIRROR_ANNOTATION]: "x" } : {}),
    ...(isCopy ? { [HASH_ANNOTATION]: copied, [HASH_WITHOUT_IMAGE_ANNOTATION]: copied } : {}),
    ...(isCopy ? { [INJECTED_LIST_ANNOTATION]: chance.pick(["older", "zeta,agent", ""]) } : {}),
  };
}

function planOwner(serial: number, chance: Chance) {
  const owners = [
    { apiVersion: "apps/v1", kind: "ReplicaSet" },
    { apiVersion: "apps/v1", kind: "ReplicaSet" },
    { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet" },
  ];
  return { ...chance.pick(owners), name: "web", uid: `owner-${serial}`, controller: chance.isLucky(0.9) };
}

function planSpec(serial: number, chance: Chance): Pod["spec"] {
  const containers = [planApp("main", serial, chance)];
  if (chance.isLucky(0.3)) containers.push(planApp("web", serial, chance));
  if (chance.isLucky(0.05)) containers.push({ name: "mesh-proxy", image: "registry.example/own:1" });
  if (chance.isLucky(0.05)) containers.push(leftOver());
  const native = { name: "init-native", image: "registry.example/n:1", restartPolicy: "Always", resources: cpu("40m") };
  return {
    containers,
    ...(chance.isLucky(0.3) ? { initContainers: [{ name: "init-db", image: "registry.example/db:1" }, native] } : {}),
    ...(chance.isLucky(0.5) ? { volumes: [{ name: "work", emptyDir: {} }, ...sharedVolume(chance)] } : {}),
    ...(chance.isLucky(0.3) ? { imagePullSecrets: chance.pick([[{ name: "common" }], [{ name: "own" }]]) } : {}),
    ...(chance.isLucky(0.05) ? { readinessGates: [{ conditionType: "KruisePodReady" }] } : {}),
    schedulerName: `scheduler-${serial}`,
  } as unknown as Pod["spec"];
}

function sharedVolume(chance: Chance) {
  return chance.isLucky(0.3) ? [{ name: "shared-config", configMap: { name: "of-the-user" } }] : [];
}

const cpu = (text: string) => ({ requests: { cpu: text }, limits: { cpu: text } });

function planApp(name: string, serial: number, chance: Chance): Container {
  const env = [
    { name: "REGION", value: `region-${serial}` },
    { name: "COLOR", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    { name: "LEVEL", value: `level-${serial}` },
  ];
  const mount = { name: "work", mountPath: chance.pick(["/work", "/data", "/etc/shared"]) };
  return {
    name,
    image: `registry.example/${name}:${serial}`,
    ...(chance.isLucky(0.6) ? { env: env.filter(() => chance.isLucky(0.7)) } : {}),
    ...(chance.isLucky(0.5)
      ? { volumeMounts: [{ ...mount, subPathExpr: chance.pick(["$(REGION)/x", "plain"]) }] }
      : {}),
    ...(chance.isLucky(0.4) ? { resources: chance.pick([cpu("100m"), { requests: { cpu: "60m" } }]) } : {}),
  } as unknown as Container;
}

/** Returns a container that a user copied from a running pod. */
function leftOver(): Container {
  return {
    name: "older-proxy",
    image: "registry.example/older:1",
    env: [
      { name: IS_INJECTED_ENV, value: "true" },
      { name: "REGION", value: "of-a-sidecar" },
    ],
    volumeMounts: [{ name: "of-a-sidecar", mountPath: "/of-a-sidecar" }],
  } as unknown as Container;
}
