/** A preview of a pod before its creation: the webhook's own decision, on local objects. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { ControllerRevision, KubernetesObject, Namespace, Pod } from "../../api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION, NAMESPACE_NAME_LABEL } from "../../api/names.ts";
import type { ContainerDetails, VolumeDetails } from "../../api/pod-parts.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { duplicate, type FieldError, invalidEach, printFieldErrors, required } from "../../go/field-error.ts";
import { dnsLabelErrors } from "../../go/label-name.ts";
import type { Admission } from "../admission/admission.ts";
import { validateHostPorts } from "../pod/validate/handler.ts";
import { type VolumeTable, validateVolumeDevices, validateVolumeMounts } from "../pod/validate/volume-mount.ts";
import { admitPod, asCreated, type PodAdmissionContext } from "./admit-pod.ts";
import { indexSidecarSets } from "./match/sidecarset-index.ts";

export interface PreviewSubject {
  /** as the API server would send it to the webhook; podsOf finds the pods of workloads */
  readonly pod: Pod;
  /** the default namespace; the pod's own takes precedence */
  readonly namespace: string;
  /** absent: one with nothing but its name label */
  readonly namespaceObject?: Namespace | undefined;
  /** with defaults and hashes, as they are stored */
  readonly sidecarSets: readonly SidecarSet[];
  /** needed by SidecarSets that pin an older revision */
  readonly revisions: readonly ControllerRevision[];
}

export interface Preview {
  /** the API server's question … */
  readonly request: AdmissionRequest;
  /** … and the webhook's answer */
  readonly admission: Admission;
  /** as it would be stored; undefined: it is refused */
  readonly pod: Pod | undefined;
  /** names of the SidecarSets that this adds to the pod */
  readonly injected: readonly string[];
}

/** Pure. The resulting pod, byte for byte as from the webhook. */
export function previewPod(subject: PreviewSubject, context: PodAdmissionContext): Preview {
  const { pod, sidecarSets, revisions } = subject;
  const name = pod.metadata?.namespace || subject.namespace;
  const namespace = subject.namespaceObject ?? { metadata: { name, labels: { [NAMESPACE_NAME_LABEL]: name } } };
  const request: AdmissionRequest = {
    uid: "preview",
    kind: { group: "", version: "v1", kind: "Pod" },
    resource: { group: "", version: "v1", resource: "pods" },
    ...(pod.metadata?.name ? { name: pod.metadata.name } : {}),
    namespace: name,
    operation: "CREATE",
    object: pod,
  };
  const view = { index: indexSidecarSets(sidecarSets), namespace, revisions };
  const created = asCreated(request);
  const admission = created.admissionOf(admitPod(created.request, view, context));
  if (admission.kind === "denied") return { request, admission, pod: undefined, injected: [] };
  const after = (admission.object ?? pod) as Pod;
  const before = listOf(pod);
  return { request, admission, pod: after, injected: [...listOf(after)].filter((one) => !before.has(one)) };
}

function listOf({ metadata }: Pod): ReadonlySet<string> {
  return new Set((metadata?.annotations?.[INJECTED_LIST_ANNOTATION] ?? "").split(",").filter(Boolean));
}

// Finds why an API server refuses a pod after injection: names, mounts, block devices and ports of the host.

/** Kinds whose controllers add no volumes except those of their claim templates. */
const KNOWN = /^(v1|apps\/v1|batch\/v1|apps\.kruise\.io\/.+)$/;

/** One sentence per fault, in the API server's words. `owner`: the object in the file that contains the pod. */
export function podRefusals(pod: Pod, owner: KubernetesObject): readonly string[] {
  const spec: Partial<Pod["spec"]> = pod.spec ?? {};
  const [initContainers, containers, volumes] = [spec.initContainers ?? [], spec.containers ?? [], spec.volumes ?? []];
  if (containers.length === 0) return ["spec.containers: Required value"];
  const names = [
    ...containers.map(({ name }, index) => ({ name, field: `spec.containers[${index}].name` })),
    ...initContainers.map(({ name }, index) => ({ name, field: `spec.initContainers[${index}].name` })),
  ];
  const volumeNames = volumes.map(({ name }, index) => ({ name, field: `spec.volumes[${index}].name` }));
  const table = volumesOf(pod, owner);
  const mounts = [
    ...containers.flatMap((one, index) => mountErrors(one, table, `spec.containers[${index}]`)),
    ...initContainers.flatMap((one, index) => mountErrors(one, table, `spec.initContainers[${index}]`)),
  ];
  // The operator of another kind may add the volume.
  const certain = mounts.filter(({ type }) => type !== "FieldValueNotFound" || KNOWN.test(owner.apiVersion ?? "v1"));
  const ports = validateHostPorts(containers.map(withHostPorts(pod)), "spec.containers");
  return [...nameErrors(names), ...nameErrors(volumeNames), ...certain, ...ports].map((error) =>
    printFieldErrors([error]),
  );
}

