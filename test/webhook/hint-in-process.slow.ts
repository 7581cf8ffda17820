import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { PATIENT } from "../support/patient.ts";
import { type ServedCluster, startServedCluster } from "./cluster.ts";

let cluster: ServedCluster;
beforeAll(async () => {
  cluster = await startServedCluster(600_000);
});
afterAll(() => cluster.close());

test("serve reconciles a new SidecarSet at once, long before its next tick", async () => {
  for (const name of ["first", "second"]) {
    const spec = { selector: { matchLabels: { app: name } }, containers: [{ name: "agent", image: "agent:1" }] };
    await cluster.client.create(SIDECARSETS, {
      apiVersion: "apps.kruise.io/v1beta1",
      kind: "SidecarSet",
      metadata: { name },
      spec,
    } as SidecarSet);
    const isSeen = async () => {
      const { status } = await cluster.client.get<SidecarSet>(SIDECARSETS, { name });
      expect(status?.observedGeneration).toBe(1);
    };
    await vi.waitFor(isSeen, PATIENT);
  }
});
