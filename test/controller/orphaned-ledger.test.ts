/** Tests the release of reservations for a deleted SidecarSet. */
import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { FENCE_ANNOTATION } from "../../shared/api/names.ts";
import { readLedger, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { releaseOrphan } from "../../shared/controller/rollout/rollout.ts";
import type { Reservation } from "../../shared/core/ledger.ts";
import { type Cluster, PODS } from "../../shared/kube/port.ts";
import { listedPod } from "../support/objects.ts";
import { bareCluster, type Refuse, refusal } from "./bare-cluster.ts";
import { KRUISE_NAMESPACE, NAMESPACE } from "./fixture.ts";
import { steppedClock } from "./stepped-clock.ts";

const keyOf = (name: string) => ({ namespace: NAMESPACE, name });

function stage(refuse?: Refuse) {
  const { cluster, server, calls, answeredWhole } = bareCluster(steppedClock(), refuse);
  const readPod = (name: string) => server.peek<Pod>(PODS, keyOf(name));
  const deploy = (name: string, annotations?: Readonly<Record<string, string>>) => {
    server.put(
      "test",
      PODS,
      listedPod({ ...keyOf(name), uid: `uid-${name}`, ...(annotations ? { annotations } : {}) }),
    );
    return readPod(name)?.metadata?.resourceVersion ?? "";
  };
  /** Reserves the pods with these names, at these versions. */
  const reserve = async (reserved: Readonly<Record<string, string>>) => {
    const reservations = Object.entries(reserved).map(
      ([name, resourceVersion]): Reservation => ({
        ...{ namespace: NAMESPACE, name, uid: `uid-${name}`, resourceVersion },
        ...{ generation: 1, revision: "r" },
      }),
    );
    const owner = { metadata: { name: "gone", uid: "uid-gone" } };
    const place = { namespace: KRUISE_NAMESPACE, owner };
    const stored = await readLedger(cluster, KRUISE_NAMESPACE, "gone");
    await swapLedger(cluster, place, stored, { uid: "uid-gone", generation: 1, reservations });
  };
  const left = async () =>
    (await readLedger(cluster, KRUISE_NAMESPACE, "gone")).ledger.reservations.map(({ name }) => name);
  const release = async (through: Cluster = cluster) => {
    const before = calls.length;
    await releaseOrphan(through, KRUISE_NAMESPACE, "gone");
    return calls.slice(before).map(([, call]) => call);
  };
  return { cluster, server, answeredWhole, deploy, readPod, reserve, left, release };
}

it("a pass fences the reserved pods of a deleted SidecarSet and then releases them", async () => {
  const { deploy, reserve, release, readPod, left, answeredWhole } = stage();
  const [bare, annotated] = [deploy("bare"), deploy("annotated", { team: "shop" })];
  await reserve({ bare, annotated });
  expect(await release()).toEqual([
    "GET configmaps",
    ...["GET pods", "PATCH pods", "GET pods", "PATCH pods"],
    "PATCH configmaps",
  ]);
  expect(answeredWhole).toEqual([]);
  expect(readPod("bare")?.metadata?.annotations).toEqual({ [FENCE_ANNOTATION]: bare });
  expect(readPod("annotated")?.metadata?.annotations).toEqual({ team: "shop", [FENCE_ANNOTATION]: annotated });
  expect(await left()).toEqual([]);
});

it("a reservation is released without a fence when its pod is gone, replaced or has changed", async () => {
  const { server, deploy, reserve, release, left, readPod } = stage();
  const [later, another] = [deploy("later"), deploy("another")];
  deploy("later");
  const pod = readPod("another") as Pod;
  server.put("test", PODS, { ...pod, metadata: { ...pod.metadata, uid: "uid-other" } });
  const { resourceVersion = "" } = readPod("another")?.metadata ?? {};
  // The other object also has this version: only uids tell the objects apart.
  expect(Number(resourceVersion)).toBeGreaterThan(Number(another));
  await reserve({ later, another: resourceVersion, gone: "1" });
  expect(await release()).toEqual(["GET configmaps", "GET pods", "GET pods", "GET pods", "PATCH configmaps"]);
  expect(await left()).toEqual([]);
});

it("a reservation stays when its pod's fence is forbidden, with an error, and the others are released", async () => {
  const { deploy, reserve, release, left } = stage((call, nth) =>
    call === "PATCH pods" && nth === 1 ? refusal(403, "Forbidden") : undefined,
  );
  await reserve({ first: deploy("first"), second: deploy("second") });
  await expect(release()).rejects.toThrow("what is reserved of gone, which is gone, can't be released: Forbidden");
  expect(await left()).toEqual(["first"]);
});

it("a reservation stays for the next pass when its pod's fence conflicts with another write", async () => {
  const { deploy, reserve, release, left } = stage((call, nth) =>
    call === "PATCH pods" && nth === 1 ? refusal(409, "Conflict") : undefined,
  );
  await reserve({ first: deploy("first") });
  await release();
  expect(await left()).toEqual(["first"]);
  await release();
  expect(await left()).toEqual([]);
});

it("releaseOrphan reads only the ledger when nothing is reserved", async () => {
  const { release, reserve } = stage();
  expect(await release()).toEqual(["GET configmaps"]);
  await reserve({});
  expect(await release()).toEqual(["GET configmaps"]);
});

it("reservations stay when an unexpected error occurs", async () => {
  const { cluster, deploy, reserve, release, left } = stage();
  await reserve({ first: deploy("first") });
  const get: Cluster["get"] = (resource, key) =>
    resource === PODS ? Promise.reject(new TypeError("a bug")) : cluster.get(resource, key);
  await expect(release({ ...cluster, get })).rejects.toThrow("a bug");
  expect(await left()).toEqual(["first"]);
});
