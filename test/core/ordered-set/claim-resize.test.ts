import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { PersistentVolumeClaim, StatefulSet, StorageClass } from "../../../shared/api/stateful-set.ts";
import { planSet } from "../../../shared/core/statefulset/plan/simulated-world.ts";
import { podOf, revisionOfSet, seenOf, setOf } from "./fixture.ts";

const FAST: StorageClass = { metadata: { name: "fast" }, allowVolumeExpansion: true };

interface Facts {
  readonly request?: string;
  readonly capacity?: string;
  readonly className?: string | undefined;
  readonly isGoing?: boolean;
  readonly modes?: readonly string[];
  /** status of the condition FileSystemResizePending */
  readonly pending?: string;
}

function template(storage: string, modes: readonly string[] = ["ReadWriteOnce"]): PersistentVolumeClaim {
  const spec = { storageClassName: "fast", accessModes: modes, resources: { requests: { storage } } };
  return { metadata: { name: "data" }, spec };
}

function growing(storage: string, modes?: readonly string[], isUpdated = false): StatefulSet {
  return setOf(
    {
      podManagementPolicy: "Parallel",
      volumeClaimTemplates: [template(storage, modes)],
      volumeClaimUpdateStrategy: { type: "OnPodRollingUpdate" },
    },
    isUpdated ? "app:2" : "app:1",
  );
}

function claimOf(ordinal: number, facts: Facts = {}): PersistentVolumeClaim {
  const { request = "1Gi", capacity = request, isGoing, modes = ["ReadWriteOnce"], pending } = facts;
  const className = "className" in facts ? facts.className : "fast";
  return {
    metadata: {
      name: `data-db-${ordinal}`,
      namespace: "shop",
      ...(isGoing ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    spec: {
      ...(className === undefined ? {} : { storageClassName: className }),
      accessModes: modes,
      resources: { requests: { storage: request } },
    },
    status: {
      capacity: { storage: capacity },
      ...(pending ? { conditions: [{ type: "FileSystemResizePending", status: pending }] } : {}),
    },
  };
}

const made = growing("1Gi");
const pods: readonly Pod[] = [0, 1, 2].map((ordinal) => podOf(made, ordinal));

function plan(set: StatefulSet, claims: readonly PersistentVolumeClaim[], classes: readonly StorageClass[] = [FAST]) {
  const revisions = [
    revisionOfSet(made, 1),
    ...(set.spec.template === made.spec.template ? [] : [revisionOfSet(set, 2)]),
  ];
  const seen = seenOf(set, pods, revisions, { StatefulSetAutoResizePVCGate: true });
  return planSet(seen, { claims, storageClasses: classes });
}

function written(...given: Parameters<typeof plan>): readonly string[] {
  return plan(...given).writes.flatMap((request) => {
    if (request.kind === "UpdateClaim") {
      return [`${request.after.metadata?.name} ${request.after.spec?.resources?.requests?.["storage"]}`];
    }
    return request.kind === "DeletePod" ? [`delete ${request.pod.metadata?.name}`] : [];
  });
}

const three = (facts: Facts = {}) => [0, 1, 2].map((ordinal) => claimOf(ordinal, facts));

describe("planSet with claims that have to grow:", () => {
  test("small claims do not count as down, so that one claim grows at a time", () => {
    expect(written(growing("2Gi"), three())).toEqual(["data-db-2 2Gi"]);
    expect(written(growing("2Gi", undefined, true), three())).toEqual(["data-db-2 2Gi"]);
  });

  test("a claim that is growing uses the budget", () => {
    const claims = [claimOf(0), claimOf(1), claimOf(2, { request: "2Gi", capacity: "1Gi" })];
    expect(written(growing("2Gi"), claims)).toEqual([]);
  });

  test("a claim that waits for its file system counts as down, and its pod may be updated", () => {
    const waiting = claimOf(2, { request: "2Gi", capacity: "1Gi", pending: "True" });
    expect(written(growing("2Gi", undefined, true), [claimOf(0), claimOf(1), waiting])).toEqual(["delete db-2"]);
  });

  test("a claim whose file system is not pending yet delays the update of its pod", () => {
    const growingStill = claimOf(2, { request: "2Gi", capacity: "1Gi", pending: "False" });
    expect(written(growing("2Gi", undefined, true), [claimOf(0), claimOf(1), growingStill])).toEqual([]);
  });

  test("a claim with enough capacity is done at once, and its pod is updated", () => {
    expect(written(growing("2Gi"), three({ capacity: "2Gi" }))).toEqual(["data-db-2 2Gi", "delete db-2"]);
  });

  test("a claim that is being deleted is skipped", () => {
    const claims = [claimOf(0), claimOf(1), claimOf(2, { isGoing: true })];
    expect(written(growing("2Gi"), claims)).toEqual(["data-db-1 2Gi"]);
  });

  test("a claim without a storage class is grown", () => {
    expect(written(growing("2Gi"), three({ className: undefined }), [])).toEqual(["data-db-2 2Gi"]);
  });

  test.each([
    ["a storage class that does not exist", [], "storage class fast for db-2 does not exist"],
    [
      "a storage class without allowVolumeExpansion",
      [{ metadata: { name: "fast" } }],
      "storage class fast for db-2 does not support volume expansion",
    ],
  ])("%s ends the update with a failure", (_, classes, message) => {
    expect(written(growing("2Gi"), three(), classes)).toEqual([]);
    expect(plan(growing("2Gi"), three(), classes).outcome.failure?.message).toBe(message);
  });

  test("another access mode ends the update with a failure and an event", () => {
    const { writes, outcome } = plan(growing("2Gi", ["ReadWriteMany"]), three());
    expect(outcome.failure?.message).toMatch(/^can not patch pvc data-db-2: contains diff other than spec resource/);
    expect(writes.filter((request) => request.kind === "RecordEvent")).toMatchObject([{ reason: "FailedUpdatePVC" }]);
  });
});

test("of two claim templates with the same name, the last one counts the claims in the status", () => {
  const spec = { ...made.spec, volumeClaimTemplates: [template("1Gi"), template("2Gi")] };
  const set = { ...made, spec, metadata: { ...made.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
  const [status] = plan(set, [claimOf(0), claimOf(1, { request: "2Gi" })]).writes;
  const volumeClaims = [
    { volumeClaimName: "data", compatibleReplicas: 0, compatibleReadyReplicas: 0 },
    { volumeClaimName: "data", compatibleReplicas: 3, compatibleReadyReplicas: 3 },
  ];
  expect(status).toMatchObject({ kind: "UpdateStatus", status: { volumeClaims } });
});
