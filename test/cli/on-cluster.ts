/** Starts an embedded cluster for the tests of a file, and runs the command line on it. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import type { Cluster } from "../../shared/kube/port.ts";
import { type HttpsCluster, startHttpsCluster } from "../controller/fixture.ts";
import { type Outcome, runHere } from "./run-cli.ts";

interface OnCluster {
  readonly cluster: () => Cluster;
  /** returns `path` in a folder that is removed after the tests */
  readonly file: (path: string) => string;
  readonly cli: (...args: readonly string[]) => Promise<Outcome>;
}

/** Sets up a cluster. Must be called at the top of a test file. */
export function onCluster(): OnCluster {
  let test: HttpsCluster;
  let folder: string;
  const file = (path: string) => join(folder, path);
  beforeAll(async () => {
    test = await startHttpsCluster();
    folder = await mkdtemp(join(tmpdir(), "cli-"));
    await writeFile(file("kubeconfig"), test.kubeconfig);
  });
  afterAll(async () => {
    await test?.close();
    await rm(folder, { recursive: true, force: true });
  });
  return {
    cluster: () => test.cluster,
    file,
    cli: (...args) => runHere(["--kubeconfig", file("kubeconfig"), ...args]),
  };
}
