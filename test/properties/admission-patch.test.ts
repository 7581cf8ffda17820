import fastJsonPatch from "fast-json-patch";
import { expect, test } from "vitest";
import type { Container, KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { parseJson } from "../../shared/go/json/json-number.ts";
import type { JsonPatchOperation } from "../../shared/kube/port.ts";
import { admissionResponse } from "../../shared/webhook/review/response.ts";
import { admission, podRequest } from "./admission.ts";
import { type Scene, scenes } from "./arbitraries.ts";
import { holds } from "./holds.ts";

/** Digits that a JavaScript number cannot represent. */
const BIG = "9007199254740993";

/** Returns the text of the request's object. */
function rawText({ pod }: Scene): string {
  return JSON.stringify(pod).replaceAll('"deep":true', `"deep":${BIG}`);
}

function freeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) freeze(member);
  }
  return value;
}

/** Returns the patch of the response; undefined for no patch or a refusal. */
function patchOf(raw: Pod, scene: Scene): readonly JsonPatchOperation[] | undefined {
  const response = admissionResponse(podRequest(raw), admission(freeze({ ...scene, pod: raw })));
  if (response.patch === undefined) return undefined;
  return parseJson(Buffer.from(response.patch, "base64").toString()) as readonly JsonPatchOperation[];
}

/** Applies the patch with another implementation of RFC 6902, on its own copy of the document. */
function applied(text: string, patch: readonly JsonPatchOperation[]): Pod {
  const document = parseJson(text) as KubernetesObject;
  return fastJsonPatch.applyPatch(document, [...patch], true).newDocument as Pod;
}

/** Returns the parts of the pod that injection may not change. */
function untouched(pod: Pod) {
  const { metadata: { annotations: _annotations, ...metadata } = {}, spec, ...rest } = pod;
  const { containers: _c, initContainers: _i, volumes: _v, imagePullSecrets: _s, ...others } = spec;
  return { ...rest, metadata, spec: others };
}

const LISTS = ["containers", "initContainers"] as const;

/** Returns the pod's own containers that no sidecar replaced. */
function kept(containers: readonly Container[] | undefined, after: readonly Container[] | undefined) {
  const isSidecar = ({ env }: Container) => env?.some(({ name }) => name === "IS_INJECTED");
  const replaced = new Set((after ?? []).filter(isSidecar).map(({ name }) => name));
  return (containers ?? []).filter(({ name }) => !replaced.has(name));
}

function withoutBarrier({ env, ...container }: Container): Container {
  const others = (env ?? []).filter(({ name }) => name !== "KRUISE_CONTAINER_BARRIER");
  return others.length > 0 ? { ...container, env: others } : container;
}

function expectContainersKept(before: readonly Container[] | undefined, after: readonly Container[] | undefined) {
  const own = kept(before, after);
  const names = new Set(own.map(({ name }) => name));
  const still = (after ?? []).filter(({ name }) => names.has(name));
  expect(sorted(still.map(withoutBarrier))).toBe(sorted(own.map(withoutBarrier)));
}

/** Returns the annotations that neither injection nor a SidecarSet writes. */
function unknownAnnotations({ metadata }: Pod): Readonly<Record<string, string>> {
  const entries = Object.entries(metadata?.annotations ?? {});
  return Object.fromEntries(entries.filter(([key]) => key === "note" || key.startsWith("apps.kruise.io/")));
}

test("the patch, applied to the request's own bytes, gives the decided pod", () => {
  const classes = ["patched", "left alone", "refused", "named"];
  holds(scenes, classes, (scene, seen) => {
    const text = rawText(scene);
    const raw = freeze(parseJson(text)) as Pod;
    const wanted = admission({ ...scene, pod: raw });
    const patch = patchOf(raw, scene);
    seen("refused", wanted.kind === "denied");
    if (wanted.kind === "denied" || wanted.object === undefined) {
      seen("left alone", wanted.kind === "allowed");
      expect(patch).toBeUndefined();
      return;
    }
    seen("patched");
    seen("named", raw.metadata?.name === undefined && wanted.object.metadata?.name !== undefined);
    // The objects are compared as text, so that every digit counts.
    expect(sorted(applied(text, patch ?? []))).toBe(sorted(wanted.object));
  });
});

/** Sorts keys, because a patch does not preserve the order of an object's keys. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member) && !("rawJSON" in member)
      ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

test("the patch keeps every other field of the pod, also unknown fields and large numbers", () => {
  const classes = ["patched", "unknown in metadata", "unknown in spec", "unknown in a container", "annotations kept"];
  holds(scenes, classes, (scene, seen) => {
    const text = rawText(scene);
    const raw = parseJson(text) as Pod;
    const patch = patchOf(raw, scene);
    if (patch === undefined) return;
    seen("patched");
    const after = applied(text, patch);
    // A pod with a launch barrier gets a name.
    const { name } = after.metadata ?? {};
    const before = name === undefined ? raw : { ...raw, metadata: { ...raw.metadata, name } };
    expect(sorted(untouched(after))).toBe(sorted(untouched(before)));
    for (const list of LISTS) expectContainersKept(raw.spec[list], after.spec[list]);
    const { volumes = [] } = raw.spec;
    expect((after.spec.volumes ?? []).slice(0, volumes.length)).toEqual(volumes);
    expect(unknownAnnotations(after)).toMatchObject(unknownAnnotations(raw));
    seen("annotations kept", Object.keys(unknownAnnotations(raw)).length > 0);
    seen("unknown in a container", JSON.stringify(raw.spec.containers).includes(BIG));
    seen("unknown in metadata", "laterField" in (raw.metadata ?? {}));
    seen("unknown in spec", "laterField" in raw.spec);
  });
});

test("the patch removes fields only inside a container that a sidecar replaces", () => {
  const added = new Set(["add", "replace"]);
  holds(scenes, ["operations", "replaced"], (scene, seen) => {
    const patch = patchOf(scene.pod, scene) ?? [];
    const removed = patch.filter(({ op }) => !added.has(op));
    // Removals are allowed only inside a container that a sidecar of the same name replaces.
    expect(removed.filter(({ path }) => !/^\/spec\/(initContainers|containers)\/\d+\//.test(path))).toEqual([]);
    seen("operations", patch.length > 0);
    seen(
      "replaced",
      patch.some(({ op }) => op === "replace"),
    );
  });
});
