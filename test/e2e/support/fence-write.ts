/** A write, with what the fence must say about it. */

export interface Write {
  /** text that completes "the reconciler may …" */
  readonly what: string;
  readonly method: "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: object;
  /** type of the patch; absent: strategic */
  readonly type?: "json" | "merge";
  /** true if no kubelet here could carry the call out */
  readonly isConnect?: boolean;
}

export const SHOP = "fence-shop";
/** A namespace whose label says that it belongs to a control plane. */
export const PLANE = "fence-plane";

export const inNamespace = (namespace: string, plural: string, group = "api/v1") =>
  `/${group}/namespaces/${namespace}/${plural}`;
export const PODS = inNamespace(SHOP, "pods");
export const CONFIG_MAPS = inNamespace(SHOP, "configmaps");
export const HOME_MAPS = inNamespace("kruise-system", "configmaps");
export const HOME_PODS = inNamespace("kruise-system", "pods");
export const LEASES = inNamespace("kruise-system", "leases", "apis/coordination.k8s.io/v1");
export const REVISIONS = inNamespace(SHOP, "controllerrevisions", "apis/apps/v1");
export const HOME_REVISIONS = inNamespace("kruise-system", "controllerrevisions", "apis/apps/v1");
export const CLAIMS = inNamespace(SHOP, "persistentvolumeclaims");
export const SETS = "/apis/apps.kruise.io/v1beta1/sidecarsets";

/** Returns a patch of pod web, or of another path. */
export const patch = (what: string, body: object, path = `${PODS}/web`): Write => ({
  what,
  method: "PATCH",
  path,
  body,
});
export const json = (what: string, operations: readonly object[], path = `${PODS}/web`): Write => ({
  ...patch(what, operations, path),
  type: "json",
});
export const merge = (what: string, body: object, path: string): Write => ({
  ...patch(what, body, path),
  type: "merge",
});
export const create = (what: string, path: string, body: object): Write => ({ what, method: "POST", path, body });
export const remove = (what: string, path: string): Write => ({ what, method: "DELETE", path });

export const statusOf = (what: string, body: object, pod = "web") =>
  patch(what, { status: body }, `${PODS}/${pod}/status`);
export const image = (name: string, to: string) => ({ spec: { containers: [{ name, image: to }] } });
export const annotated = (key: string, value: string | null = "x") => ({ metadata: { annotations: { [key]: value } } });
export const condition = (type: string) => ({ conditions: [{ type, status: "True", message: "{}" }] });
export const cpu = (name: string) => ({ spec: { containers: [{ name, resources: { requests: { cpu: "2m" } } }] } });

/** Returns a reference to an owner that is the controller. */
export const controller = (apiVersion: string, kind: string, name = "db") => ({
  apiVersion,
  kind,
  name,
  // The placeholder is replaced by the uid of an existing object.
  uid: `uid of ${kind} ${name}`,
  controller: true,
});
export const ORDERED = controller("apps.kruise.io/v1beta1", "StatefulSet");

/** A pod that pulls images, as passes create it. */
export const PULLING = {
  name: "image-0",
  image: "agent:v2",
  command: ["true"],
  securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
};
export const PULL_SPEC = {
  nodeName: "node-1",
  restartPolicy: "Never",
  terminationGracePeriodSeconds: 0,
  activeDeadlineSeconds: 600,
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  tolerations: [{ operator: "Exists" }],
  imagePullSecrets: [{ name: "registry" }],
  securityContext: { runAsNonRoot: true, runAsUser: 65_534, seccompProfile: { type: "RuntimeDefault" } },
  containers: [PULLING],
};
