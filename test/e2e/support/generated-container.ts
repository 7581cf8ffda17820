/** Generates containers as people write them, with everything that injection may meet, copy or move. */
import fc from "fast-check";

export type Fields = Readonly<Record<string, unknown>>;

export const pick = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values);

/** Generates a value in `percent` of the cases; otherwise the field is absent. */
export const maybe = <T>(percent: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.nat(99).chain((dice): fc.Arbitrary<T | undefined> => (dice < percent ? arbitrary : fc.constant(undefined)));

/** Generates an object without the fields that are absent. */
export const fields = (model: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<Fields> =>
  fc
    .record(model, { noNullPrototype: true })
    .map((all) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)));

export const someOf = <T>(values: readonly T[], maxLength: number): fc.Arbitrary<T[]> =>
  fc.shuffledSubarray([...values], { minLength: 1, maxLength: Math.min(maxLength, values.length) });

const port = fields({
  name: maybe(40, pick("http", "admin", "metrics")),
  containerPort: pick(80, 8080, 9090, 15001),
  hostPort: maybe(3, pick(8080, 9090, 30001)),
  protocol: maybe(30, pick("TCP", "UDP")),
});

const VARIABLES: readonly Fields[] = [
  { name: "REGION", value: "eu" },
  { name: "GREETING", value: "hello $(REGION)" },
  { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
  { name: "POD_IP", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "status.podIP" } } },
  { name: "TIER", valueFrom: { fieldRef: { fieldPath: "metadata.labels['tier']" } } },
  { name: "CPU", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
  { name: "MEMORY", valueFrom: { resourceFieldRef: { containerName: "main", resource: "requests.memory" } } },
  { name: "CONFIG", valueFrom: { configMapKeyRef: { name: "settings", key: "config", optional: true } } },
  { name: "PASSWORD", valueFrom: { secretKeyRef: { name: "login", key: "password" } } },
];

const resources = pick<Fields>(
  { limits: { cpu: "1", memory: "1Gi" } },
  { requests: { cpu: "100m", memory: "0.5Gi" } },
  { limits: { cpu: "2", "ephemeral-storage": "1Gi" }, requests: { cpu: "1.5" } },
  { limits: { "example.com/gpu": "1" }, requests: { "example.com/gpu": 1 } },
  { limits: { cpu: "500m", memory: "64Mi", "hugepages-2Mi": "4Mi" } },
);

const action = pick<Fields>(
  { httpGet: { path: "/healthz", port: 8080 } },
  { httpGet: { path: "/", port: "http", scheme: "HTTPS", httpHeaders: [{ name: "X-Probe", value: "1" }] } },
  { tcpSocket: { port: 80 } },
  { exec: { command: ["true"] } },
  { grpc: { port: 9090 } },
);
const probe = fc.tuple(action, pick<Fields>({}, { initialDelaySeconds: 3 }, { periodSeconds: 5, failureThreshold: 1 }));
/** The probe is complete, because a SidecarSet's startup probe gets no defaults. */
const startupProbe = pick<Fields>({
  tcpSocket: { port: 80 },
  timeoutSeconds: 1,
  periodSeconds: 2,
  successThreshold: 1,
  failureThreshold: 30,
});
const lifecycle = pick<Fields>(
  { preStop: { sleep: { seconds: 1 } } },
  { postStart: { exec: { command: ["true"] } } },
  { preStop: { httpGet: { port: 8080 } } },
);

const securityContext = pick<Fields>(
  { privileged: true },
  { runAsUser: 1337, runAsGroup: 1337, runAsNonRoot: true },
  { capabilities: { add: ["NET_ADMIN"], drop: ["ALL"] }, allowPrivilegeEscalation: false },
  { readOnlyRootFilesystem: true, seccompProfile: { type: "RuntimeDefault" } },
  { appArmorProfile: { type: "Unconfined" }, procMount: "Default" },
);

