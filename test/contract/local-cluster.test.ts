import { expect, it } from "vitest";
import { startLocalCluster } from "../../infra/local/cluster.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import { type ContractTarget, describeContract } from "./contract.ts";
import { SUBJECTS } from "./subjects.ts";

async function open(): Promise<ContractTarget> {
  const local = await startLocalCluster({ startDelayMs: 20, readyDelayMs: 20, terminationDelayMs: 20 });
  const cluster = connectCluster({
    server: local.url,
    certificateAuthority: local.caCertificate,
    token: async () => local.token,
  });
  return {
    cluster,
    access: local,
    compact: async () => local.compact(),
    runsPods: true,
    collectsGarbage: true,
    close: local.close,
  };
}

it("the contract has cases", () => {
  expect(Object.values(SUBJECTS).flat().length).toBeGreaterThanOrEqual(80);
});

describeContract("the embedded cluster", open, SUBJECTS);
