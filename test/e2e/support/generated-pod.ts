/** Generates pods as people and controllers write them; most are valid. */
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

type Place = Omit<ContainerPlace, "name">;

const priority = pick("0", "-1", "3", "many");

/** Adds the fields that only containers of pods have. */
const ofPod = (place: ContainerPlace) =>
  fc.tuple(fields(containerFields(place)), maybe(2, priority)).map(([container, launch]) => {
    if (launch === undefined) return container;
    const env = (container["env"] ?? []) as readonly Fields[];
    return { ...container, env: [...env, { name: "KRUISE_CONTAINER_PRIORITY", value: launch }] };
  });

const containers = (place: Place) =>
  someOf(["helper", "web"], 2).chain((others) =>
    fc
      .nat(3)
      .chain((count) =>
        fc.tuple(...["main", ...others.slice(0, Math.max(0, count - 1))].map((name) => ofPod({ ...place, name }))),
      ),
  );

const initContainers = (place: Place) =>
  someOf(["setup", "migrate", "tunnel"], 3).chain((names) =>
    fc.tuple(
      ...names.map((name) =>
        name === "tunnel"
          ? ofPod({ ...place, name }).map((container) => ({ ...container, restartPolicy: "Always" }))
          : ofPod({ ...place, name, isPlainInit: true }),
      ),
    ),
  );

const podSecurityContext = pick<Fields>(
  { runAsNonRoot: true, runAsUser: 1000, fsGroup: 2000 },
  { seccompProfile: { type: "RuntimeDefault" }, supplementalGroups: [1] },
  { sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }] },
);

const whole = (place: Place) => ({
  containers: containers(place),
  initContainers: maybe(35, initContainers(place)),
  restartPolicy: maybe(30, pick("Always", "OnFailure", "Never")),
  hostNetwork: maybe(8, fc.constant(true)),
  hostPID: maybe(2, fc.constant(true)),
  hostUsers: maybe(3, fc.boolean()),
  shareProcessNamespace: maybe(3, fc.boolean()),
  securityContext: maybe(25, podSecurityContext),
  terminationGracePeriodSeconds: maybe(20, pick(1, 30, 60, 300, 0)),
  activeDeadlineSeconds: maybe(5, pick(60)),
  serviceAccountName: maybe(10, pick("default")),
  automountServiceAccountToken: maybe(15, fc.boolean()),
  imagePullSecrets: maybe(
    20,
    pick([{ name: "one" }], [{ name: "two" }, { name: "one" }], [{ name: "one" }, { name: "one" }]),
  ),
  dnsPolicy: maybe(10, pick("Default", "ClusterFirstWithHostNet")),
  dnsConfig: maybe(8, pick<Fields>({ nameservers: ["1.1.1.1"], options: [{ name: "ndots", value: "2" }] })),
  hostAliases: maybe(8, pick<readonly Fields[]>([{ ip: "127.0.0.1", hostnames: ["db"] }])),
  hostname: maybe(8, pick("host-a")),
  subdomain: maybe(8, pick("sub")),
  tolerations: maybe(
    15,
    pick<readonly Fields[]>([{ operator: "Exists" }], [{ key: "a", value: "b", effect: "NoSchedule" }]),
  ),
  nodeSelector: maybe(10, pick<Fields>({ zone: "a" })),
  topologySpreadConstraints: maybe(
    6,
    pick<readonly Fields[]>([{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" }]),
  ),
  readinessGates: maybe(8, pick<readonly Fields[]>([{ conditionType: "example.com/ready" }])),
  schedulingGates: maybe(6, pick<readonly Fields[]>([{ name: "example.com/quota" }])),
  priorityClassName: maybe(5, pick("system-node-critical")),
  enableServiceLinks: maybe(6, fc.boolean()),
  os: maybe(3, pick<Fields>({ name: "linux" }, { name: "windows" })),
  resources: maybe(
    3,
    pick<Fields>({ requests: { cpu: "4", memory: "8Gi" } }, { limits: { cpu: "8", memory: "16Gi" } }),
  ),
});

const metadata = fields({
  labels: pick<Fields>({ app: "web", tier: "front" }, { app: "web" }, { app: "api", tier: "back" }),
  annotations: maybe(
    35,
    pick<Fields>(
      { "apps.kruise.io/container-launch-priority": "Ordered" },
      { "example.com/config": '{"a":1}' },
      { "example.com/config": "plain" },
      { "container.apparmor.security.beta.kubernetes.io/main": "runtime/default" },
    ),
  ),
  finalizers: maybe(4, pick(["example.com/keep"])),
});

/** Generates pods whose `metadata` has no name and no namespace. */
export const generatedPods: fc.Arbitrary<{ readonly metadata: Fields; readonly spec: Fields }> = fc
  .tuple(fc.subarray([...VOLUME_NAMES]), fc.subarray([...CLAIM_NAMES]))
  .chain(([names, claims]) =>
    fc.record({
      metadata,
      spec: fc
        // A pod uses a claim as a disk or as a directory, rarely as both.
        .tuple(volumesNamed(names, claims), fields(whole({ volumes: names, claims })))
        .map(([volumes, spec]) => (volumes.length > 0 ? { ...spec, volumes } : spec)),
    }),
  );
