/** Which lists of built-in kinds merge, by which key: the patchMergeKey and patchStrategy tags of k8s.io/api. */

/** By field name, which is unambiguous in the kinds served here but for `ports` of a Service. */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  containers: "name",
  initContainers: "name",
  ephemeralContainers: "name",
  volumes: "name",
  imagePullSecrets: "name",
  env: "name",
  ports: "containerPort",
  volumeMounts: "mountPath",
  volumeDevices: "devicePath",
  hostAliases: "ip",
  podIPs: "ip",
  topologySpreadConstraints: "topologyKey",
  schedulingGates: "name",
  resourceClaims: "name",
  conditions: "type",
  addresses: "type",
  ownerReferences: "uid",
  webhooks: "name",
  secrets: "name",
};

/** Lists of plain values that merge as sets. */
const SETS: ReadonlySet<string> = new Set(["finalizers", "podCIDRs"]);

/** Objects where only the keys named in `$retainKeys` stay. */
export type ListStrategy = { readonly mergeKey: string } | "set" | "atomic";

/** How a list field of a kind merges. apiextensions has no merging lists outside metadata. */
export function listStrategy(group: string, kind: string, field: string): ListStrategy {
  if (SETS.has(field)) return "set";
  if (group === "apiextensions.k8s.io" && field !== "ownerReferences") return "atomic";
  if (kind === "Service" && field === "ports") return { mergeKey: "port" };
  const mergeKey = Object.hasOwn(MERGE_KEYS, field) ? MERGE_KEYS[field] : undefined;
  return mergeKey === undefined ? "atomic" : { mergeKey };
}
