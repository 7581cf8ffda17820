/** Generates pods with ordinary fields and with fields that this project does not know. */
import fc from "fast-check";
import type { Pod } from "../../shared/api/kubernetes.ts";

const optional = <T extends object>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }, requiredKeys: (keyof T)[] = []) =>
  fc.record(model, { requiredKeys: requiredKeys as never, noNullPrototype: true });
export const pick = <T>(...values: T[]) => fc.constantFrom(...values);
export const some = <T>(values: readonly T[], maxLength: number) => fc.shuffledSubarray([...values], { maxLength });
const byName = ({ name }: { readonly name: string }) => name;

export const variables = fc.uniqueArray(
  fc.oneof(
    fc.record({ name: pick("A", "B", "C", "PATH_PART"), value: pick("", "1", "2<") }, { noNullPrototype: true }),
    fc.constant({ name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }),
  ),
  { selector: byName, maxLength: 3 },
);
const quantities = optional({ cpu: pick("100m", "0.5", "2"), memory: pick("64Mi", "1G", "1.5Gi") });
export const limits = fc.record({ limits: quantities, requests: pick({}, { cpu: "1m" }) }, { noNullPrototype: true });

/** Generates mounts of these `volumes`; no two paths are equal. */
export const mountsOf = (volumes: readonly string[]) =>
  some(["/a", "/b", "/c", "/d"], 2).chain((paths) =>
    fc.tuple(
      ...paths.map((mountPath) =>
        fc
          .tuple(pick(...volumes), pick(undefined, undefined, "$(A)/x", "$(PATH_PART)"))
          .map(([name, subPathExpr]) => ({ name, mountPath, ...(subPathExpr ? { subPathExpr } : {}) })),
      ),
    ),
  );

/** Fields that a later version's API server may have. */
const LATER = { laterField: { kept: [1, null, { deep: true }] } };

const appContainer = (name: string) =>
  optional(
    {
      name: fc.constant(name),
      image: fc.constant("app:1"),
      env: variables,
      volumeMounts: mountsOf(["data", "cache"]),
      volumeDevices: pick([{ name: "disk", devicePath: "/dev/x" }]),
      resources: limits,
      laterField: fc.constant(LATER),
    },
    ["name", "image"],
  );
const named = (names: readonly string[], minLength: number) =>
  fc.shuffledSubarray([...names], { minLength }).chain((chosen) => fc.tuple(...chosen.map(appContainer)));

const annotations = optional({
  note: pick("mine"),
  json: pick('{"a":0,"x":null}', "{}", ""),
  "kruise.io/sidecarset-injected-list": pick("before", "alpha"),
  "kruise.io/sidecarset-hash": pick('{"before":"legacy"}', "{}"),
  "kruise.io/sidecarset-working-hotupgrade-container": pick('{"before":"before-2"}', "broken"),
  "apps.kruise.io/container-launch-priority": pick("Ordered", "", "", "", ""),
});

export const pods: fc.Arbitrary<Pod> = fc
  .record(
    {
      metadata: optional(
        {
          name: pick("web-0", "web-1"),
          generateName: fc.constant("web-"),
          labels: fc.constant({ app: "web", source: "main" }),
          annotations,
          finalizers: fc.constant(["later.example.com"]),
          laterField: fc.constant(LATER),
        },
        ["labels"],
      ),
      spec: optional(
        {
          containers: named(["main", "helper", "worker"], 1),
          initContainers: named(["setup", "migrate"], 0),
          volumes: fc.constant([
            { name: "data", emptyDir: {} },
            { name: "disk", ...LATER },
          ]),
          imagePullSecrets: some([{ name: "own" }, { name: "pull-a" }], 2),
          tolerations: fc.constant([{ operator: "Exists", ...LATER }]),
          laterField: fc.constant(LATER),
        },
        ["containers"],
      ),
      laterField: fc.constant(LATER),
    },
    { noNullPrototype: true },
  )
  .map((pod) => ({ apiVersion: "v1", kind: "Pod", ...pod }) as unknown as Pod);
