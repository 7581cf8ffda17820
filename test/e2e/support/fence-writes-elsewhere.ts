/** Writes to other objects than pods, or in the cluster's own namespaces, that the fence refuses. */
import {
  annotated,
  CLAIMS,
  CONFIG_MAPS,
  condition,
  controller,
  create,
  HOME_MAPS,
  HOME_REVISIONS,
  image,
  inNamespace,
  json,
  LEASES,
  merge,
  ORDERED,
  PLANE,
  patch,
  REVISIONS,
  remove,
  SETS,
  type Write,
} from "./fence-write.ts";

const LEDGER = { generation: "1" };
const CLAIM = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };

const NAMESPACES: readonly Write[] = ["kube-system", PLANE].flatMap((namespace) => [
  patch(`upgrade a pod in ${namespace}`, image("agent", "agent:v2"), inNamespace(namespace, "pods/web")),
  patch(`mark a pod in ${namespace}`, annotated("sidecarset.kruise.io/fence"), inNamespace(namespace, "pods/web")),
  patch(
    `write the condition in ${namespace}`,
    { status: condition("SidecarSetUpgradable") },
    inNamespace(namespace, "pods/web/status"),
  ),
  create(`tell of something in ${namespace}`, inNamespace(namespace, "events"), {
    metadata: { name: "told" },
    involvedObject: { kind: "Pod", name: "web", namespace },
  }),
  create(`make a ledger in ${namespace}`, inNamespace(namespace, "configmaps"), {
    metadata: { name: "sidecarset-ledger-x" },
    data: LEDGER,
  }),
  create(`make a Secret in ${namespace}`, inNamespace(namespace, "secrets"), { metadata: { name: "x" } }),
]);

const CLUSTERS_OWN: readonly Write[] = [
  patch("change how AWS maps accounts", { data: { mapRoles: "" } }, inNamespace("kube-system", "configmaps/aws-auth")),
  patch("change the cluster's DNS", { data: { Corefile: "" } }, inNamespace("kube-system", "configmaps/coredns")),
  create("keep a node alive", inNamespace("kube-node-lease", "leases", "apis/coordination.k8s.io/v1"), {
    metadata: { name: "node-9" },
  }),
  create("make a Secret among our records", inNamespace("kruise-system", "secrets"), { metadata: { name: "x" } }),
  create("make a pod among our records", inNamespace("kruise-system", "pods"), {
    metadata: { name: "x" },
    spec: { containers: [{ name: "a", image: "a" }] },
  }),
];

const MAPS: readonly Write[] = [
  create("make any ConfigMap", CONFIG_MAPS, { metadata: { name: "any" }, data: LEDGER }),
  create("make any ConfigMap among our records", HOME_MAPS, { metadata: { name: "any" }, data: LEDGER }),
  create("make a ledger elsewhere", CONFIG_MAPS, { metadata: { name: "sidecarset-ledger-x" }, data: LEDGER }),
  create("make a ledger of an ordered set", CONFIG_MAPS, { metadata: { name: "statefulset-ledger-db" }, data: LEDGER }),
  create("make a ledger that is none", HOME_MAPS, {
    metadata: { name: "sidecarset-ledger-x" },
    data: { "ca.crt": "x" },
  }),
  create("make a ledger by a prefix alone", HOME_MAPS, { metadata: { generateName: "ledger-" }, data: LEDGER }),
  create("hide something in a ledger", HOME_MAPS, {
    metadata: { name: "sidecarset-ledger-x" },
    binaryData: { generation: "AAAA" },
  }),
  create("make a barrier", CONFIG_MAPS, {
    metadata: {
      name: "web-barrier",
      ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "web", uid: "uid of Pod web" }],
    },
  }),
  patch("change an app's ConfigMap", { data: { a: "c" } }, `${CONFIG_MAPS}/app`),
  patch("change what annotations are allowed", { data: { x: "y" } }, `${HOME_MAPS}/kruise-configuration`),
  remove("delete a ledger", `${HOME_MAPS}/sidecarset-ledger-there`),
  remove("delete an app's ConfigMap", `${CONFIG_MAPS}/app`),
];

const RECORDS: readonly Write[] = [
  create("take another Lease", LEASES, { metadata: { name: "kube-scheduler" } }),
  remove("delete the Lease", `${LEASES}/sidecarset-ordered-sets`),
  create("record a revision of nothing", HOME_REVISIONS, { metadata: { name: "x" }, revision: 1, data: {} }),
  create("record a revision elsewhere", REVISIONS, {
    metadata: { name: "x", ownerReferences: [controller("apps.kruise.io/v1beta1", "SidecarSet")] },
    revision: 1,
    data: {},
  }),
  create("record a revision of an ordered set", REVISIONS, {
    metadata: { name: "x", ownerReferences: [ORDERED] },
    revision: 1,
    data: {},
  }),
  json(
    "change what a DaemonSet goes back to",
    [{ op: "replace", path: "/revision", value: 9 }],
    `${REVISIONS}/daemon-1`,
  ),
  json(
    "take a DaemonSet's revision",
    [{ op: "add", path: "/metadata/ownerReferences", value: [ORDERED] }],
    `${REVISIONS}/daemon-1`,
  ),
  remove("delete a DaemonSet's revision", `${REVISIONS}/daemon-1`),
  create("make a claim", CLAIMS, { metadata: { name: "x" }, spec: CLAIM }),
  patch("change a claim", annotated("example.com/other"), `${CLAIMS}/there`),
  remove("delete a claim", `${CLAIMS}/there`),
];

const SIDECARSETS: readonly Write[] = [
  create("make a SidecarSet", SETS, {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: "fence-new" },
    spec: { selector: { matchLabels: { a: "b" } }, containers: [{ name: "a", image: "a" }] },
  }),
  merge("change a SidecarSet", { spec: { updateStrategy: { paused: true } } }, `${SETS}/fence-plain`),
  merge("change one that may be undone", { spec: { updateStrategy: { paused: true } } }, `${SETS}/fence-undone`),
  remove("delete a SidecarSet", `${SETS}/fence-plain`),
];

/** Writes that the fence refuses without optional roles. */
export const DENIED_ELSEWHERE: readonly Write[] = [...NAMESPACES, ...CLUSTERS_OWN, ...MAPS, ...RECORDS, ...SIDECARSETS];
