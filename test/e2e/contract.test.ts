/** The same contract on a real API server: CONTRACT_URL, CONTRACT_CA (a file) and CONTRACT_TOKEN name it. */
import { readFileSync } from "node:fs";
import { connectCluster } from "../../shared/kube/client.ts";
import { describeContract } from "../contract/contract.ts";
import { SUBJECTS } from "../contract/subjects.ts";

const { CONTRACT_URL: url, CONTRACT_CA: file, CONTRACT_TOKEN: token } = process.env;

if (url === undefined || file === undefined || token === undefined) {
  throw new Error(
    "set CONTRACT_URL, CONTRACT_CA (the path of a PEM file) and CONTRACT_TOKEN to those of a cluster for tests",
  );
}

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
