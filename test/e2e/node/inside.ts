/** Asks the kubelet of the real node to run a command in a container. */
import { request } from "node:https";
import { text } from "node:stream/consumers";
import { resourceOf } from "../../../shared/install/manifests.ts";
import { controlPlane } from "../support/access.ts";
import { clusterOf } from "../support/clients.ts";
import { NODE_NAME } from "./real-node.ts";

interface Place {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

async function portOfKubelet(): Promise<number> {
  const nodes = resourceOf({ apiVersion: "v1", kind: "Node" });
  const { status } = (await clusterOf(controlPlane()).get(nodes, { name: NODE_NAME })) as {
    status?: { daemonEndpoints?: { kubeletEndpoint?: { Port?: number } } };
  };
  return status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
}

/** The command's output, stderr included. @throws with the output when it fails */
export async function runInside({ namespace, pod, container }: Place, command: string): Promise<string> {
  const query = new URLSearchParams({ cmd: command });
  const options = {
    method: "POST",
    headers: { authorization: `Bearer ${controlPlane().token}` },
    // The certificate is self-signed.
    rejectUnauthorized: false,
  };
  const url = `https://127.0.0.1:${await portOfKubelet()}/run/${namespace}/${pod}/${container}?${query}`;
  return new Promise((done, failed) => {
    const asked = request(url, options, async (answer) => {
      const said = await text(answer);
      if (answer.statusCode === 200) done(said);
      else failed(new Error(`${command}: ${answer.statusCode} ${said}`));
    });
    asked.on("error", failed);
    asked.end();
  });
}
