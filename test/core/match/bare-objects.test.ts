import { describe, expect, test } from "vitest";
import type { LabelSelector } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { matches, namespaceKeys } from "../../../shared/core/injection/match/matches.ts";
import { candidates, indexSidecarSets } from "../../../shared/core/injection/match/sidecarset-index.ts";

const WEB: LabelSelector = { matchLabels: { app: "web" } };
const NAMELESS: SidecarSet = { spec: { selector: WEB } };

describe("SidecarSets without metadata", () => {
  test("a SidecarSet without a name comes before SidecarSets with a name", () => {
    const named: SidecarSet = { metadata: { name: "a" }, spec: { selector: WEB } };
    expect(candidates(indexSidecarSets([named, NAMELESS]), "n", { app: "web" })).toEqual([NAMELESS, named]);
    expect(candidates(indexSidecarSets([NAMELESS, named]), "n", { app: "web" })).toEqual([NAMELESS, named]);
  });

  test("the error about a SidecarSet without a name has an empty name", () => {
    const broken: SidecarSet = { spec: { selector: { matchExpressions: [{ key: "a", operator: "Bad" }] } } };
    expect(matches(broken, { namespace: undefined, podLabels: {} })).toMatchObject({ sidecarSet: "" });
  });
});

describe("pods without labels", () => {
  const ofExpressions = (...matchExpressions: NonNullable<LabelSelector["matchExpressions"]>): SidecarSet => ({
    metadata: { name: JSON.stringify(matchExpressions) },
    spec: { selector: { matchExpressions } },
  });

  test("for a pod without labels, SidecarSets with DoesNotExist or NotIn are candidates, and others are not", () => {
    const absent = ofExpressions({ key: "a", operator: "DoesNotExist" });
    const not = ofExpressions({ key: "a", operator: "NotIn", values: ["x"] });
    const present = ofExpressions({ key: "a", operator: "Exists" });
    const one = ofExpressions({ key: "a", operator: "In", values: ["x"] });
    const found = candidates(indexSidecarSets([absent, not, present, one]), "n", undefined);
    expect(new Set(found)).toEqual(new Set([absent, not]));
    expect(candidates(indexSidecarSets([present, one]), "n", { a: "x" })).toHaveLength(2);
    expect(candidates(indexSidecarSets([present, one]), "n", { a: "y" })).toEqual([present]);
  });
});

describe("namespaceSelector", () => {
  const inNamespaces = (namespaceSelector: LabelSelector): SidecarSet => ({
    spec: { selector: WEB, namespaceSelector },
  });
  const podLabels = { app: "web" };

  test("a namespaceSelector does not match a namespace that does not exist", () => {
    expect(matches(inNamespaces({}), { namespace: undefined, podLabels })).toBe(false);
  });

  test("a namespaceSelector compares the labels of the namespace, even when there are none", () => {
    const given = inNamespaces({ matchLabels: { env: "prod" } });
    expect(matches(given, { namespace: { metadata: { labels: { env: "prod" } } }, podLabels })).toBe(true);
    expect(matches(given, { namespace: { metadata: {} }, podLabels })).toBe(false);
    expect(matches(given, { namespace: {}, podLabels })).toBe(false);
  });

  test("namespaceKeys returns no name for an In without values, and undefined for another label", () => {
    const selector = { matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "In" }] };
    expect(namespaceKeys(inNamespaces(selector))).toEqual([]);
    const other = { matchExpressions: [{ key: "env", operator: "In", values: ["prod"] }] };
    expect(namespaceKeys(inNamespaces(other))).toBeUndefined();
  });
});

test("a SidecarSet with an empty or missing selector matches no pod", () => {
  const nothing = [{ spec: {} }, { spec: { selector: {} } }, { spec: { selector: null } }] as unknown as SidecarSet[];
  for (const given of nothing) {
    expect(candidates(indexSidecarSets([given]), "n", { a: "b" })).toEqual([]);
    expect(matches(given, { namespace: undefined, podLabels: {} })).toBe(false);
  }
});
