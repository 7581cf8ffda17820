/** One control plane for all tests of a run, and a way for them to restart its API server. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestProject } from "vitest/node";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";
import { startKubelet } from "./kubelet.ts";
import { findPrograms } from "./programs.ts";
import type { Settings } from "./settings.ts";

interface Provided extends Settings {
  /** POST: the API server is killed, starts again and is ready when this answers. */
  readonly restartUrl: string;
}

declare module "vitest" {
  interface ProvidedContext {
    readonly controlPlane: Provided;
  }
}

async function offerRestart(controlPlane: ControlPlane) {
  const server = createServer(async (_request, response) => {
    const code = await controlPlane.restartApiServer().then(
      () => 200,
      () => 500,
    );
    response.writeHead(code).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { restartUrl: `http://127.0.0.1:${port}/`, close: () => server.close() };
}

export default async function setup({ provide }: TestProject) {
  const controlPlane = await startControlPlane(await findPrograms(process.env));
  const { settings } = controlPlane;
  const kubelet = await startKubelet(settings);
  const restart = await offerRestart(controlPlane);
  provide("controlPlane", { ...settings, restartUrl: restart.restartUrl });
  return async () => {
    restart.close();
    await kubelet.close();
    await controlPlane.close();
  };
}
