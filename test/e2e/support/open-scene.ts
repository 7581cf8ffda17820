/** The surroundings of a file of scenarios: the functions while it runs, and a scene for each test. */
import { afterAll, beforeAll, onTestFinished } from "vitest";
import type { SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { apiServer } from "./access.ts";
import { type Functions, type FunctionsOptions, startFunctions } from "./functions.ts";
import { Scene } from "./scene.ts";

/** Called in a test, it opens a scene that is closed when the test is over. Concurrent tests say whose end that is. */
export type OpenScene = (spec?: Partial<SidecarSetSpec>, whenFinished?: typeof onTestFinished) => Promise<Scene>;

/** Called once in a file, outside of tests. */
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
