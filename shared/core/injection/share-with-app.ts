/** The mounts, devices and variables of the pod that a sidecar shares. */
import type { Container, EnvVar, ObjectMeta, VolumeDevice, VolumeMount } from "../../api/kubernetes.ts";
import { IS_INJECTED_ENV } from "../../api/names.ts";
import type { FieldReference, SidecarContainer, TransferEnvVar } from "../../api/sidecarset.ts";
import { compareUtf8 } from "../../go/json/go-json.ts";
import { qualifiedNameErrors } from "../../go/label-name.ts";

/** `$(NAME)` in a subPathExpr. Compat: the escape `$$(NAME)` counts as well (vector subpathexpr-odd-names). */
const [DOLLAR, OPEN, CLOSE] = [0x24, 0x28, 0x29];
/** The role of each ASCII character in a name: it may begin one, or only continue it. */
const [BEGINS, GOES_ON] = [2, 1];
const LETTERS = Uint8Array.from({ length: 128 }, (_, code) => {
  const letter = String.fromCharCode(code);
  return /[-._a-zA-Z]/.test(letter) ? BEGINS : /\d/.test(letter) ? GOES_ON : 0;
});

export interface Shared {
  /** the variables in the subPathExpr of shared mounts, from the container that mounts there */
  readonly env: readonly EnvVar[];
  /** the sidecar's mounts, and the app containers' at paths that are still free */
  readonly volumeMounts: readonly VolumeMount[];
  /** the same for devices, at paths that no mount or device uses */
  readonly volumeDevices: readonly VolumeDevice[];
}

/** The sidecar's mounts, devices and variables, including shared ones. */
export function shareVolumes(sidecar: SidecarContainer, containers: readonly Container[]): Shared {
  const apps = appContainers(containers);
  const volumeMounts = sharesMounts(sidecar) ? mountsWithShared(sidecar, apps) : (sidecar.volumeMounts ?? []);
  const volumeDevices = sharesDevices(sidecar)
    ? devicesWithShared(sidecar, apps, volumeMounts)
    : (sidecar.volumeDevices ?? []);
  return { env: sharesMounts(sidecar) ? subPathEnv(apps) : [], volumeMounts, volumeDevices };
}

function sharesMounts({ shareVolumePolicy }: SidecarContainer): boolean {
  return shareVolumePolicy?.type === "enabled";
}

function sharesDevices({ shareVolumeDevicePolicy }: SidecarContainer): boolean {
  return shareVolumeDevicePolicy?.type === "enabled";
}

/** The containers that no SidecarSet has put into the pod. */
function appContainers(containers: readonly Container[]): readonly Container[] {
  return containers.filter(({ env }) => env?.find(({ name }) => name === IS_INJECTED_ENV)?.value !== "true");
}

function subPathEnv(apps: readonly Container[]): readonly EnvVar[] {
  return apps.flatMap(({ env, volumeMounts }) => {
    const paths = (volumeMounts ?? []).flatMap(({ subPathExpr }) => subPathExpr || []);
    if (paths.length === 0 || !env?.length) return [];
    const variables = new Map(env.toReversed().map((variable) => [variable.name, variable]));
    const named = new Set<EnvVar>();
    for (const path of paths) addNamed(path, variables, named);
    return [...named];
  });
}

/**
 * Adds the variables named in a text. A pod may contain hundreds of thousands of names, so each letter is read once and
 * only names of variables are kept.
 */
function addNamed(text: string, variables: ReadonlyMap<string, EnvVar>, named: Set<EnvVar>): void {
  for (let at = 1; at < text.length; at++) {
    if (text.charCodeAt(at) !== OPEN || text.charCodeAt(at - 1) !== DOLLAR) continue;
    const end = endOfName(text, at + 1);
    const variable = text.charCodeAt(end) === CLOSE ? variables.get(text.slice(at + 1, end)) : undefined;
    if (variable !== undefined && end > at + 1) named.add(variable);
    at = end - 1;
  }
}

