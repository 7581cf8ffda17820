/** Sets up a file of scenarios: the functions while the file runs, and a scene for each test. */
import { afterAll, beforeAll, onTestFinished } from "vitest";
import type { SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { apiServer } from "./access.ts";
import { type Functions, type FunctionsOptions, startFunctions } from "./functions.ts";
import { Scene } from "./scene.ts";

/** Opens a scene within a test, and closes it when the test ends. Concurrent tests pass their own `whenFinished`. */
export type OpenScene = (spec?: Partial<SidecarSetSpec>, whenFinished?: typeof onTestFinished) => Promise<Scene>;

/** Must be called once in a file, outside of tests. */
export function scenes(options: Pick<FunctionsOptions, "gates" | "roles" | "batchGates"> = {}): OpenScene {
  let functions: Functions;
  beforeAll(async () => {
    functions = await startFunctions(apiServer(), options);
  });
  afterAll(() => functions?.close());
  return async (spec, whenFinished = onTestFinished) => {
    const scene = new Scene(functions);
    whenFinished(() => scene.close());
    await scene.open(spec);
    return scene;
  };
}
