import { describe, expect, it } from "vitest";
import type { Labels, OwnerReference, Pod } from "../../../shared/api/kubernetes.ts";
import { NO_COMMAND } from "../../../shared/core/pod/command-text.ts";
import { renewalHint, renewalsOf, workloadOf } from "../../../shared/core/pod/workload.ts";
import { listedPod } from "../../support/objects.ts";

const owner = (apiVersion: string, kind: string, name: string, controller = true): OwnerReference => ({
  apiVersion,
  kind,
  name,
  uid: `uid-${name}`,
  controller,
});
const podOf = (name: string, owners: readonly OwnerReference[], labels: Labels = {}, namespace = "team-2"): Pod =>
  listedPod({ name, namespace, labels, ownerReferences: owners });
const HASH = { "pod-template-hash": "6d4cf56db6" };
const OF_DEPLOYMENT = [owner("apps/v1", "ReplicaSet", "svc-12-6d4cf56db6")];

describe("the workload of a pod", () => {
  it.each<readonly [string, Pod, string, string]>([
    ["a Deployment", podOf("p", OF_DEPLOYMENT, HASH), "deployment/svc-12", "rollout restart deployment/svc-12"],
    ["a ReplicaSet alone", podOf("p", OF_DEPLOYMENT), "replicaset/svc-12-6d4cf56db6", "delete pod p"],
    [
      "a StatefulSet",
      podOf("p", [owner("apps/v1", "StatefulSet", "db")]),
      "statefulset/db",
      "rollout restart statefulset/db",
    ],
    [
      "a DaemonSet",
      podOf("p", [owner("apps/v1", "DaemonSet", "log")]),
      "daemonset/log",
      "rollout restart daemonset/log",
    ],
    [
      "an ordered set, which kubectl does not restart",
      podOf("p", [owner("apps.kruise.io/v1beta1", "StatefulSet", "db")]),
      "statefulset.apps.kruise.io/db",
      "delete pod p",
    ],
    ["nobody", podOf("p", [owner("v1", "ConfigMap", "c", false)]), "", "delete pod p"],
  ])("is %s", (_, pod, workload, command) => {
    expect(workloadOf(pod)).toEqual({ namespace: "team-2", workload });
    expect(renewalsOf([pod])).toEqual([
      { namespace: "team-2", workload, pods: 1, command: `kubectl -n team-2 ${command}` },
    ]);
  });

  it("has one command for all its pods, and names few of those that are deleted one by one", () => {
    const many = Array.from({ length: 7 }, (_, index) => podOf(`j-${index}`, [owner("apps/v1", "ReplicaSet", "j")]));
    const all = [...many, podOf("a", OF_DEPLOYMENT, HASH), podOf("b", OF_DEPLOYMENT, HASH)];
    expect(renewalsOf(all).map(({ pods, command }) => [pods, command])).toEqual([
      [2, "kubectl -n team-2 rollout restart deployment/svc-12"],
      [7, "kubectl -n team-2 delete pod j-0 j-1 j-2 j-3 j-4 # and 2 more"],
    ]);
  });
});

describe("pods of a Job", () => {
  const pod = podOf("p", [owner("batch/v1", "Job", "once")]);
  it("are left: to delete one that is at work is a failed attempt", () => {
    const [renewal] = renewalsOf([pod]);
    expect(renewal).toMatchObject({ workload: "job/once", command: "# team-2: the next run of job/once gets it" });
    expect(renewalHint([pod])).toBe("the next run of job/once gets it");
    expect(renewalHint([pod, podOf("q", [owner("apps/v1", "DaemonSet", "d")])])).toBe(
      "recreate them: kubectl -n team-2 rollout restart daemonset/d; the next run of job/once gets it",
    );
  });
});

describe("what to do about pods that have to be recreated", () => {
  it("names no more than three workloads", () => {
    const pods = ["a", "b", "c", "d"].map((name) => podOf(name, [owner("apps/v1", "DaemonSet", name)]));
    expect(renewalHint(pods)).toMatch(
      /^recreate them: kubectl -n team-2 rollout restart daemonset\/a; .+\/c; and 1 more workload$/,
    );
    expect(renewalHint(pods.slice(0, 1))).toBe("recreate it: kubectl -n team-2 rollout restart daemonset/a");
  });

  it("warns where nobody creates another, and says something where workloads are not known", () => {
    expect(renewalHint([podOf("p", [])])).toMatch(/delete pod p \(it has no workload that creates another\)$/);
    expect(renewalHint([])).toBe("recreate them: kubectl rollout restart of their workloads");
  });
});

describe("a pod whose owner's name is no name", () => {
  it.each([
    ["Deployment", "apps/v9", "web; touch PWNED #"],
    ["Job", "batch/v1", "web\ntouch PWNED"],
    ["Clone; touch PWNED;Set", "apps.kruise.io/v1", "web"],
    ["StatefulSet", "apps.kruise.io$(touch PWNED)/v1", "web"],
  ])("has no command printed that names it or its kind: %s %s %s", (kind, apiVersion, name) => {
    const pods = [podOf("p", [owner(apiVersion, kind, name)])];
    const [renewal] = renewalsOf(pods);
    expect(renewal?.command).not.toContain("touch");
    expect(renewalHint(pods)).not.toContain("touch");
  });

  it("has the reason printed where its command would be", () => {
    const pods = [podOf("p", [owner("apps/v9", "Deployment", "web; touch PWNED #")])];
    expect(renewalsOf(pods)[0]?.command).toBe(NO_COMMAND);
    expect(renewalHint(pods)).toContain("no command is shown, because a name in it is not a valid name");
  });
});
