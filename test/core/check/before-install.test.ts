import { expect, it } from "vitest";
import { checkBeforeInstall } from "../../../shared/core/inspect/check/check.ts";
import { IN_ORDER } from "./fixture.ts";

it("checkBeforeInstall reports each object that the API server would refuse and counts the tried objects", () => {
  const { findings, counts, looked } = checkBeforeInstall(IN_ORDER, [
    { object: "Namespace kruise-system" },
    { object: "ServiceAccount kruise-system/sidecarset-reconciler", isUntried: true },
    { object: "ClusterRole a", refusal: "may not create clusterroles", isForbidden: true },
    { object: "ValidatingAdmissionPolicy b", refusal: "not found" },
  ]);
  expect(findings.map(({ id, about, message }) => `${id} ${about}: ${message}`)).toEqual([
    "InstallRefused ClusterRole a: the API server would refuse it: may not create clusterroles",
    "InstallRefused ValidatingAdmissionPolicy b: the API server would refuse it: not found",
    expect.stringMatching(/^FailsOpen /),
  ]);
  expect(findings[0]?.hint).toContain("a user who may");
  expect(findings[1]?.hint).toMatch(/a policy of the cluster.*--without-fence/);
  expect(counts).toEqual({ error: 2, warning: 0, note: 1 });
  expect(looked.objects).toBe(3);
});

it("checkBeforeInstall does not report that the installation is missing", () => {
  const facts = { ...IN_ORDER, lastPass: { value: undefined }, sidecarSets: { value: [] }, pods: { value: [] } };
  expect(checkBeforeInstall(facts, []).findings.map(({ id }) => id)).toEqual(["FailsOpen"]);
});