/** Returns `begin` without a name. */
function endOfName(text: string, begin: number): number {
  if (LETTERS[text.charCodeAt(begin)] !== BEGINS) return begin;
  let end = begin + 1;
  while ((LETTERS[text.charCodeAt(end)] ?? 0) >= GOES_ON) end++;
  return end;
}

function mountsWithShared(sidecar: SidecarContainer, apps: readonly Container[]): readonly VolumeMount[] {
  const own = sidecar.volumeMounts ?? [];
  const used = new Set([...own.map(({ mountPath }) => mountPath), ...devicePaths(sidecar.volumeDevices)]);
  const shared = apps.flatMap(({ volumeMounts }) => volumeMounts ?? []);
  return [...own, ...shared.filter(({ mountPath }) => isNew(used, mountPath))];
}

function devicesWithShared(
  sidecar: SidecarContainer,
  apps: readonly Container[],
  mounts: readonly VolumeMount[],
): readonly VolumeDevice[] {
  const own = sidecar.volumeDevices ?? [];
  const used = new Set([...devicePaths(own), ...mounts.map(({ mountPath }) => mountPath)]);
  const shared = apps.flatMap(({ volumeDevices }) => volumeDevices ?? []);
  return [...own, ...shared.filter(({ devicePath }) => isNew(used, devicePath))];
}

function devicePaths(devices: readonly VolumeDevice[] | undefined): readonly string[] {
  return (devices ?? []).map(({ devicePath }) => devicePath);
}

function isNew(seen: Set<string>, path: string): boolean {
  if (seen.has(path)) return false;
  seen.add(path);
  return true;
}

// The environment variables that a sidecar copies from the pod's containers.

/** The label or annotation in the path; undefined for any other field. */
export function referencedKey({
  fieldPath,
}: FieldReference): { readonly of: "labels" | "annotations"; readonly key: string } | undefined {
  const open = fieldPath.indexOf("['", 1);
  if (open < 0 || open + 4 > fieldPath.length || !fieldPath.endsWith("']")) return undefined;
  const [path, key] = [fieldPath.slice(0, open), fieldPath.slice(open + 2, -2)];
  if (path === "metadata.labels") return qualifiedNameErrors(key).length > 0 ? undefined : { of: "labels", key };
  if (path !== "metadata.annotations") return undefined;
  return qualifiedNameErrors(key.toLowerCase()).length > 0 ? undefined : { of: "annotations", key };
}

/** "" when it is missing. */
function fieldOf(reference: FieldReference, metadata: ObjectMeta): string | undefined {
  const referenced = referencedKey(reference);
  return referenced && (metadata[referenced.of]?.[referenced.key] ?? "");
}

function sourceOf({ sourceContainerName, sourceContainerNameFrom }: TransferEnvVar, metadata: ObjectMeta) {
  const fieldRef = sourceContainerNameFrom?.fieldRef;
  return fieldRef ? fieldOf(fieldRef, metadata) : (sourceContainerName ?? "");
}

/** The names without duplicates, in the order of the transfer. */
export function envNamesOf({ envName, envNames }: TransferEnvVar): readonly string[] {
  return [...new Set([...(envName ? [envName] : []), ...(envNames ?? [])])].sort(compareUtf8);
}

/** The last of a name wins. */
function envByContainer(containers: readonly Container[]): ReadonlyMap<string, EnvVar> {
  return new Map(
    containers.flatMap(({ name, env }) => (env ?? []).map((variable) => [`${name}/${variable.name}`, variable])),
  );
}

/** Whole variables, including valueFrom; missing ones are skipped. `metadata`: the pod's. */
export function transferredEnv(
  { transferEnv }: SidecarContainer,
  containers: readonly Container[],
  metadata: ObjectMeta,
): readonly EnvVar[] {
  const variables = envByContainer(containers);
  return (transferEnv ?? []).flatMap((transfer) => {
    const source = sourceOf(transfer, metadata);
    if (source === undefined) return [];
    return envNamesOf(transfer).flatMap((name) => variables.get(`${source}/${name}`) ?? []);
  });
}
