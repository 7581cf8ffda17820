/** The writes that each optional role adds to the fence, and the ones that are still refused. */
import {
  annotated,
  CLAIMS,
  CONFIG_MAPS,
  condition,
  controller,
  cpu,
  create,
  HOME_MAPS,
  HOME_PODS,
  image,
  inNamespace,
  json,
  merge,
  ORDERED,
  PODS,
  PULL_SPEC,
  PULLING,
  patch,
  REVISIONS,
  remove,
  SETS,
  statusOf,
  type Write,
} from "./fence-write.ts";

const DIGEST = `sha256:${"a".repeat(64)}`;
const OTHER_DIGEST = `sha256:${"b".repeat(64)}`;
/** The path of a pod that no kubelet runs, so its status stays the same. */
const WAITING = `${PODS}/gated`;
const POD_OWNER = { apiVersion: "v1", kind: "Pod", name: "web", uid: "uid of Pod web" };
const CLAIM = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
const AWS_AUTH = inNamespace("kube-system", "configmaps/aws-auth");
const BUDGET = `${inNamespace("fence-shop", "poddisruptionbudgets", "apis/policy/v1")}/guard`;
const BUDGET_STATUS = `${BUDGET}/status`;
const DAEMON = `${inNamespace("fence-shop", "daemonsets", "apis/apps/v1")}/daemon`;
const RESTART = { spec: { template: annotated("kubectl.kubernetes.io/restartedAt", "2026-01-01T00:00:00Z") } };
const eviction = (name: string) => ({ apiVersion: "policy/v1", kind: "Eviction", metadata: { name } });

const PULL_OWNER = controller("apps.kruise.io/v1beta1", "SidecarSet", "fence-plain");

/** Returns a pod that pulls images, with these changes. */
const pull = (
  what: string,
  { spec = {}, container = {}, metadata = {} }: { spec?: object; container?: object; metadata?: object },
  { path = HOME_PODS, name = "pull-tried" } = {},
): Write =>
  create(what, path, {
    metadata: { name, labels: { "sidecarset.kruise.io/pre-pull": "x" }, ownerReferences: [PULL_OWNER], ...metadata },
    spec: { ...PULL_SPEC, containers: [{ ...PULLING, ...container }], ...spec },
  });
const within = (securityContext: object) => ({
  container: { securityContext: { ...PULLING.securityContext, ...securityContext } },
});

/** A role's effect on the fence. `permits` are carried out in this order. */
export interface Widening {
  readonly permits: readonly Write[];
  readonly denies: readonly Write[];
}

const NO_OTHER_MAP: readonly Write[] = [
  patch("change how AWS maps accounts", { data: { mapRoles: "" } }, AWS_AUTH),
  patch("change an app's ConfigMap", { data: { a: "c" } }, `${CONFIG_MAPS}/app`),
  create("make any ConfigMap", CONFIG_MAPS, { metadata: { name: "any" } }),
  create("make any ConfigMap in kube-system", inNamespace("kube-system", "configmaps"), { metadata: { name: "any" } }),
  patch("change what annotations are allowed", { data: { x: "y" } }, `${HOME_MAPS}/kruise-configuration`),
];

