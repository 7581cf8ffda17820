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

describe("workloadOf and renewalsOf:", () => {
  it.each<readonly [string, Pod, string, string]>([
    ["a Deployment", podOf("p", OF_DEPLOYMENT, HASH), "deployment/svc-12", "rollout restart deployment/svc-12"],
    ["a ReplicaSet without a Deployment", podOf("p", OF_DEPLOYMENT), "replicaset/svc-12-6d4cf56db6", "delete pod p"],
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
      "OpenKruise's StatefulSet, which kubectl cannot restart",
      podOf("p", [owner("apps.kruise.io/v1beta1", "StatefulSet", "db")]),
      "statefulset.apps.kruise.io/db",
      "delete pod p",
    ],
    ["no controller", podOf("p", [owner("v1", "ConfigMap", "c", false)]), "", "delete pod p"],
  ])("the workload and the command to recreate the pod are right for a pod of %s", (_, pod, workload, command) => {
    expect(workloadOf(pod)).toEqual({ namespace: "team-2", workload });
    expect(renewalsOf([pod])).toEqual([
      { namespace: "team-2", workload, pods: 1, command: `kubectl -n team-2 ${command}` },
    ]);
  });

  it("a workload has one command for all its pods, and a command that deletes pods names at most five", () => {
    const many = Array.from({ length: 7 }, (_, index) => podOf(`j-${index}`, [owner("apps/v1", "ReplicaSet", "j")]));
    const all = [...many, podOf("a", OF_DEPLOYMENT, HASH), podOf("b", OF_DEPLOYMENT, HASH)];
    expect(renewalsOf(all).map(({ pods, command }) => [pods, command])).toEqual([
      [2, "kubectl -n team-2 rollout restart deployment/svc-12"],
      [7, "kubectl -n team-2 delete pod j-0 j-1 j-2 j-3 j-4 # and 2 more"],
    ]);
  });
});

describe("renewalHint for pods of a Job:", () => {
  const pod = podOf("p", [owner("batch/v1", "Job", "once")]);
  it("a pod of a Job gets no command, because its deletion would count as a failed attempt", () => {
    const [renewal] = renewalsOf([pod]);
    expect(renewal).toMatchObject({ workload: "job/once", command: "# team-2: the next run of job/once gets it" });
    expect(renewalHint([pod])).toBe("the next run of job/once gets it");
    expect(renewalHint([pod, podOf("q", [owner("apps/v1", "DaemonSet", "d")])])).toBe(
      "recreate them: kubectl -n team-2 rollout restart daemonset/d; the next run of job/once gets it",
    );
  });
});

describe("renewalHint:", () => {
  it("the hint names at most three workloads", () => {
    const pods = ["a", "b", "c", "d"].map((name) => podOf(name, [owner("apps/v1", "DaemonSet", name)]));
    expect(renewalHint(pods)).toMatch(
      /^recreate them: kubectl -n team-2 rollout restart daemonset\/a; .+\/c; and 1 more workload$/,
    );
    expect(renewalHint(pods.slice(0, 1))).toBe("recreate it: kubectl -n team-2 rollout restart daemonset/a");
  });

  it("the hint warns about a pod without a workload and is general without pods", () => {
    expect(renewalHint([podOf("p", [])])).toMatch(/delete pod p \(it has no workload that creates another\)$/);
    expect(renewalHint([])).toBe("recreate them: kubectl rollout restart of their workloads");
  });
});

describe("a pod whose owner has an invalid name:", () => {
  it.each([
    ["Deployment", "apps/v9", "web; touch PWNED #"],
    ["Job", "batch/v1", "web\ntouch PWNED"],
    ["Clone; touch PWNED;Set", "apps.kruise.io/v1", "web"],
    ["StatefulSet", "apps.kruise.io$(touch PWNED)/v1", "web"],
  ])("no command contains an invalid owner name, kind or group: %s %s %s", (kind, apiVersion, name) => {
    const pods = [podOf("p", [owner(apiVersion, kind, name)])];
    const [renewal] = renewalsOf(pods);
    expect(renewal?.command).not.toContain("touch");
    expect(renewalHint(pods)).not.toContain("touch");
  });

  it("the command is replaced by a reason if the name of the owner is invalid", () => {
    const pods = [podOf("p", [owner("apps/v9", "Deployment", "web; touch PWNED #")])];
    expect(renewalsOf(pods)[0]?.command).toBe(NO_COMMAND);
    expect(renewalHint(pods)).toContain("no command is shown, because a name in it is not a valid name");
  });
});
