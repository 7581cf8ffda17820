/** Requests that the optional roles permit, and requests that they refuse. */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { HOME_PODS, PULL_SPEC } from "./fence-write.ts";

const IN_DEFAULT = "/api/v1/namespaces/default";
const PODS = `${IN_DEFAULT}/pods`;
const CLAIMS = `${IN_DEFAULT}/persistentvolumeclaims`;
const CONFIG_MAPS = `${IN_DEFAULT}/configmaps`;
const WORKLOADS = "/apis/apps/v1/namespaces/default";
const DEPLOYMENTS = `${WORKLOADS}/deployments`;
const REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions";
const SETS = "/apis/apps.kruise.io/v1beta1/namespaces/default/statefulsets";
const RECREATE = "/apis/apps.kruise.io/v1beta1/namespaces/default/containerrecreaterequests";
const BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const UNAVAILABLE = "/apis/policy.kruise.io/v1alpha1/namespaces/default/podunavailablebudgets";
const STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses";
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const MUTATING = `${ADMISSION}/mutatingwebhookconfigurations`;
const OURS = "kruise-sidecarset-mutating-webhook-configuration";
const FORMER = "sidecarset-mutating-webhook-configuration";

export interface Request {
  /** the account that sends the request; absent: the reconciler's */
  readonly account?: "sidecarset-webhooks";
  readonly verb: string;
  readonly path: string;
  readonly body?: object;
}

export const METHODS: Readonly<Record<string, string>> = {
  create: "POST",
  get: "GET",
  list: "GET",
  watch: "GET",
  patch: "PATCH",
  update: "PUT",
  delete: "DELETE",
};

const get = (path: string): Request => ({ verb: "get", path });
const list = (path: string): Request => ({ verb: "list", path });
const watch = (path: string): Request => ({ verb: "watch", path: `${path}?watch=true&timeoutSeconds=1` });
const create = (path: string, body: object): Request => ({ verb: "create", path, body });
const patch = (path: string, annotation = "example.com/touched"): Request => ({
  verb: "patch",
  path,
  body: { metadata: { annotations: { [annotation]: "yes" } } },
});
const remove = (path: string): Request => ({ verb: "delete", path });
const byWebhooks = (request: Request): Request => ({ ...request, account: "sidecarset-webhooks" });

/**
 * Owners of the objects. Pods, claims and revisions block the deletion of an owner. Only an account that may change
 * finalizers can set such owners.
 */
const owners: object[] = [];

/** Sets the owner of later pods, claims and revisions. */
export function belongTo(owner: object): void {
  owners.splice(0, owners.length, owner);
}

const owned = (name: string) => ({
  name,
  get ownerReferences() {
    return owners;
  },
});
const barrierOf = (pod: string) => ({
  name: `${pod}-barrier`,
  get ownerReferences() {
    return known.get(pod) ?? [];
  },
});

const pulling = {
  name: "pull",
  labels: { "sidecarset.kruise.io/pre-pull": "x" },
  get ownerReferences() {
    return known.get("undone") ?? [];
  },
};

/** The owner references that pods have, by the name of their owner. */
const known = new Map<string, readonly object[]>();

/** Registers this object as an existing owner. */
export function knowOwner(owner: { readonly apiVersion: string; readonly kind: string }, one: KubernetesObject): void {
  const { name = "", uid } = one.metadata ?? {};
  known.set(name, [{ apiVersion: owner.apiVersion, kind: owner.kind, name, uid }]);
}

export const POD_SPEC = { containers: [{ name: "main", image: "nginx:1.29" }] };
const CLAIM_SPEC = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
const eviction = (name: string) => ({ apiVersion: "policy/v1", kind: "Eviction", metadata: { name } });

export interface Expectation {
  /** requests in order; their objects exist */
  readonly permits: readonly Request[];
  /** requests that the role permits for another write, and that the fence around the reconciler refuses */
  readonly fenced?: readonly Request[];
  readonly forbids: readonly Request[];
}