/** The API server fills in the protocol, and with the host's network each port is one of the host. */
function withHostPorts({ spec }: Pod): (container: ContainerDetails) => ContainerDetails {
  const onHost = (spec as { readonly hostNetwork?: boolean }).hostNetwork === true;
  return (container) => ({
    ...container,
    ports: (container.ports ?? []).map((port) => ({
      ...port,
      protocol: port.protocol || "TCP",
      ...(onHost && !port.hostPort ? { hostPort: port.containerPort } : {}),
    })),
  });
}

function volumesOf({ spec }: Pod, owner: KubernetesObject): VolumeTable {
  const { spec: { volumeClaimTemplates } = {} } = owner as {
    readonly spec?: { readonly volumeClaimTemplates?: readonly KubernetesObject[] | null };
  };
  const claims = (volumeClaimTemplates ?? []).map(({ metadata }) => metadata?.name ?? "");
  const ofClaim = (name: string): VolumeDetails => ({ name, persistentVolumeClaim: { claimName: name } });
  const all = [...((spec.volumes ?? []) as readonly VolumeDetails[]), ...claims.map(ofClaim)];
  return new Map(all.map((volume) => [volume.name, volume]));
}

function mountErrors(container: ContainerDetails, volumes: VolumeTable, field: string): readonly FieldError[] {
  return [
    ...validateVolumeMounts(container, volumes, `${field}.volumeMounts`),
    ...validateVolumeDevices(container, volumes, `${field}.volumeDevices`),
  ];
}

/** Repeated names, and names that are no labels of DNS. */
function nameErrors(names: readonly { readonly name?: string; readonly field: string }[]): readonly FieldError[] {
  const seen = new Set<string>();
  return names.flatMap(({ name = "", field }) => {
    if (name === "") return [required(field)];
    const errors = invalidEach(field, name, dnsLabelErrors(name));
    if (seen.has(name)) return [...errors, duplicate(field, name)];
    seen.add(name);
    return errors;
  });
}

// Finds the pods that an object of any kind would create, by its pod templates.

interface PodTemplate {
  readonly metadata?: Pod["metadata"];
  readonly spec: NonNullable<Pod["spec"]>;
}

/** Custom resources nest pod templates in each other, but not endlessly. */
const DEEPEST = 20;
const CONTAINER_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/**
 * The pod itself, or one pod per pod template (Deployment, CronJob, CloneSet, PyTorchJob, …), in the order of the
 * object's fields. Its name begins as its controller's would. Empty without either.
 */
export function podsOf(object: KubernetesObject): readonly Pod[] {
  if (object.kind === "Pod") return [object as Pod];
  const { name, namespace } = object.metadata ?? {};
  return templatesIn(object, 0).map(({ metadata, spec }): Pod => {
    const { name: _name, ...own } = metadata ?? {};
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...own, ...(name ? { generateName: `${name}-` } : {}), ...(namespace ? { namespace } : {}) },
      spec,
    };
  });
}

function templatesIn(value: unknown, depth: number): readonly PodTemplate[] {
  if (typeof value !== "object" || value === null || depth > DEEPEST) return [];
  if (isPodTemplate(value)) return [value];
  return Object.values(value).flatMap((one) => templatesIn(one, depth + 1));
}

/** Patterns of policies have containers too, but none with a valid name. */
function isPodTemplate(value: object): value is PodTemplate {
  const { spec } = value as { readonly spec?: { readonly containers?: unknown } | null };
  const containers = spec?.containers;
  return Array.isArray(containers) && containers.length > 0 && containers.every(isContainer);
}

function isContainer(value: unknown): boolean {
  const { name } = (value ?? {}) as { readonly name?: unknown };
  return typeof name === "string" && CONTAINER_NAME.test(name);
}
