/**
 * Tests the sentences of a report about an Advanced StatefulSet: the reason for the end, and the actions of a dry run.
 */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { Stop } from "../../../shared/controller/rollout/report.ts";
import { describeRequest, explainStop } from "../../../shared/controller/statefulset/report.ts";
import { type SetStanding, setStanding } from "../../../shared/core/statefulset/explain/explain-set.ts";
import type { Request } from "../../../shared/core/statefulset/step.ts";
import { podOf, revisionOfSet, seenOf, setOf } from "../../core/ordered-set/fixture.ts";

function standing(): SetStanding {
  const set = setOf({ replicas: 1 });
  const revision = revisionOfSet(set, 1);
  return setStanding(seenOf(set, [podOf(set, 0)], [revision]), revision.metadata?.name);
}

const HERE = "1 of 1 pods, 1 ready, 1 updated";

it.each<[Stop, string]>([
  ["settled", HERE],
  ["oneRound", HERE],
  ["gone", "there is no such StatefulSet of apps.kruise.io"],
  ["deadline", `the time is used up, the next pass goes on: ${HERE}`],
  ["stalled", `nothing moved for a while, the next pass looks again: ${HERE}`],
  ["unchanged", `the pods that are not ready have not changed for five minutes, the next pass looks again: ${HERE}`],
  ["aborted", `stopped from outside: ${HERE}`],
  ["contention", `others kept writing the same objects, the next pass goes on: ${HERE}`],
  ["failed", `failed: ${HERE}`],
])("explainStop says why a pass left a set, with the pod counts: %s", (stop, sentence) => {
  expect(explainStop(stop, standing())).toBe(sentence);
});

it.each<[Stop, string]>([
  ["settled", "nothing to do"],
  ["oneRound", "nothing to do"],
  ["contention", "others kept writing the same objects, the next pass goes on"],
])("explainStop says why a pass left a set without pod counts when they are unknown: %s", (stop, sentence) => {
  expect(explainStop(stop, undefined)).toBe(sentence);
});

it("explainStop begins with the failure", () => {
  expect(explainStop("failed", standing(), "quota exceeded")).toBe(`failed: quota exceeded; ${HERE}`);
});

describe("describeRequest:", () => {
  const named = (name: string) => ({ metadata: { name } });
  const revision = { ...named("db-1a2b"), revision: 2 };
  const owner = { apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet", name: "db", uid: "set-1" };
  const podOfImages = (images: Readonly<Record<string, string>>): Pod => ({
    ...named("db-0"),
    spec: { containers: Object.entries(images).map(([name, image]) => ({ name, image })) },
  });
  const before = podOfImages({ main: "app:1", log: "log:1", mesh: "mesh:1" });

  it.each<[Request, string]>([
    [{ kind: "CreateRevision", revision }, "create ControllerRevision db-1a2b, revision 2"],
    [{ kind: "RenumberRevision", revision, number: 7 }, "make ControllerRevision db-1a2b the newest, revision 7"],
    [{ kind: "AdoptRevision", revision, owner }, "adopt ControllerRevision db-1a2b"],
    [{ kind: "DeleteRevision", revision }, "delete ControllerRevision db-1a2b"],
    [{ kind: "AdoptPod", pod: before, owner }, "adopt pod db-0"],
    [{ kind: "ReleasePod", pod: before, ownerUid: "set-1" }, "let go of pod db-0"],
    [{ kind: "CreatePod", pod: before }, "create pod db-0"],
    [{ kind: "DeletePod", pod: before }, "delete pod db-0"],
    [
      { kind: "UpdatePod", before, after: podOfImages({ main: "app:2", log: "log:1", mesh: "mesh:2" }) },
      "update pod db-0: main app:1 → app:2, mesh mesh:1 → mesh:2",
    ],
    [{ kind: "UpdatePod", before, after: before }, "update pod db-0: metadata only"],
    [{ kind: "UpdatePodStatus", before, after: podOfImages({ main: "app:2" }) }, "write conditions of pod db-0"],
    [{ kind: "CreateClaim", claim: named("data-db-0") }, "create claim data-db-0"],
    [{ kind: "UpdateClaim", before: named("data-db-0"), after: named("data-db-0") }, "change claim data-db-0"],
    [{ kind: "UpdateStatus", status: { replicas: 1 } as never }, 'write the status of the set: {"replicas":1}'],
  ])("describeRequest returns one line for a write: %j", (request, line) => {
    expect(describeRequest(request)).toBe(line);
  });

  it.each<Request>([
    { kind: "GetSet" },
    { kind: "GetPod", name: "db-0" },
    { kind: "RecordEvent", type: "Normal", reason: "SuccessfulCreate", message: "create Pod db-0" },
  ])("describeRequest returns nothing for a read or an event: %j", (request) => {
    expect(describeRequest(request)).toBeUndefined();
  });
});
