/** The built-in admission plugins that touch pods: ServiceAccount, Priority, DefaultTolerationSeconds. */

import { SERVICE_ACCOUNT } from "../kinds/built-in-kinds.ts";
import { randomSuffix } from "../kinds/names.ts";
import type { Api, Call } from "../storage/api.ts";
import { asList, asText, childOf, copyOf, type JsonObject, objectsIn, setDefault } from "../storage/json.ts";
import { type ApiObject, storageKey } from "../storage/object.ts";
import { forbidden } from "../storage/status-error.ts";

const TOKEN_PREFIX = "kube-api-access-";
const TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";
const TAINTS = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

function tokenVolume(name: string): JsonObject {
  const sources = [
    { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
    { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
    {
      downwardAPI: { items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }] },
    },
  ];
  return { name, projected: { sources, defaultMode: 420 } };
}

function mountToken(spec: JsonObject, name: string): void {
  for (const container of [...objectsIn(spec["initContainers"]), ...objectsIn(spec["containers"])]) {
    const mounts = asList(container["volumeMounts"]);
    if (objectsIn(mounts).some((mount) => mount["mountPath"] === TOKEN_PATH)) continue;
    container["volumeMounts"] = [...mounts, { name, readOnly: true, mountPath: TOKEN_PATH }];
  }
}

function addToken(spec: JsonObject, random: () => number): void {
  if (spec["automountServiceAccountToken"] === false) return;
  const volumes = objectsIn(spec["volumes"]);
  const present = volumes.find((volume) => asText(volume["name"]).startsWith(TOKEN_PREFIX));
  const name = asText(present?.["name"]) || `${TOKEN_PREFIX}${randomSuffix(random)}`;
  if (present === undefined) spec["volumes"] = [...volumes, tokenVolume(name)];
  mountToken(spec, name);
}

function setAccount(api: Api, call: Call, spec: JsonObject): void {
  const name = asText(spec["serviceAccountName"]) || "default";
  spec["serviceAccountName"] = name;
  spec["serviceAccount"] = name;
  const key = storageKey({ namespace: call.namespace, name });
  // "default" comes with its namespace, a moment later.
  if (name !== "default" && api.store.get(SERVICE_ACCOUNT.collection, key) === undefined) {
    const place = `${call.namespace}/${name}`;
    throw forbidden(
      call.kind,
      call.name,
      `error looking up service account ${place}: serviceaccount "${name}" not found`,
    );
  }
}

function addTolerations(spec: JsonObject): void {
  const present = objectsIn(spec["tolerations"]);
  const missing = TAINTS.filter((key) => !present.some((one) => one["key"] === key || one["key"] === undefined));
  const added = missing.map((key) => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 }));
  if (added.length > 0) spec["tolerations"] = [...present, ...added];
}

/** Answers a new pod; run a second time it adds only what is still missing. */
export function admitPod(api: Api, call: Call, original: ApiObject): ApiObject {
  const pod = copyOf(original);
  const spec = childOf(pod, "spec");
  setAccount(api, call, spec);
  addToken(spec, api.random);
  addTolerations(spec);
  setDefault(spec, "priority", 0);
  setDefault(spec, "preemptionPolicy", "PreemptLowerPriority");
  return pod;
}
