/** For a file of scenarios: our functions while it runs, and a scene for each test. */
import { afterAll, beforeAll, onTestFinished } from "vitest";
import type { SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { apiServer } from "./access.ts";
import { type Functions, type FunctionsOptions, startFunctions } from "./functions.ts";
import { Scene } from "./scene.ts";

/** Called in a test, it opens a scene that is closed when the test is over. */
export type OpenScene = (spec?: Partial<SidecarSetSpec>) => Promise<Scene>;

/** Called once in a file, outside of tests. */
export function scenes(options: Pick<FunctionsOptions, "gates" | "roles" | "batchGates"> = {}): OpenScene {
  let functions: Functions;
  beforeAll(async () => {
    functions = await startFunctions(apiServer(), options);
  });
  afterAll(() => functions?.close());
  return async (spec) => {
    const scene = new Scene(functions);
    onTestFinished(() => scene.close());
    await scene.open(spec);
    return scene;
  };
}
