/** The same contract on a real API server: CONTRACT_URL, CONTRACT_CA (a file) and CONTRACT_TOKEN name it. */
import { readFileSync } from "node:fs";
import { it } from "vitest";
import { connectCluster } from "../../shared/kube/client.ts";
import { describeContract } from "./contract.ts";
import { SUBJECTS } from "./subjects.ts";

const { CONTRACT_URL: url, CONTRACT_CA: file, CONTRACT_TOKEN: token } = process.env;

if (url === undefined || file === undefined || token === undefined) {
  it.skip("needs CONTRACT_URL, CONTRACT_CA and CONTRACT_TOKEN");
} else {
  const caCertificate = readFileSync(file, "utf8");
  const cluster = connectCluster({ server: url, certificateAuthority: caCertificate, token: async () => token });
  const hasControllers = process.env["CONTRACT_CONTROLLERS"] === "true";
  describeContract(
    "the real cluster",
    async () => ({
      cluster,
      access: { url, caCertificate, token },
      runsPods: hasControllers,
      collectsGarbage: hasControllers,
      settleMs: 1_500,
      close: async () => undefined,
    }),
    SUBJECTS,
  );
}
