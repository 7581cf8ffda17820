import { expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { changePatch, memberPatch } from "../../../shared/controller/statefulset/act.ts";
import { newPod } from "../../support/objects.ts";

const before: Pod = newPod(
  {
    ...{ name: "db-0", uid: "uid-0", resourceVersion: "7" },
    labels: { app: "db", old: "yes" },
    annotations: { gone: "yes" },
  },
  { containers: [{ name: "main", image: "nginx:1" }] },
);
const identity = { uid: "uid-0", resourceVersion: "7" };

it("changePatch contains only the differences, sets removed members to null and replaces whole lists", () => {
  const { annotations: _, ...metadata } = before.metadata ?? {};
  const containers = [{ name: "main", image: "nginx:2" }];
  const after = { ...before, metadata: { ...metadata, labels: { app: "db", new: "yes" } }, spec: { containers } };
  const change = { ...identity, annotations: null, labels: { old: null, new: "yes" } };
  expect(changePatch(before, after)).toEqual({ type: "merge", body: { metadata: change, spec: { containers } } });
  expect(changePatch(before, structuredClone(before))).toEqual({ type: "merge", body: { metadata: identity } });
});

it("changePatch ignores a member that is undefined in the old object", () => {
  const unset = { ...before, status: undefined } as unknown as Pod;
  expect(changePatch(unset, before)).toEqual({ type: "merge", body: { metadata: identity } });
});

it("memberPatch writes its members beside the pod's uid and resourceVersion", () => {
  const members = { metadata: { finalizers: [] } };
  expect(memberPatch(before, members)).toEqual({ type: "merge", body: { metadata: { ...identity, finalizers: [] } } });
});