/** The expected requests by feature, with the names of infra/rbac. */
export const EXPECTATIONS: Readonly<Record<string, Expectation>> = {
  eviction: {
    permits: [create(`${PODS}/prey/eviction`, eviction("prey"))],
    forbids: [
      remove(`${PODS}/kept`),
      create(PODS, { metadata: { name: "new" }, spec: POD_SPEC }),
      create(`${PODS}/kept/binding`, {}),
      create(`${PODS}/kept/exec`, {}),
      get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/one"),
    ],
  },
  "disruption-budgets": {
    permits: [
      list("/apis/policy/v1/poddisruptionbudgets"),
      patch(`${BUDGETS}/one/status`),
      list("/apis/policy.kruise.io/v1alpha1/podunavailablebudgets"),
      patch(`${UNAVAILABLE}/one/status`),
    ],
    forbids: [
      get(`${BUDGETS}/one`),
      patch(`${BUDGETS}/one`),
      patch(`${UNAVAILABLE}/one`),
      create(BUDGETS, { metadata: { name: "two" }, spec: { minAvailable: 1 } }),
      remove(`${BUDGETS}/one`),
      create(`${PODS}/kept/eviction`, eviction("kept")),
    ],
  },
  restart: {
    permits: [
      ...["deployments", "statefulsets", "daemonsets"].flatMap((plural) => [
        get(`${WORKLOADS}/${plural}/one`),
        patch(`${WORKLOADS}/${plural}/one`, "sidecarset.kruise.io/restarted-for"),
      ]),
      get(`${WORKLOADS}/replicasets/one`),
    ],
    forbids: [
      remove(`${DEPLOYMENTS}/one`),
      list(DEPLOYMENTS),
      patch(`${DEPLOYMENTS}/one`),
      patch(`${DEPLOYMENTS}/one/scale`),
      patch("/apis/apps/v1/namespaces/default/replicasets/one"),
      get("/apis/apps/v1/namespaces/default/controllerrevisions/one"),
    ],
  },
  undo: {
    permits: [patch("/apis/apps.kruise.io/v1beta1/sidecarsets/undone", "sidecarset.kruise.io/undone")],
    forbids: [remove("/apis/apps.kruise.io/v1beta1/sidecarsets/undone"), remove(`${PODS}/kept`)],
  },
  "webhook-configuration": {
    permits: [OURS, FORMER].flatMap((name) => [get(`${MUTATING}/${name}`), patch(`${MUTATING}/${name}`)]),
    forbids: [
      get(`${MUTATING}/other`),
      patch(`${MUTATING}/other`),
      list(MUTATING),
      create(MUTATING, { metadata: { name: OURS } }),
      remove(`${MUTATING}/${OURS}`),
      { verb: "update", path: `${MUTATING}/${OURS}`, body: {} },
      get(`${ADMISSION}/validatingwebhookconfigurations/sidecarset-validating-webhook-configuration`),
      patch(`${ADMISSION}/validatingwebhookconfigurations/sidecarset-validating-webhook-configuration`),
    ],
  },
  "launch-order": {
    permits: [
      create(CONFIG_MAPS, { metadata: barrierOf("kept"), data: {} }),
      get(`${CONFIG_MAPS}/kept-barrier`),
      patch(`${CONFIG_MAPS}/kept-barrier`),
    ],
    forbids: [list(CONFIG_MAPS), remove(`${CONFIG_MAPS}/kept-barrier`), get(`${IN_DEFAULT}/secrets/one`)],
  },
  "container-recreate": {
    permits: [
      byWebhooks(get(`${PODS}/kept`)),
      byWebhooks(get("/api/v1/nodes/node-1")),
      patch(`${RECREATE}/again`),
      patch(`${RECREATE}/again/status`),
      remove(`${RECREATE}/again`),
    ],
    forbids: [
      create(RECREATE, { metadata: { name: "other" } }),
      get("/api/v1/nodes/node-1"),
      byWebhooks(list(PODS)),
      byWebhooks(patch(`${RECREATE}/again`)),
      byWebhooks(list("/api/v1/nodes")),
      create(`${PODS}/kept/exec`, {}),
    ],
  },
  "sidecar-terminator": {
    permits: [get("/api/v1/nodes/node-1")],
    forbids: [list("/api/v1/nodes"), patch("/api/v1/nodes/node-1"), remove(`${PODS}/kept`)],
  },
  "native-sidecars": {
    permits: [list("/api/v1/nodes")],
    forbids: [get("/api/v1/nodes/node-1"), patch("/api/v1/nodes/node-1")],
  },
  resize: {
    // Only resources may change in this request.
    permits: [{ verb: "patch", path: `${PODS}/kept/resize`, body: {} }],
    forbids: [remove(`${PODS}/kept`)],
  },
  "pre-pull": {
    permits: [create(HOME_PODS, { metadata: pulling, spec: PULL_SPEC }), remove(`${HOME_PODS}/pull`)],
    forbids: [
      create(PODS, { metadata: { name: "new" }, spec: POD_SPEC }),
      remove(`${PODS}/kept`),
      create(`${HOME_PODS}/pull/exec`, {}),
      create(`${HOME_PODS}/pull/eviction`, eviction("pull")),
      get("/api/v1/namespaces/kruise-system/secrets/registry"),
    ],
  },
  "ordered-sets": {
    permits: [
      get(`${SETS}/db`),
      watch(SETS),
      patch(`${SETS}/db/status`),
      create(PODS, { metadata: owned("db-0"), spec: POD_SPEC }),
      remove(`${PODS}/db-0`),
      create(CLAIMS, { metadata: owned("data-db-0"), spec: CLAIM_SPEC }),
      get(`${CLAIMS}/data-db-0`),
      list(CLAIMS),
      watch(CLAIMS),
      patch(`${CLAIMS}/data-db-0`),
      create(REVISIONS, { metadata: owned("db-1"), revision: 1, data: {} }),
      get(`${REVISIONS}/db-1`),
      list(REVISIONS),
      watch(REVISIONS),
      patch(`${REVISIONS}/db-1`),
      remove(`${REVISIONS}/db-1`),
      create(CONFIG_MAPS, { metadata: owned("statefulset-ledger-db") }),
      get(`${CONFIG_MAPS}/statefulset-ledger-db`),
      patch(`${CONFIG_MAPS}/statefulset-ledger-db`),
      get(`${STORAGE_CLASSES}/standard`),
      byWebhooks(list(STORAGE_CLASSES)),
    ],
    fenced: [remove(`${CLAIMS}/data-db-0`), remove(`${CONFIG_MAPS}/statefulset-ledger-db`)],
    forbids: [
      create(SETS, { metadata: { name: "other" } }),
      patch(`${SETS}/db`),
      remove(`${SETS}/db`),
      { verb: "update", path: `${SETS}/db/scale`, body: {} },
      list("/apis/apps/v1/namespaces/default/statefulsets"),
      list("/api/v1/persistentvolumes"),
      get(`${IN_DEFAULT}/secrets/one`),
      create(`${PODS}/kept/eviction`, eviction("kept")),
      get(`${MUTATING}/${OURS}`),
    ],
  },
};