export const WIDENED: Readonly<Record<string, Widening>> = {
  "launch-order": {
    permits: [
      create("make a pod's barrier", CONFIG_MAPS, {
        metadata: { name: "web-barrier", ownerReferences: [POD_OWNER] },
        data: { p_1: "true" },
      }),
      merge("open it", { data: { p_0: "true" } }, `${CONFIG_MAPS}/web-barrier`),
      patch("say that a launch is over", annotated("apps.kruise.io/container-launch-priority-completed", "true")),
    ],
    denies: [
      ...NO_OTHER_MAP,
      create("make a barrier that no pod owns", CONFIG_MAPS, { metadata: { name: "x-barrier" } }),
      create("make a barrier of another pod", CONFIG_MAPS, {
        metadata: { name: "x-barrier", ownerReferences: [POD_OWNER] },
      }),
      create("put a file into a barrier", CONFIG_MAPS, {
        metadata: { name: "prey-barrier", ownerReferences: [{ ...POD_OWNER, name: "prey" }] },
        data: { "ca.crt": "x" },
      }),
      merge(
        "take over an app's ConfigMap that is named as a barrier",
        { metadata: { ownerReferences: [{ ...POD_OWNER, name: "app" }] } },
        `${CONFIG_MAPS}/app-barrier`,
      ),
      remove("delete a barrier", `${CONFIG_MAPS}/web-barrier`),
    ],
  },
  "container-recreate": {
    permits: [
      patch("write an image as the registry's", image("app", "docker.io/library/app:v1"), WAITING),
      patch("and briefly again, with its digest", image("app", `app:v1@${DIGEST}`), WAITING),
      patch("by its digest alone", image("app", `app@${DIGEST}`), WAITING),
      patch("with a tag that says nothing", image("app", `app:latest@${DIGEST}`), WAITING),
      patch("of a registry with a port", image("ported", "localhost:5000/app:latest"), WAITING),
      patch("remember it", annotated("sidecarset.kruise.io/recreated-containers")),
      statusOf("hold a pod unready", condition("KruisePodReady")),
    ],
    denies: [
      patch("give the app another image", image("app", "app:v2"), WAITING),
      patch("give the app another digest", image("app", `app:latest@${OTHER_DIGEST}`), WAITING),
      patch("give the app another repository", image("app", `evil:latest@${OTHER_DIGEST}`), WAITING),
      patch("give another registry's app", image("ported", "localhost:5001/app"), WAITING),
      patch("give another tag behind a port", image("ported", "localhost:5000/app:v2"), WAITING),
      statusOf("write the condition InPlaceUpdateReady", condition("InPlaceUpdateReady")),
    ],
  },
  "sidecar-terminator": {
    permits: [
      patch("end a job's sidecar by its image", image("ending", "exit:1"), `${PODS}/job`),
      statusOf("end a job", { phase: "Succeeded", ...condition("SidecarTerminated") }, "job"),
    ],
    denies: [
      patch("give it another image", image("ending", "evil:1"), `${PODS}/job`),
      statusOf("end a pod that is no job", { phase: "Failed" }),
    ],
  },
  "native-sidecars": {
    permits: [patch("change a native sidecar", { spec: { initContainers: [{ name: "native", image: "native:v2" }] } })],
    denies: [patch("change an init container", { spec: { initContainers: [{ name: "setup", image: "evil:1" }] } })],
  },
  resize: {
    permits: [patch("change a sidecar's resources", cpu("agent"), `${PODS}/web/resize`)],
    denies: [patch("change the app's resources", cpu("app"), `${PODS}/web/resize`)],
  },
  eviction: {
    permits: [create("evict a pod", `${PODS}/prey/eviction`, eviction("prey"))],
    denies: [remove("delete a pod", `${PODS}/web`)],
  },
  restart: {
    permits: [
      merge("restart a workload", { ...annotated("sidecarset.kruise.io/restarted-for", "a=b"), ...RESTART }, DAEMON),
      merge("fence it", annotated("sidecarset.kruise.io/fence", "1"), DAEMON),
    ],
    denies: [
      merge("change another annotation", annotated("example.com/other"), DAEMON),
      merge("change a label", { metadata: { labels: { a: "b" } } }, DAEMON),
      merge("annotate its pods otherwise", { spec: { template: annotated("example.com/other") } }, DAEMON),
      patch("change an image", { spec: { template: image("a", "b") } }, DAEMON),
      merge("change its strategy", { spec: { updateStrategy: { type: "OnDelete" } } }, DAEMON),
      remove("delete it", DAEMON),
    ],
  },
  "disruption-budgets": {
    permits: [
      merge("have a budget count a pod", { status: { disruptedPods: { web: "2026-01-01T00:00:00Z" } } }, BUDGET_STATUS),
      merge("and forget it", { status: { disruptedPods: { web: null } } }, BUDGET_STATUS),
    ],
    denies: [
      merge("allow more than the budget does", { status: { disruptionsAllowed: 5 } }, BUDGET_STATUS),
      merge("say that more are healthy", { status: { currentHealthy: 9 } }, BUDGET_STATUS),
      merge("change what a budget asks for", { spec: { minAvailable: 0 } }, BUDGET),
      remove("delete a budget", BUDGET),
    ],
  },
  undo: {
    permits: [
      merge(
        "put back one that may be undone",
        {
          spec: { updateStrategy: { paused: true } },
          metadata: { annotations: { "sidecarset.kruise.io/undone": "[]" } },
        },
        `${SETS}/fence-undone`,
      ),
    ],
    denies: [
      merge("change another", { spec: { updateStrategy: { paused: true } } }, `${SETS}/fence-plain`),
      merge("ask for it first", annotated("sidecarset.kruise.io/undo-on-halt", "true"), `${SETS}/fence-plain`),
      merge("change a label", { metadata: { labels: { a: "b" } } }, `${SETS}/fence-undone`),
      merge("take its gate away", annotated("sidecarset.kruise.io/gate", null), `${SETS}/fence-undone`),
    ],
  },
  "pre-pull": {
    permits: [
      pull("create a pod that pulls", {}, { name: "pull-0" }),
      remove("delete it", `${HOME_PODS}/pull-0`),
      pull("create the next one", {}, { name: "pull-1" }),
    ],
    denies: [
      pull("mount a path of the node", { spec: { volumes: [{ name: "root", hostPath: { path: "/" } }] } }),
      pull("mount a Secret", { spec: { volumes: [{ name: "token", secret: { secretName: "any" } }] } }),
      pull("pull in another namespace", {}, { path: PODS }),
      pull("be privileged", { container: { securityContext: { privileged: true, capabilities: { drop: ["ALL"] } } } }),
      pull("escalate", { container: { securityContext: { capabilities: { drop: ["ALL"] } } } }),
      pull("keep capabilities", within({ capabilities: {} })),
      pull("add a capability", within({ capabilities: { drop: ["ALL"], add: ["NET_ADMIN"] } })),
      pull("be root in a container", within({ runAsNonRoot: false, runAsUser: 0 })),
      pull("be root", { spec: { securityContext: { seccompProfile: { type: "RuntimeDefault" } } } }),
      pull("make any system call", within({ seccompProfile: { type: "Unconfined" } })),
      pull("have a token", { spec: { automountServiceAccountToken: true } }),
      pull("be another account", { spec: { serviceAccountName: "sidecarset-reconciler" } }),
      pull("be on the node's network", { spec: { hostNetwork: true } }),
      pull("see the node's processes", { spec: { hostPID: true } }),
      pull("run something", { container: { command: ["sh", "-c", "id"] } }),
      pull("give it arguments", { container: { args: ["x"] } }),
      pull("give it an environment", { container: { env: [{ name: "PATH", value: "/evil" }] } }),
      pull("probe by a command", { container: { startupProbe: { exec: { command: ["id"] } } } }),
      pull("take a port of the node", { container: { ports: [{ containerPort: 80, hostPort: 80 }] } }),
      pull("run an init container", { spec: { initContainers: [{ name: "first", image: "evil:1" }] } }),
      pull("stay for good", { spec: { activeDeadlineSeconds: null } }),
      pull("start again", { spec: { restartPolicy: "Always" } }),
      pull("be placed by the scheduler", { spec: { nodeName: null } }),
      pull("have others make room", { spec: { priorityClassName: "system-node-critical" } }),
      pull("belong to nobody", { metadata: { ownerReferences: [] } }),
      pull("belong to an app", { metadata: { ownerReferences: [controller("apps/v1", "DaemonSet", "daemon")] } }),
      pull("be without its label", { metadata: { labels: {} } }),
      patch("change a pod that pulls", image("image-0", "evil:1"), `${HOME_PODS}/pull-1`),
      patch(
        "label another pod there",
        { metadata: { labels: { "sidecarset.kruise.io/pre-pull": "x" } } },
        `${HOME_PODS}/web`,
      ),
      remove("delete another pod there", `${HOME_PODS}/web`),
      remove("delete a pod elsewhere", `${PODS}/web`),
      create("evict a pod that pulls", `${HOME_PODS}/pull-1/eviction`, eviction("pull-1")),
    ],
  },
  "ordered-sets": {
    permits: [
      create("create a pod of an ordered set", PODS, {
        metadata: { name: "db-0", ownerReferences: [ORDERED] },
        spec: { containers: [{ name: "a", image: "a" }] },
      }),
      patch(
        "update it",
        { ...image("a", "a:2"), metadata: { labels: { v: "2" }, annotations: { "a/b": "c" } } },
        `${PODS}/db-0`,
      ),
      statusOf("hold it unready", condition("InPlaceUpdateReady"), "db-0"),
      json("release it", [{ op: "remove", path: "/metadata/ownerReferences" }], `${PODS}/db-0`),
      patch("adopt it", { metadata: { ownerReferences: [ORDERED] } }, `${PODS}/db-0`),
      remove("delete it", `${PODS}/db-0`),
      create("make its ledger", CONFIG_MAPS, {
        metadata: { name: "statefulset-ledger-db" },
        data: { generation: "1" },
      }),
      create("record its revision", REVISIONS, {
        metadata: { name: "db-1", ownerReferences: [ORDERED] },
        revision: 1,
        data: {},
      }),
      create("make its claim", CLAIMS, { metadata: { name: "data-db-0" }, spec: CLAIM }),
      patch("mark its claim", annotated("apps.kruise.io/owned-by-asts", "db"), `${CLAIMS}/data-db-0`),
    ],
    denies: [
      ...NO_OTHER_MAP,
      create("create a pod of nobody", PODS, {
        metadata: { name: "x" },
        spec: { containers: [{ name: "a", image: "a" }] },
      }),
      create("create a pod of a Deployment", PODS, {
        metadata: { name: "x", ownerReferences: [controller("apps/v1", "ReplicaSet")] },
        spec: { containers: [{ name: "a", image: "a" }] },
      }),
      remove("delete another pod", `${PODS}/web`),
      patch("change another pod", image("app", "app:v2")),
      patch("adopt and change at once", { ...image("app", "app:v2"), metadata: { ownerReferences: [ORDERED] } }),
      remove("delete a claim", `${CLAIMS}/data-db-0`),
      remove("delete its ledger", `${CONFIG_MAPS}/statefulset-ledger-db`),
      remove("delete a DaemonSet's revision", `${REVISIONS}/daemon-1`),
      create("create a pod in kube-system", inNamespace("kube-system", "pods"), {
        metadata: { name: "x", ownerReferences: [ORDERED] },
        spec: { containers: [{ name: "a", image: "a" }] },
      }),
    ],
  },
};
