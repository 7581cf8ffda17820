/** Control planes for the tests of a run: one for each worker. */
import type { TestProject } from "vitest/node";
import type { OwnControlPlane } from "./access.ts";
import { startControlPlane } from "./control-plane.ts";
import { startKubelet } from "./kubelet.ts";
import { findPrograms, type Programs } from "./programs.ts";
import { offerRestarts } from "./restarts.ts";

interface Begun {
  readonly plane: OwnControlPlane;
  close(): Promise<void>;
}

async function begin(programs: Programs): Promise<Begun> {
  const controlPlane = await startControlPlane(programs);
  const kubelet = await startKubelet(controlPlane.settings);
  const { restartUrl, close } = await offerRestarts(controlPlane);
  return {
    plane: { ...controlPlane.settings, restartUrl },
    async close() {
      close();
      await kubelet.close();
      await controlPlane.close();
    },
  };
}

export default async function setup({ config, provide }: TestProject) {
  const programs = await findPrograms(process.env);
  const begun = await Promise.all(Array.from({ length: config.maxWorkers }, () => begin(programs)));
  const planes = begun.map(({ plane }) => plane);
  provide("controlPlanes", planes);
  return async () => {
    for (const { close } of begun) await close();
  };
}