const resizePolicy = pick<readonly Fields[]>(
  [{ resourceName: "cpu", restartPolicy: "NotRequired" }],
  [{ resourceName: "memory", restartPolicy: "RestartContainer" }],
);

const PATHS = ["/data", "/cache", "/etc/conf", "/var/log", "/data/sub"];
const mountAt = (mountPath: string, volumes: readonly string[]) =>
  fields({
    name: pick(...volumes),
    mountPath: fc.constant(mountPath),
    readOnly: maybe(20, fc.boolean()),
    subPath: maybe(10, pick("logs", "a/b")),
    mountPropagation: maybe(8, pick(...Array(9).fill("HostToContainer"), "Bidirectional")),
  });
const expandedMount = (volumes: readonly string[]) =>
  fields({
    name: pick(...volumes),
    mountPath: fc.constant("/expanded"),
    subPathExpr: pick("$(POD_NAME)/logs", "$(REGION)", "$(POD_NAME)-$(POD_IP)"),
  });

const mounts = (volumes: readonly string[]) =>
  someOf(PATHS, 3)
    .chain((paths) =>
      fc.tuple(fc.tuple(...paths.map((path) => mountAt(path, volumes))), maybe(20, expandedMount(volumes))),
    )
    .map(([plain, expanded]) => (expanded === undefined ? plain : [...plain, expanded]));

const devices = (claims: readonly string[]) =>
  someOf(claims, 2).map((names) =>
    names.map((name) => ({ name, devicePath: `/dev/${name === "disk" ? "xvda" : "xvdb"}` })),
  );

export interface ContainerPlace {
  readonly name: string;
  /** names of volumes that the container may mount */
  readonly volumes: readonly string[];
  /** names of claims that the container may use as block devices */
  readonly claims: readonly string[];
  /** true for init containers that run to completion: no probes, no hooks, no resizing */
  readonly isPlainInit?: boolean;
}

export function containerFields({ name, volumes, claims, isPlainInit = false }: ContainerPlace) {
  const lasting = isPlainInit
    ? {}
    : {
        livenessProbe: maybe(
          15,
          probe.map(([how, when]) => ({ ...how, ...when })),
        ),
        readinessProbe: maybe(
          15,
          probe.map(([how, when]) => ({ ...how, ...when })),
        ),
        startupProbe: maybe(8, startupProbe),
        lifecycle: maybe(15, lifecycle),
        resizePolicy: maybe(3, resizePolicy),
      };
  return {
    name: fc.constant(name),
    image: pick("registry.example/app:1", "busybox", "app:latest", `app@sha256:${"0".repeat(64)}`),
    command: maybe(20, pick(["sh", "-c", "sleep 1"], ["/bin/app"])),
    args: maybe(15, pick(["--verbose", "$(REGION)"], [])),
    workingDir: maybe(10, pick("/work")),
    ports: maybe(
      40,
      fc.uniqueArray(port, { maxLength: 2, selector: (one) => `${one["name"]}${one["containerPort"]}` }),
    ),
    env: maybe(60, someOf(VARIABLES, 5)),
    envFrom: maybe(
      10,
      pick<readonly Fields[]>(
        [{ configMapRef: { name: "settings" } }],
        [{ prefix: "P_", secretRef: { name: "login", optional: true } }],
      ),
    ),
    resources: maybe(45, resources),
    volumeMounts: volumes.length === 0 ? fc.constant(undefined) : maybe(60, mounts(volumes)),
    volumeDevices: claims.length === 0 ? fc.constant(undefined) : maybe(40, devices(claims)),
    ...lasting,
    terminationMessagePath: maybe(10, pick("/dev/log")),
    terminationMessagePolicy: maybe(10, pick("FallbackToLogsOnError")),
    imagePullPolicy: maybe(20, pick("Always", "Never", "IfNotPresent")),
    securityContext: maybe(25, securityContext),
    stdin: maybe(5, fc.boolean()),
    tty: maybe(5, fc.boolean()),
  };
}
